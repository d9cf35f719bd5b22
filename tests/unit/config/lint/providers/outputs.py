"""What a provider takes of objects, as `compose --for` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.providers.provider import ProviderOutput, provider_output
from kube_scheduler_operator.config.lint.providers.table import find_provider

from .....control_plane_inputs import inputs_of
from .....expect import findings


def write(
    word: str,
    *,
    scheduler: Mapping[str, Any] | None = None,
    kubescheduler: Mapping[str, Any] | None = None,
    profiles: tuple[Mapping[str, Any], ...] = (),
    extenders: tuple[Mapping[str, Any], ...] = (),
    version: str = "1.35.4",
) -> ProviderOutput:
    """The output for `NAME[:VERSION]`, the control plane's objects and a Kubernetes version."""
    inputs = inputs_of(
        platform=KUBEADM,
        default_version=Version.parse(version),
        scheduler={"spec": dict(scheduler or {})},
        kubescheduler={"spec": dict(kubescheduler or {})},
        profiles=profiles,
        extenders=extenders,
        planned=True,
    )
    provider, release = find_provider(word)
    return provider_output(provider, release, compose(inputs))


def reported(output: ProviderOutput) -> list[tuple[str, str, str]]:
    """(severity, reason, path) of all findings."""
    return findings(output, "severity", "reason", "path")


def overrides(**config: Any) -> dict[str, Any]:
    """The spec of a KubeScheduler with these overrides."""
    return {"unsupportedConfigOverrides": config}
