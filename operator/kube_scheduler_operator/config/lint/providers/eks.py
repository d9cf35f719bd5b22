"""EKS: the scoring strategy of NodeResourcesFit, as a parameter of the cluster.

Source: the model of the EKS API, 2017-11-01, in botocore 1.44.8 (2026-11-20), shapes
KubeSchedulerConfigRequest, NodeResourcesFitConfig, ScoringStrategy and ResourceWeight. A weight is
1 to 100, as in kube-scheduler. DescribeClusterVersions returns the resources and weights that one
version of Kubernetes allows; they are not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import format_path
from ....base.objects import mapping
from ...language.schema import DEFAULT_SCHEDULER
from ...language.versions import Version
from .desired import Desired, scheduler_name
from .profile_differences import FIT, plugin_arguments, profile_differences
from .provider_format import ProviderFile, ProviderFinding, ProviderOutput
from .unsupported import SECONDARY, unsupported

STRATEGIES: Final = ("LeastAllocated", "MostAllocated")
MOST_RESOURCES: Final = 100


def write(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the parameter kubeSchedulerConfig of UpdateClusterConfig and CreateCluster."""
    taken = default_profile(desired)
    profile = desired.profiles[taken] if taken >= 0 else {}
    wanted = mapping(plugin_arguments(profile).get(FIT, {}).get("scoringStrategy"))
    strategy: dict[str, Any] = {"type": wanted.get("type") or STRATEGIES[0]}
    if wanted.get("resources"):
        strategy["resources"] = [
            {"name": resource.get("name"), "weight": resource.get("weight") or 1}
            for resource in wanted["resources"]
        ]
    findings = list(_strategy(desired, taken, strategy))
    if any(finding.reason == "StrategyNotSupported" for finding in findings):
        strategy = {"type": STRATEGIES[0]}
    else:
        findings += _differences(desired, taken, strategy)
    findings += unsupported(desired, "EKS", profile=taken)
    file = ProviderFile(
        "eks-cluster-config.yaml",
        "aws eks update-cluster-config --name CLUSTER --cli-input-yaml file://FILE",
        {"kubeSchedulerConfig": {"nodeResourcesFit": {"scoringStrategy": strategy}}},
    )
    return ProviderOutput((file,), tuple(findings))


def default_profile(desired: Desired) -> int:
    """Return the index of default-scheduler's profile; -1 without one."""
    names = [scheduler_name(profile) for profile in desired.profiles]
    return names.index(DEFAULT_SCHEDULER) if DEFAULT_SCHEDULER in names else -1


def _strategy(
    desired: Desired, index: int, strategy: Mapping[str, Any]
) -> Iterator[ProviderFinding]:
    if strategy["type"] not in STRATEGIES:
        yield _finding(
            desired,
            index,
            "StrategyNotSupported",
            f"EKS supports the scoring strategies {' and '.join(STRATEGIES)}, not "
            f"{strategy['type']}",
            "type",
        )
        return
    resources = strategy.get("resources") or ()
    if len(resources) > MOST_RESOURCES:
        yield _finding(
            desired,
            index,
            "ResourcesNotSupported",
            f"EKS supports {MOST_RESOURCES} resources, and these are {len(resources)}",
            "resources",
        )


def _finding(
    desired: Desired, index: int, reason: str, message: str, *below: str | int
) -> ProviderFinding:
    configs = desired.profiles[index].get("pluginConfig") or ()
    at = next(at for at, config in enumerate(configs) if config.get("name") == FIT)
    path = desired.profile(index, "pluginConfig", at, "args", "scoringStrategy", *below)
    return ProviderFinding(reason, path, message, f"change it, or {SECONDARY}")


def _differences(
    desired: Desired, index: int, strategy: Mapping[str, Any]
) -> Iterator[ProviderFinding]:
    """Report everything in the profile besides the scoring strategy."""
    if index < 0:
        return
    profile = desired.profiles[index]
    args = {"scoringStrategy": strategy}
    taken = {"pluginConfig": [{"name": FIT, "args": args}]}
    for difference in profile_differences(profile, taken, desired.gates):
        yield ProviderFinding(
            "ProfileDiffers",
            desired.profile(index, *difference.path),
            f"EKS supports only the scoring strategy of {FIT}, so it ignores "
            f"{format_path(difference.path)} ({difference.text})",
            f"remove it, or {SECONDARY}",
        )
