"""Karpenter: the default topology spread constraints with which it simulates.

Source: kubernetes-sigs/karpenter at 65fc694 (2026-08-20), SchedulerConfiguration in
pkg/operator/options/options.go: the flag --scheduler-config, the variable SCHEDULER_CONFIG, and
settings.schedulerConfig of the chart in kwok/charts. 1.14.1, the newest tag of that source, has
none of these and simulates without a scheduler configuration. The constraints apply to Pods of
every schedulerName; nothing else of a scheduler's configuration matters to Karpenter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...language.versions import Version
from .desired import Desired, scheduler_name
from .profile_differences import SPREAD, filtering_profile, plugin_arguments, profile_differences
from .provider_format import ProviderFile, ProviderFinding, ProviderOutput
from .unsupported import unsimulated_filters

NEWEST_WITHOUT: Final = Version(1, 14, 1)
SIMULATED: Final = ("preFilter", "filter")
_FIELDS: Final = (
    "maxSkew", "topologyKey", "whenUnsatisfiable", "minDomains", "nodeAffinityPolicy",
    "nodeTaintsPolicy",
)  # fmt: skip
"""The fields of a constraint that Karpenter supports and kube-scheduler allows here."""


def write(desired: Desired, release: Version | None) -> ProviderOutput:
    """Write the value of --scheduler-config, from the first profile."""
    constraints = _constraints(desired.profiles[0])
    content: dict[str, Any] = {}
    if constraints:
        kept = [
            {key: constraint[key] for key in _FIELDS if key in constraint}
            for constraint in constraints
        ]
        content = {"podTopologySpread": {"defaultConstraints": kept}}
    file = ProviderFile(
        "karpenter-scheduler-config.yaml",
        "the value of Karpenter's environment variable SCHEDULER_CONFIG",
        content,
    )
    findings = list(unsimulated_filters(desired, "Karpenter"))
    if constraints and release is not None and release <= NEWEST_WITHOUT:
        findings.insert(0, _too_old(desired))
    return ProviderOutput((file,), (*findings, *_profiles(desired, constraints)))


def _constraints(profile: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    constraints: Sequence[Mapping[str, Any]] = (
        plugin_arguments(profile).get(SPREAD, {}).get("defaultConstraints") or ()
    )
    return constraints


def _too_old(desired: Desired) -> ProviderFinding:
    return ProviderFinding(
        "VersionNotSupported",
        desired.profile(0, "pluginConfig"),
        f"Karpenter {NEWEST_WITHOUT} and older support no default constraints",
        "upgrade Karpenter, or set topologySpreadConstraints in Pods",
    )


def _profiles(
    desired: Desired, constraints: Sequence[Mapping[str, Any]]
) -> Iterator[ProviderFinding]:
    """Report profiles whose feasible nodes differ from those of the simulation."""
    args = {"defaultingType": "List", "defaultConstraints": list(constraints)}
    simulated = filtering_profile({"pluginConfig": [{"name": SPREAD, "args": args}]})
    for index, profile in enumerate(desired.profiles):
        filtering = filtering_profile(profile)
        for difference in profile_differences(filtering, simulated, desired.gates, SIMULATED):
            yield ProviderFinding(
                "ProfileNotSimulated",
                desired.profile(index, *difference.path),
                f'Karpenter simulates Pods of "{scheduler_name(profile)}" with default filters and '
                f"the constraints of the first profile, which differ: here {difference.text}",
                "use the default filters, and the same constraints in all profiles",
            )
