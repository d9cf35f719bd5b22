"""Gardener: one of two profiles and the feature gates, in the Shoot.

Source: gardener/gardener at b312835 (v1.150.0-dev, 2026-08-21): KubeSchedulerConfig in
pkg/apis/core/v1beta1/types_shoot.go, the template of the configuration in
pkg/component/kubernetes/scheduler/scheduler.go, and docs/usage/shoot/shoot_scheduling_profiles.md.
With bin-packing, a webhook gives new Pods of default-scheduler the name bin-packing-scheduler.
kubeMaxPDVols is never written: kube-scheduler does not respect it, and Gardener forbids it from
Kubernetes 1.35 on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...language.feature_gates import FLAG as FEATURE_GATES
from ...language.versions import Version
from .desired import Desired
from .eks import default_profile
from .profile_differences import FIT, plugin_arguments, profile_differences
from .provider_format import ProviderFile, ProviderFinding, ProviderOutput
from .unsupported import SECONDARY, unsupported

_PACKED: Final = "MostAllocated"
PROFILES: Final[Mapping[str, Mapping[str, Any]]] = {
    "balanced": {},
    "bin-packing": {
        "pluginConfig": [{"name": FIT, "args": {"scoringStrategy": {"type": _PACKED}}}],
        "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
    },
}
"""Profile of a Shoot -> the profile of kube-scheduler that new Pods get."""


def write(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write a patch of the Shoot."""
    taken = default_profile(desired)
    profile = desired.profiles[taken] if taken >= 0 else {}
    strategy = plugin_arguments(profile).get(FIT, {}).get("scoringStrategy") or {}
    name = "bin-packing" if strategy.get("type") == _PACKED else "balanced"
    scheduler: dict[str, Any] = {"profile": name}
    if desired.gates.explicit:
        scheduler["featureGates"] = dict(desired.gates.explicit)
    file = ProviderFile(
        "shoot-patch.yaml",
        "in the garden cluster: kubectl patch shoot NAME --type merge --patch-file FILE",
        {"spec": {"kubernetes": {"kubeScheduler": scheduler}}},
    )
    findings = [
        *_differences(desired, taken, name),
        *unsupported(desired, "Gardener", profile=taken, flags=(FEATURE_GATES,)),
    ]
    return ProviderOutput((file,), tuple(findings))


def _differences(desired: Desired, index: int, name: str) -> Iterator[ProviderFinding]:
    if index < 0:
        return
    for difference in profile_differences(desired.profiles[index], PROFILES[name], desired.gates):
        yield ProviderFinding(
            "ProfileDiffers",
            desired.profile(index, *difference.path),
            f"the closest profile of Gardener, {name}, differs: here {difference.text}",
            f"accept {name}, or {SECONDARY}",
        )
