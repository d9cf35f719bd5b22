"""AKS, EKS and Gardener, which run the control plane's scheduler with a part of its settings.

Sources
AKS: Microsoft's articles (azure-aks-docs at fb060ab), which operator/profiles/aks.py names, with
the fields, plugins and names; they also name Kubernetes 1.33 as the oldest version.
EKS: the model of the EKS API, 2017-11-01, in botocore 1.44.8 (2026-11-20), shapes
KubeSchedulerConfigRequest, NodeResourcesFitConfig, ScoringStrategy and ResourceWeight. A weight is
1 to 100, as in kube-scheduler. DescribeClusterVersions returns the resources and weights that one
version of Kubernetes allows; they are not known here.
Gardener: gardener/gardener at b312835 (v1.150.0-dev, 2026-08-21): KubeSchedulerConfig in
pkg/apis/core/v1beta1/types_shoot.go, the template of the configuration in
pkg/component/kubernetes/scheduler/scheduler.go, and docs/usage/shoot/shoot_scheduling_profiles.md.
With bin-packing, a webhook gives new Pods of default-scheduler the name bin-packing-scheduler.
kubeMaxPDVols is never written: kube-scheduler does not respect it, and Gardener forbids it from
Kubernetes 1.35 on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import format_path
from ....base.objects import mapping
from ....base.source.yaml_text import BlockText, yaml_text
from ...effective.profiles.aks_support import FIELDS, NAME, RESERVED_PROFILE, unsupported_plugins
from ...language.feature_gates import FLAG as FEATURE_GATES
from ...language.schema import DEFAULT_SCHEDULER
from ...language.versions import Version
from .desired import Desired, scheduler_name
from .profile_differences import FIT, plugin_arguments, profile_differences
from .provider import SECONDARY, ProviderFile, ProviderFinding, ProviderOutput, unsupported

_CHANGE: Final = f"change it, or {SECONDARY}"
_REMOVE: Final = f"remove it, or {SECONDARY}"

# --- AKS: a SchedulerConfiguration (preview) with a KubeSchedulerConfiguration inside ------------

_OLDEST_AKS: Final = Version(1, 33)


def write_aks(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the SchedulerConfiguration "upstream"."""
    raw = {key: desired.config[key] for key in FIELDS if key in desired.config}
    raw = desired.document({**raw, "profiles": list(desired.profiles)})
    document: dict[str, Any] = {
        "apiVersion": "aks.azure.com/v1alpha1",
        "kind": "SchedulerConfiguration",
        "metadata": {"name": NAME},
        "spec": {"rawConfig": BlockText(yaml_text([raw]))},
    }
    use = (
        "after `az aks update --enable-upstream-kubescheduler-user-configuration`: "
        "kubectl apply -f FILE"
    )
    file = ProviderFile("scheduler-configuration.yaml", use, document)
    findings = (*_not_for_aks(desired), *unsupported(desired, "AKS", fields=FIELDS))
    return ProviderOutput((file,), findings)


def _not_for_aks(desired: Desired) -> Iterator[ProviderFinding]:
    version = desired.gates.version
    if version < _OLDEST_AKS:
        message = (
            f"AKS supports scheduler profiles from Kubernetes {_OLDEST_AKS.short} on, not in "
            f"{version.short}"
        )
        yield ProviderFinding("VersionNotSupported", "", message, "upgrade the cluster")
    for index, profile in enumerate(desired.profiles):
        if scheduler_name(profile) == RESERVED_PROFILE:
            path = desired.profile(index, "schedulerName")
            message = f'AKS reserves the profile "{RESERVED_PROFILE}"'
            yield ProviderFinding("ReservedProfile", path, message, "use another name")
        for below, _, wrong in unsupported_plugins(profile):
            path = desired.profile(index, *below)
            yield ProviderFinding("PluginNotSupported", path, wrong, _REMOVE)


# --- EKS: the scoring strategy of NodeResourcesFit, as a parameter of the cluster ----------------

_STRATEGIES: Final = ("LeastAllocated", "MostAllocated")
_MOST_RESOURCES: Final = 100


def write_eks(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the parameter kubeSchedulerConfig of UpdateClusterConfig and CreateCluster."""
    taken = _default_profile(desired)
    wanted = _strategy(desired, taken)
    strategy: dict[str, Any] = {"type": wanted.get("type") or _STRATEGIES[0]}
    if wanted.get("resources"):
        strategy["resources"] = [
            {"name": resource.get("name"), "weight": resource.get("weight") or 1}
            for resource in wanted["resources"]
        ]
    findings = list(_not_for_eks(desired, taken, strategy))
    if any(finding.reason == "StrategyNotSupported" for finding in findings):
        strategy = {"type": _STRATEGIES[0]}
    else:
        findings += _ignored_by_eks(desired, taken, strategy)
    findings += unsupported(desired, "EKS", profile=taken)
    file = ProviderFile(
        "eks-cluster-config.yaml",
        "aws eks update-cluster-config --name CLUSTER --cli-input-yaml file://FILE",
        {"kubeSchedulerConfig": {"nodeResourcesFit": {"scoringStrategy": strategy}}},
    )
    return ProviderOutput((file,), tuple(findings))


def _default_profile(desired: Desired) -> int:
    """Return the index of default-scheduler's profile; -1 without one."""
    names = [scheduler_name(profile) for profile in desired.profiles]
    return names.index(DEFAULT_SCHEDULER) if DEFAULT_SCHEDULER in names else -1


def _strategy(desired: Desired, index: int) -> Mapping[str, Any]:
    """Return the scoring strategy of a profile; empty without a profile."""
    profile = desired.profiles[index] if index >= 0 else {}
    return mapping(plugin_arguments(profile).get(FIT, {}).get("scoringStrategy"))


def _not_for_eks(
    desired: Desired, index: int, strategy: Mapping[str, Any]
) -> Iterator[ProviderFinding]:
    """Report a scoring strategy that EKS rejects."""
    resources = strategy.get("resources") or ()
    if strategy["type"] not in _STRATEGIES:
        supported = " and ".join(_STRATEGIES)
        message = f"EKS supports the scoring strategies {supported}, not {strategy['type']}"
        path = _strategy_path(desired, index, "type")
        yield ProviderFinding("StrategyNotSupported", path, message, _CHANGE)
    elif len(resources) > _MOST_RESOURCES:
        message = f"EKS supports {_MOST_RESOURCES} resources, and these are {len(resources)}"
        path = _strategy_path(desired, index, "resources")
        yield ProviderFinding("ResourcesNotSupported", path, message, _CHANGE)


def _strategy_path(desired: Desired, index: int, field: str) -> str:
    configs = desired.profiles[index].get("pluginConfig") or ()
    at = next(at for at, config in enumerate(configs) if config.get("name") == FIT)
    return desired.profile(index, "pluginConfig", at, "args", "scoringStrategy", field)


def _ignored_by_eks(
    desired: Desired, index: int, strategy: Mapping[str, Any]
) -> Iterator[ProviderFinding]:
    """Report everything in the profile besides the scoring strategy."""
    if index < 0:
        return
    taken = {"pluginConfig": [{"name": FIT, "args": {"scoringStrategy": strategy}}]}
    for difference in profile_differences(desired.profiles[index], taken, desired.gates):
        message = (
            f"EKS supports only the scoring strategy of {FIT}, so it ignores "
            f"{format_path(difference.path)} ({difference.text})"
        )
        path = desired.profile(index, *difference.path)
        yield ProviderFinding("ProfileDiffers", path, message, _REMOVE)


# --- Gardener: one of two profiles and the feature gates, in the Shoot ---------------------------

_PACKED: Final = "MostAllocated"
PROFILES: Final[Mapping[str, Mapping[str, Any]]] = {
    "balanced": {},
    "bin-packing": {
        "pluginConfig": [{"name": FIT, "args": {"scoringStrategy": {"type": _PACKED}}}],
        "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
    },
}
"""Profile of a Shoot -> the profile of kube-scheduler that new Pods get."""


def write_gardener(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write a patch of the Shoot."""
    taken = _default_profile(desired)
    name = "bin-packing" if _strategy(desired, taken).get("type") == _PACKED else "balanced"
    scheduler: dict[str, Any] = {"profile": name}
    if desired.gates.explicit:
        scheduler["featureGates"] = dict(desired.gates.explicit)
    file = ProviderFile(
        "shoot-patch.yaml",
        "in the garden cluster: kubectl patch shoot NAME --type merge --patch-file FILE",
        {"spec": {"kubernetes": {"kubeScheduler": scheduler}}},
    )
    findings = (
        *_differences_from_shoot(desired, taken, name),
        *unsupported(desired, "Gardener", profile=taken, flags=(FEATURE_GATES,)),
    )
    return ProviderOutput((file,), findings)


def _differences_from_shoot(desired: Desired, index: int, name: str) -> Iterator[ProviderFinding]:
    if index < 0:
        return
    for difference in profile_differences(desired.profiles[index], PROFILES[name], desired.gates):
        message = f"the closest profile of Gardener, {name}, differs: here {difference.text}"
        path = desired.profile(index, *difference.path)
        yield ProviderFinding("ProfileDiffers", path, message, f"accept {name}, or {SECONDARY}")
