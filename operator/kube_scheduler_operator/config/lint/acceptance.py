"""What a place of `--for` (places.py) supports: a provider, an autoscaler, another scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from ...base.findings import WARNING, Path, Problem, listing
from ...base.objects import mapping
from ..effective.profiles.aks_support import FIELDS, RESERVED_PROFILE, unsupported_plugins
from ..language.plugins.in_tree_plugins import PLUGINS as IN_TREE
from ..language.schema import DEFAULT_SCHEDULER
from .forms.document_fields import objects

NOT_SUPPORTED: Final = "PluginNotSupported"
FIELD_NOT_SUPPORTED: Final = "FieldNotSupported"
PROFILE_NOT_SUPPORTED: Final = "ProfileNotSupported"
RESERVED: Final = "ReservedProfile"
_SECONDARY: Final = "run the profile in a secondary scheduler"

Refusal = Callable[[Mapping[str, Any]], Iterator[Problem]]


def refused(place: str, config: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what a place does not support; nothing for an unknown place."""
    check = _PLACES.get(place)
    if check is not None:
        yield from check(config)


def _aks(config: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _fields(config, "AKS", FIELDS)
    for index, profile in objects(config.get("profiles")):
        if profile.get("schedulerName") == RESERVED_PROFILE:
            yield Problem(
                RESERVED,
                ("profiles", index, "schedulerName"),
                f'AKS reserves the profile "{RESERVED_PROFILE}"',
                "use another name",
            )
        for path, name, wrong in unsupported_plugins(profile):
            if name in IN_TREE:
                where, fix = ("profiles", index, *path), f"remove it, or {_SECONDARY}"
                yield Problem(NOT_SUPPORTED, where, wrong, fix)


def _fields(config: Mapping[str, Any], who: str, supported: tuple[str, ...]) -> Iterator[Problem]:
    message = f"{who} supports only {listing(supported)}"
    for key in config:
        if key not in (*supported, "apiVersion", "kind"):
            yield Problem(FIELD_NOT_SUPPORTED, (key,), message, f"remove it, or {_SECONDARY}")


def _eks(config: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _fields(config, "EKS", ("profiles",))
    for index, profile in objects(config.get("profiles")):
        if profile.get("schedulerName") not in (None, DEFAULT_SCHEDULER):
            yield Problem(
                PROFILE_NOT_SUPPORTED,
                ("profiles", index, "schedulerName"),
                f'EKS does not support the profile "{profile.get("schedulerName")}"',
                _SECONDARY,
            )
            continue
        for key in profile:
            if key not in ("schedulerName", "pluginConfig"):
                yield Problem(
                    FIELD_NOT_SUPPORTED,
                    ("profiles", index, key),
                    "EKS supports only the scoringStrategy of NodeResourcesFit",
                    f"remove it, or {_SECONDARY}",
                )
        for at, entry in objects(profile.get("pluginConfig")):
            if entry.get("name") != "NodeResourcesFit":
                yield Problem(
                    NOT_SUPPORTED,
                    ("profiles", index, "pluginConfig", at, "name"),
                    f"EKS supports only arguments of NodeResourcesFit, not of {entry.get('name')}",
                    f"remove it, or {_SECONDARY}",
                )
                continue
            strategy = mapping(mapping(entry.get("args")).get("scoringStrategy"))
            kind = strategy.get("type")
            if kind not in (None, "LeastAllocated", "MostAllocated"):
                args: Path = ("profiles", index, "pluginConfig", at, "args")
                yield Problem(
                    FIELD_NOT_SUPPORTED,
                    (*args, "scoringStrategy", "type"),
                    f"EKS supports the strategies LeastAllocated and MostAllocated, not {kind}",
                    f"use one of them, or {_SECONDARY}",
                )


def _gardener(*_: object) -> Iterator[Problem]:
    yield Problem(
        FIELD_NOT_SUPPORTED,
        (),
        "a Gardener Shoot supports no KubeSchedulerConfiguration, only a profile (balanced or "
        "bin-packing) and feature gates",
        f"see what is closest with `kubectl scheduler compose --for gardener`, or {_SECONDARY}",
    )


def _talos(config: Mapping[str, Any]) -> Iterator[Problem]:
    if mapping(config.get("clientConnection")).get("kubeconfig"):
        yield Problem(
            FIELD_NOT_SUPPORTED,
            ("clientConnection", "kubeconfig"),
            "Talos sets the kubeconfig itself",
            "remove it",
        )


def _extenders_unseen(config: Mapping[str, Any], who: str) -> Iterator[Problem]:
    for index, extender in objects(config.get("extenders")):
        if extender.get("filterVerb"):
            yield Problem(
                "ExtenderNotSimulated",
                ("extenders", index, "filterVerb"),
                f"{who} calls no extenders, so it counts on nodes that this filter rejects, and "
                "does not add others",
                "let the extender score instead of filter",
                WARNING,
            )


def _openshift(*_: object) -> Iterator[Problem]:
    yield Problem(
        FIELD_NOT_SUPPORTED,
        (),
        "OpenShift's cluster-kube-scheduler-operator supports no KubeSchedulerConfiguration, only "
        "spec.profile of Scheduler/cluster",
        "use the secondary-scheduler-operator, or the operator of this project",
        WARNING,
    )


_PLACES: Final[Mapping[str, Refusal]] = {
    "aks": _aks,
    "eks": _eks,
    "gardener": _gardener,
    "talos": _talos,
    "cluster-autoscaler": partial(_extenders_unseen, who="cluster-autoscaler"),
    "karpenter": partial(_extenders_unseen, who="Karpenter"),
    "openshift": _openshift,
}
"""Places that support less than kube-scheduler does; the others support every configuration."""
