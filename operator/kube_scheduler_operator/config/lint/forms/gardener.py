"""Gardener: spec.kubernetes.kubeScheduler of a Shoot.

Source: gardener/gardener at b312835, pkg/apis/core/v1beta1/types_shoot.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import WARNING, Path, Problem, did_you_mean, listing
from ....base.source.reader import Document
from .document_fields import at, label_of, value_of, version_of
from .flags import of_map
from .form import CommandLine, CommandLineFlag, Contents

PROFILES: Final = ("balanced", "bin-packing")
"""The profiles of Gardener's Shoots (config/lint/providers/gardener.py writes them)."""


def read(document: Document) -> Contents:
    value = value_of(document)
    path: Path = ("spec", "kubernetes", "kubeScheduler")
    spec = at(value, *map(str, path))
    if not isinstance(spec, Mapping):
        return Contents()
    gates = (*path, "featureGates")
    flags = of_map({"feature-gates": spec.get("featureGates") or {}}, path)
    arguments = tuple(CommandLineFlag(flag.name, flag.value, gates) for flag in flags if flag.value)
    command = CommandLine(
        label=label_of(value),
        arguments=arguments,
        at=path,
        version=version_of(at(value, "spec", "kubernetes", "version")),
        namespace="kube-system",
    )
    return Contents(commands=(command,), problems=tuple(_shoot(spec, path)))


def _shoot(spec: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    profile = spec.get("profile")
    if profile is not None and profile not in PROFILES:
        hint = did_you_mean(str(profile), PROFILES).removeprefix("; ")
        yield Problem(
            "UnknownProfile",
            (*path, "profile"),
            f'Gardener has the profiles {listing(PROFILES)}, not "{profile}"',
            hint or f"use {listing(PROFILES)}",
        )
    for key in spec:
        if key not in ("profile", "featureGates", "kubeMaxPDVols"):
            yield Problem(
                "UnknownField",
                (*path, key),
                f'Gardener has no field "{key}" here: a Shoot supports only a profile and feature '
                "gates of kube-scheduler",
                "run the profile in a SecondaryScheduler",
            )
    if spec.get("kubeMaxPDVols") not in (None, ""):
        yield Problem(
            "VoidArgument",
            (*path, "kubeMaxPDVols"),
            "kube-scheduler does not read kubeMaxPDVols, and Gardener forbids it from Kubernetes "
            "1.35 on",
            "remove it",
            WARNING,
        )
