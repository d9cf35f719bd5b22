"""kube-scheduler's own plugins: since when, at which extension points, and which are on by default.

Kubernetes 1.29 to 1.36 are on record: the methods of the plugins' Go types, and the defaults of
pkg/scheduler/apis/config/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from .feature_gates import Gates
from .versions import Version

OLDEST: Final = Version(1, 29)
NEWEST: Final = Version(1, 36)


@dataclass(frozen=True, slots=True, eq=False)
class Plugin:
    """One plugin of kube-scheduler's own.

    Attributes:
        points: extension points that it implements.
        since: the minor of 1.x that brought it, 0 for before the oldest on record.
        until: the last minor that had it, None for still there.
        points_since: the minor that brought an extension point to it.
        points_until: the last minor in which it had an extension point.
    """

    points: tuple[str, ...]
    since: int = 0
    until: int | None = None
    points_since: Mapping[str, int] = field(default_factory=dict)
    points_until: Mapping[str, int] = field(default_factory=dict)

    def exists(self, minor: int) -> bool:
        """True if kube-scheduler 1.`minor` has it."""
        return self.since <= minor and (self.until is None or minor <= self.until)

    def implements(self, point: str, minor: int) -> bool:
        """True if it may be listed at `point` in 1.`minor`."""
        return point in self.points_at(minor)

    def points_at(self, minor: int) -> tuple[str, ...]:
        """The extension points that it has for sure in 1.`minor`."""
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
_CLOUD_LIMITS: Final = Plugin(_FILTER, until=31)

PLUGINS: Final[Mapping[str, Plugin]] = {
    "SchedulingGates": Plugin(("preEnqueue",)),
    "PrioritySort": Plugin(("queueSort",)),
    "NodeUnschedulable": Plugin(("filter",)),
    "NodeName": Plugin(("filter",)),
    "TaintToleration": Plugin(("filter", *_SCORE)),
    "NodeAffinity": Plugin((*_FILTER, *_SCORE)),
    "NodePorts": Plugin(_FILTER),
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
        ("preEnqueue", *_FILTER, "postFilter", *_SCORE, "reserve", "preBind", "postBind"),
        points_since={"score": 35, "preBind": 30},
        points_until={"preScore": 31, "postBind": 31},
    ),
    "DefaultPreemption": Plugin(("preEnqueue", "postFilter"), points_since={"preEnqueue": 32}),
    "NodeResourcesBalancedAllocation": Plugin(_SCORE),
    "ImageLocality": Plugin(("score",)),
    "DefaultBinder": Plugin(("bind",)),
    "NodeDeclaredFeatures": Plugin(_FILTER, since=35),
    "GangScheduling": Plugin(
        ("preEnqueue", "reserve", "permit"), since=35, points_until={"reserve": 35}
    ),
    "TopologyPlacementGenerator": Plugin(("placementGenerate",), since=36),
    "PodGroupPodsCount": Plugin(("placementScore",), since=36),
}
"""Every plugin, in the order in which kube-scheduler enables them by default."""

NEVER_IN_V1: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
"""Plugins whose names kube-scheduler refuses, even where it ignores unknown ones."""
NEVER_IN_V1_SINCE: Final = 31
"""Since this minor. In it the plugins are still there, and may be listed at multiPoint only."""

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
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}


def on_record(version: Version) -> bool:
    """True if the catalogue speaks for this version."""
    return (
        (OLDEST.major, OLDEST.minor)
        <= (version.major, version.minor)
        <= (
            NEWEST.major,
            NEWEST.minor,
        )
    )


def plugins(version: Version) -> Mapping[str, Plugin]:
    """The plugins that the stock kube-scheduler of this version has."""
    return _plugins(version.minor)


def listable(version: Version) -> Mapping[str, Plugin]:
    """Those of them that may be listed at any extension point that they implement."""
    known = plugins(version)
    refused = NEVER_IN_V1 if version.minor >= NEVER_IN_V1_SINCE else ()
    return {name: plugin for name, plugin in known.items() if name not in refused}


@cache
def _plugins(minor: int) -> Mapping[str, Plugin]:
    return {name: plugin for name, plugin in PLUGINS.items() if plugin.exists(minor)}


def default_plugins(gates: Gates) -> list[tuple[str, int]]:
    """(name, weight) of the plugins that are enabled by default at multiPoint, in order.

    A weight of 0 means that none is given; kube-scheduler then takes 1.
    """
    minor = gates.version.minor
    enabled: list[tuple[str, int]] = []
    known = list(plugins(gates.version))
    if minor == 29:
        # It had a feature gate then, and what has a gate comes last.
        known.append(known.pop(known.index("SchedulingGates")))
    for name in known:
        if name == "CinderLimits" or (name in NEVER_IN_V1 and minor > 30):
            continue  # there, but off by default
        if name in _GATED and not gates.enabled(_GATED[name]):
            continue
        weight = _WEIGHTS.get(name, 0)
        if name == "DynamicResources" and minor >= 35:
            weight = 2
        enabled.append((name, weight))
    return enabled
