"""cluster-autoscaler and Karpenter: the configurations with which they simulate kube-scheduler.

Neither runs an extender or a score, and both serve Pods of every schedulerName.

cluster-autoscaler: kubernetes-sigs/cluster-autoscaler at 33c3f97 (2026-08-21, k8s.io/kubernetes
1.37.0-rc.0), where kubernetes/autoscaler moved that code. --scheduler-config-file is decoded and
validated as by kube-scheduler (pkg/utils/scheduler/scheduler.go). Exactly one profile is allowed,
with in-tree plugins (pkg/simulator/framework/handle.go). Only PreFilter, Filter and Reserve run
(pkg/simulator/clustersnapshot/predicate/plugin_runner.go). Gates are those of its own flag
--feature-gates.

Karpenter: kubernetes-sigs/karpenter at 65fc694 (2026-08-20), SchedulerConfiguration in
pkg/operator/options/options.go: the flag --scheduler-config, the variable SCHEDULER_CONFIG, and
settings.schedulerConfig of the chart in kwok/charts, with default topology spread constraints.
1.14.1, the newest tag of that source, has none of these and simulates without a scheduler
configuration. Nothing else of a scheduler's configuration matters to Karpenter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ....base.findings import WARNING
from ...language.feature_gates import FLAG as FEATURE_GATES
from ...language.versions import Version
from ..places import unseen_filters
from .desired import Desired, scheduler_name
from .profile_differences import (
    FIT,
    SPREAD,
    filtering_profile,
    plugin_arguments,
    profile_differences,
)
from .provider import ProviderFile, ProviderFinding, ProviderOutput


def _unsimulated_filters(desired: Desired, autoscaler: str) -> Iterator[ProviderFinding]:
    for problem in unseen_filters(desired.config, autoscaler):
        path = desired.extender(int(problem.path[1]))
        yield ProviderFinding(problem.reason, path, problem.message, problem.fix)


# --- cluster-autoscaler --------------------------------------------------------------------------

SIMULATED: Final = ("preFilter", "filter", "reserve")
"""The extension points that cluster-autoscaler runs."""


def write_cluster_autoscaler(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the file of --scheduler-config-file with the first profile."""
    file = ProviderFile(
        "cluster-autoscaler-scheduler.yaml",
        "in a ConfigMap of cluster-autoscaler's Pod: --scheduler-config-file=FILE",
        desired.document({"profiles": [_with_ignored_resources(desired)]}),
    )
    findings = (
        *_differences_from_first(desired),
        *_unsimulated_filters(desired, "cluster-autoscaler"),
        *_gates(desired),
    )
    return ProviderOutput((file,), findings)


def _with_ignored_resources(desired: Desired) -> dict[str, Any]:
    """Add resources that extenders manage to NodeResourcesFit's arguments in the first profile.

    kube-scheduler sets them at its start, instead of those in the file (buildExtenders in
    pkg/scheduler/scheduler.go, Kubernetes 1.36.3); cluster-autoscaler reads no extenders.
    """
    profile = dict(desired.profiles[0])
    ignored = [
        str(resource.get("name"))
        for extender in desired.config.get("extenders") or ()
        for resource in extender.get("managedResources") or ()
        if resource.get("ignoredByScheduler")
    ]
    if not ignored:
        return profile
    args = {**plugin_arguments(profile).get(FIT, {}), "ignoredResources": ignored}
    others = [entry for entry in profile.get("pluginConfig") or () if entry.get("name") != FIT]
    return {**profile, "pluginConfig": [*others, {"name": FIT, "args": args}]}


def _differences_from_first(desired: Desired) -> Iterator[ProviderFinding]:
    """Report profiles that decide differently whether a node is feasible."""
    first, *others = map(filtering_profile, desired.profiles)
    for index, profile in enumerate(others, 1):
        for difference in profile_differences(profile, first, desired.gates, SIMULATED):
            message = (
                f"cluster-autoscaler supports one profile, so it simulates Pods of "
                f'"{scheduler_name(profile)}" with "{scheduler_name(first)}", which differs: here '
                f"{difference.text}"
            )
            path = desired.profile(index, *difference.path)
            fix = "use the same filters and arguments in both profiles"
            yield ProviderFinding("ProfileNotSimulated", path, message, fix)


def _gates(desired: Desired) -> Iterator[ProviderFinding]:
    if FEATURE_GATES in desired.flags:
        fix = f"start it with --feature-gates={','.join(desired.flags[FEATURE_GATES])}"
        message, path = (
            "cluster-autoscaler has feature gates of its own",
            desired.flag(FEATURE_GATES),
        )
        yield ProviderFinding("OwnFeatureGates", path, message, fix, WARNING)


# --- Karpenter -----------------------------------------------------------------------------------

_NEWEST_WITHOUT: Final = Version(1, 14, 1)
_CONSTRAINT: Final = (
    "maxSkew", "topologyKey", "whenUnsatisfiable", "minDomains", "nodeAffinityPolicy",
    "nodeTaintsPolicy",
)  # fmt: skip
"""The fields of a constraint that Karpenter supports and kube-scheduler allows here."""


def write_karpenter(desired: Desired, release: Version | None) -> ProviderOutput:
    """Write the value of --scheduler-config, from the first profile."""
    arguments = plugin_arguments(desired.profiles[0]).get(SPREAD, {})
    constraints: Sequence[Mapping[str, Any]] = arguments.get("defaultConstraints") or ()
    content: dict[str, Any] = {}
    findings: list[ProviderFinding] = []
    if constraints:
        kept = [
            {key: constraint[key] for key in _CONSTRAINT if key in constraint}
            for constraint in constraints
        ]
        content = {"podTopologySpread": {"defaultConstraints": kept}}
        if release is not None and release <= _NEWEST_WITHOUT:
            message = f"Karpenter {_NEWEST_WITHOUT} and older support no default constraints"
            fix = "upgrade Karpenter, or set topologySpreadConstraints in Pods"
            path = desired.profile(0, "pluginConfig")
            findings.append(ProviderFinding("VersionNotSupported", path, message, fix))
    file = ProviderFile(
        "karpenter-scheduler-config.yaml",
        "the value of Karpenter's environment variable SCHEDULER_CONFIG",
        content,
    )
    findings += _unsimulated_filters(desired, "Karpenter")
    findings += _differences_from_defaults(desired, constraints)
    return ProviderOutput((file,), tuple(findings))


def _differences_from_defaults(
    desired: Desired, constraints: Sequence[Mapping[str, Any]]
) -> Iterator[ProviderFinding]:
    """Report profiles whose feasible nodes differ from those of the simulation."""
    args = {"defaultingType": "List", "defaultConstraints": list(constraints)}
    simulated = filtering_profile({"pluginConfig": [{"name": SPREAD, "args": args}]})
    points = ("preFilter", "filter")
    for index, profile in enumerate(desired.profiles):
        filtering = filtering_profile(profile)
        for difference in profile_differences(filtering, simulated, desired.gates, points):
            message = (
                f'Karpenter simulates Pods of "{scheduler_name(profile)}" with default filters and '
                f"the constraints of the first profile, which differ: here {difference.text}"
            )
            path = desired.profile(index, *difference.path)
            fix = "use the default filters, and the same constraints in all profiles"
            yield ProviderFinding("ProfileNotSimulated", path, message, fix)
