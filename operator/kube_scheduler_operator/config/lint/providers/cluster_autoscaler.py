"""cluster-autoscaler: the scheduler configuration with which it simulates.

Source: kubernetes-sigs/cluster-autoscaler at 33c3f97 (2026-08-21, k8s.io/kubernetes 1.37.0-rc.0),
where kubernetes/autoscaler moved that code. --scheduler-config-file is decoded and validated as by
kube-scheduler (pkg/utils/scheduler/scheduler.go). Exactly one profile is allowed, with in-tree
plugins (pkg/simulator/framework/handle.go), and it serves Pods of every schedulerName. Only
PreFilter, Filter and Reserve run (pkg/simulator/clustersnapshot/predicate/plugin_runner.go): no
score, no extender, no other field. Gates are those of its own flag --feature-gates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...language.feature_gates import FLAG as FEATURE_GATES
from ...language.versions import Version
from .desired import Desired, scheduler_name
from .profile_differences import FIT, filtering_profile, plugin_arguments, profile_differences
from .provider_format import ProviderFile, ProviderFinding, ProviderOutput
from .unsupported import unsimulated_filters

SIMULATED: Final = ("preFilter", "filter", "reserve")
"""The extension points that cluster-autoscaler runs."""


def write(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the file of --scheduler-config-file with the first profile."""
    profile = _with_ignored_resources(desired)
    file = ProviderFile(
        "cluster-autoscaler-scheduler.yaml",
        "in a ConfigMap of cluster-autoscaler's Pod: --scheduler-config-file=FILE",
        desired.document({"profiles": [profile]}),
    )
    findings = [
        *_profiles(desired),
        *unsimulated_filters(desired, "cluster-autoscaler"),
        *_gates(desired),
    ]
    return ProviderOutput((file,), tuple(findings))


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


def _profiles(desired: Desired) -> Iterator[ProviderFinding]:
    """Report profiles that decide differently whether a node is feasible."""
    first, *others = map(filtering_profile, desired.profiles)
    for index, profile in enumerate(others, 1):
        for difference in profile_differences(profile, first, desired.gates, SIMULATED):
            yield ProviderFinding(
                "ProfileNotSimulated",
                desired.profile(index, *difference.path),
                f'cluster-autoscaler supports one profile, so it simulates Pods of "'
                f'{scheduler_name(profile)}" with "{scheduler_name(first)}", which differs: here '
                f"{difference.text}",
                "use the same filters and arguments in both profiles",
            )


def _gates(desired: Desired) -> Iterator[ProviderFinding]:
    if FEATURE_GATES in desired.flags:
        value = ",".join(desired.flags[FEATURE_GATES])
        yield ProviderFinding(
            "OwnFeatureGates",
            desired.flag(FEATURE_GATES),
            "cluster-autoscaler has feature gates of its own",
            f"start it with --feature-gates={value}",
            "warning",
        )
