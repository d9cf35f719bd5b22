"""kube-scheduler's in-tree plugins: versions, extension points, default weights.

Recorded for Kubernetes 1.29 to 1.37, and for a pre-release of 1.38, from the methods of the
plugins' Go types and the defaults of pkg/scheduler/apis/config/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from ..feature_gates import Gates
from ..versions import Version

OLDEST: Final = Version(1, 29)
NEWEST: Final = Version(1, 38)
PRE_RELEASES: Final[Mapping[int, Version]] = {38: Version(1, 38, 0, "beta.0")}
"""The minors whose rules are those of a pre-release, because there is no release yet."""
NEWEST_RELEASE: Final = Version(1, min(PRE_RELEASES, default=NEWEST.minor + 1) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Plugin:
    points: tuple[str, ...]  # extension points that it implements
    since: int = 0  # minor of 1.x that added it; 0: before the oldest recorded version
    until: int | None = None  # last minor that includes it; None: not removed
    points_since: Mapping[str, int] = field(default_factory=dict)  # point -> first minor with it
    points_until: Mapping[str, int] = field(default_factory=dict)  # point -> last minor with it

    def exists(self, minor: int) -> bool:
        return self.since <= minor and (self.until is None or minor <= self.until)

    def implements(self, point: str, minor: int) -> bool:
        return point in self.points_at(minor)

    def points_at(self, minor: int) -> tuple[str, ...]:
        return _points_at(self, minor)


@cache
def _points_at(plugin: Plugin, minor: int) -> tuple[str, ...]:
    return tuple(
        point
        for point in plugin.points
        if plugin.points_since.get(point, 0) <= minor <= plugin.points_until.get(point, minor)
    )


_FILTER: Final = ("preFilter", "filter")
_SCORE: Final = ("preScore", "score")
_PRE_FILTER_IN_37: Final = {"preFilter": 37}
_CLOUD_LIMITS: Final = Plugin(_FILTER, until=31)

PLUGINS: Final[Mapping[str, Plugin]] = {
    "SchedulingGates": Plugin(("preEnqueue",)),
    "PrioritySort": Plugin(("queueSort",)),
    "NodeName": Plugin(_FILTER, points_since=_PRE_FILTER_IN_37),
    "NodeUnschedulable": Plugin(_FILTER, points_since=_PRE_FILTER_IN_37),
    "TaintToleration": Plugin((*_FILTER, *_SCORE), points_since=_PRE_FILTER_IN_37),
    "NodeAffinity": Plugin((*_FILTER, *_SCORE)),
    "NodePorts": Plugin(_FILTER),
    "DeferredPodScheduling": Plugin((*_FILTER, "permit"), since=37),
    "NodeResourcesFit": Plugin(
        (*_FILTER, *_SCORE, "placementScore"), points_since={"placementScore": 36}
    ),
    "VolumeRestrictions": Plugin(_FILTER),
    "EBSLimits": _CLOUD_LIMITS,
    "GCEPDLimits": _CLOUD_LIMITS,
    "NodeVolumeLimits": Plugin(_FILTER),
    "AzureDiskLimits": _CLOUD_LIMITS,
    "CinderLimits": _CLOUD_LIMITS,
    "VolumeBinding": Plugin(
        (*_FILTER, *_SCORE, "reserve", "preBind"), points_since={"preScore": 30}
    ),
    "VolumeZone": Plugin(_FILTER),
    "PodTopologySpread": Plugin((*_FILTER, *_SCORE)),
    "InterPodAffinity": Plugin((*_FILTER, *_SCORE)),
    "DynamicResources": Plugin(
        (
            "preEnqueue",
            *_FILTER,
            "postFilter",
            *_SCORE,
            "reserve",
            "preBind",
            "postBind",
            "podGroupPostFilter",
        ),
        points_since={"score": 35, "preBind": 30, "podGroupPostFilter": 37},
        points_until={"preScore": 31, "postBind": 31},
    ),
    "DefaultPreemption": Plugin(
        ("preEnqueue", "postFilter", "reserve", "podGroupPostFilter"),
        points_since={"preEnqueue": 32, "podGroupPostFilter": 37, "reserve": 38},
    ),
    "NodeResourcesBalancedAllocation": Plugin(_SCORE),
    "ImageLocality": Plugin(("score",)),
    "DefaultBinder": Plugin(("bind",)),
    "NodeDeclaredFeatures": Plugin(_FILTER, since=35),
    "GangScheduling": Plugin(
        ("preEnqueue", "reserve", "permit", "placementFeasible"),
        since=35,
        points_since={"placementFeasible": 38},
        points_until={"reserve": 35, "permit": 37},
    ),
    "TopologyPlacementGenerator": Plugin(("placementGenerate",), since=36),
    "PodGroupPodsCount": Plugin(("placementScore",), since=36),
}
"""Every plugin, in the order in which the newest kube-scheduler enables them by default."""

INVALID_PLUGINS: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
"""Plugins that kube-scheduler rejects by name, even where it ignores unknown names."""
INVALID_PLUGINS_SINCE: Final = 31
"""The minor from which it rejects them; 1.31 still includes them, for multiPoint only."""

_WEIGHTS: Final = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "PodGroupPodsCount": 1,
}
_GATED: Final = {
    "SchedulingGates": "PodSchedulingReadiness",
    "DynamicResources": "DynamicResourceAllocation",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "GangScheduling": "GangScheduling",
    "DeferredPodScheduling": "InPlacePodVerticalScalingSchedulerPreemption",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}
_GATED_UNTIL: Final = {"SchedulingGates": 37, "DynamicResources": 37}
"""The last minor that has the gate of a plugin; later ones always enable the plugin by default."""
_GANGS_SINCE: Final = 37
"""The minor in which GenericWorkload replaced the gate GangScheduling."""
_NODE_NAME_FIRST_SINCE: Final = 37
_PREEMPTION_RESERVES_SINCE: Final = 38
_PREEMPTION: Final = frozenset({"DefaultPreemption"})


def on_record(version: Version) -> bool:
    """Return whether the tables of this module cover the version."""
    return version >= OLDEST and not newer_than_recorded(version)


def newer_than_recorded(version: Version) -> bool:
    """Return whether the version is newer than these tables; then the rules of NEWEST apply."""
    return (version.major, version.minor) > (NEWEST.major, NEWEST.minor)


def plugins(version: Version) -> Mapping[str, Plugin]:
    """Return the plugins of the stock kube-scheduler of this version."""
    return _plugins(version.minor)


def listable_plugins(version: Version) -> Mapping[str, Plugin]:
    """Return the plugins that can be listed at every extension point that they implement."""
    known = plugins(version)
    refused = INVALID_PLUGINS if version.minor >= INVALID_PLUGINS_SINCE else ()
    return {name: plugin for name, plugin in known.items() if name not in refused}


@cache
def _plugins(minor: int) -> Mapping[str, Plugin]:
    return {name: plugin for name, plugin in PLUGINS.items() if plugin.exists(minor)}


def plugin_gate(name: str, minor: int) -> str:
    """Return the feature gate on which a plugin's default depends; empty if it has none."""
    if name == "GangScheduling" and minor >= _GANGS_SINCE:
        return "GenericWorkload"
    return _GATED.get(name, "") if minor <= _GATED_UNTIL.get(name, minor) else ""


def disabled_by_default(gates: Gates, point: str) -> frozenset[str]:
    """Return the plugins that are enabled by default at multiPoint, but not at this point."""
    if point == "reserve" and gates.version.minor >= _PREEMPTION_RESERVES_SINCE:
        return frozenset() if gates.enabled("GenericWorkload") else _PREEMPTION
    return frozenset()


def default_plugins(gates: Gates) -> list[tuple[str, int]]:
    """Return (name, weight) of the plugins that are enabled by default at multiPoint, in order.

    Weight 0 means unset; kube-scheduler then uses 1.
    """
    minor = gates.version.minor
    enabled: list[tuple[str, int]] = []
    known = list(plugins(gates.version))
    if minor == 29:
        # Plugins behind a feature gate come last, and this one had a gate then.
        known.append(known.pop(known.index("SchedulingGates")))
    if minor < _NODE_NAME_FIRST_SINCE:
        known.insert(known.index("NodeName"), known.pop(known.index("NodeUnschedulable")))
    for name in known:
        if name == "CinderLimits" or (name in INVALID_PLUGINS and minor > 30):
            continue  # included, but not enabled by default
        gate = plugin_gate(name, minor)
        if gate and not gates.enabled(gate):
            continue
        weight = _WEIGHTS.get(name, 0)
        if name == "DynamicResources" and minor >= 35:
            weight = 2
        enabled.append((name, weight))
    return enabled


_FIT: Final = "scoringStrategy in the arguments of NodeResourcesFit"


def _fit(strategy: str, more: str = "") -> str:
    args = f"{{scoringStrategy: {{type: {strategy}{more}}}}}"
    return f"use {_FIT}: {{name: NodeResourcesFit, args: {args}}}"


OLD_PLUGINS: Final[Mapping[str, str]] = {
    "NodeResourcesLeastAllocated": _fit("LeastAllocated"),
    "NodeResourcesMostAllocated": _fit("MostAllocated"),
    "RequestedToCapacityRatio": _fit(
        "RequestedToCapacityRatio",
        ", requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, "
        "score: 10}]}",
    ),
    "NodeLabel": "use addedAffinity in the arguments of NodeAffinity",
    "ServiceAffinity": "use defaultConstraints in the arguments of PodTopologySpread",
    "SelectorSpread": "use PodTopologySpread, which spreads Pods by default",
    "DefaultPodTopologySpread": "use PodTopologySpread, which spreads Pods by default",
    "NodePreferAvoidPods": "use a taint with effect PreferNoSchedule",
    "EvenPodsSpread": "use PodTopologySpread",
    "GeneralPredicates": "use NodeResourcesFit, NodeName, NodePorts and NodeAffinity",
    "PodFitsResources": "use NodeResourcesFit",
    "PodFitsHostPorts": "use NodePorts",
    "HostName": "use NodeName",
    "MatchNodeSelector": "use NodeAffinity",
    "PodToleratesNodeTaints": "use TaintToleration",
    "CheckNodeUnschedulable": "use NodeUnschedulable",
    "MatchInterPodAffinity": "use InterPodAffinity",
    "InterPodAffinityPriority": "use InterPodAffinity",
    "NodeAffinityPriority": "use NodeAffinity",
    "TaintTolerationPriority": "use TaintToleration",
    "ImageLocalityPriority": "use ImageLocality",
    "LeastRequestedPriority": _fit("LeastAllocated"),
    "MostRequestedPriority": _fit("MostAllocated"),
    "BalancedResourceAllocation": "use NodeResourcesBalancedAllocation",
    "SelectorSpreadPriority": "use PodTopologySpread, which spreads Pods by default",
    "EvenPodsSpreadPriority": "use PodTopologySpread",
    "CheckVolumeBinding": "use VolumeBinding",
    "NoVolumeZoneConflict": "use VolumeZone",
    "NoDiskConflict": "use VolumeRestrictions",
    "MaxCSIVolumeCountPred": "use NodeVolumeLimits",
}
"""Plugins of API versions before v1, and predicates and priorities of Policy -> the fix."""
