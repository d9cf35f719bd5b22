"""Default plugins of old kube-scheduler versions, those that were removed, and what replaced them.

The tables restate those of Kubernetes, without plugins of feature gates that were off by default:
`getDefaultConfig` of pkg/scheduler/algorithmprovider/registry.go (1.18 to 1.21), from 1.22 on
`getDefaultPlugins` of default_plugins.go in pkg/scheduler/apis/config/v1beta1 and v1beta2.
v1beta3 has the defaults of v1, which are in `in_tree_plugins.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..language.plugins.effective_plugins import PluginEntry
from ..language.plugins.in_tree_plugins import PLUGINS, Plugin

PointPlugins = Mapping[str, tuple[PluginEntry, ...]]
"""Extension point -> the plugins that run there, in order, with their weights."""

FIT: Final = "NodeResourcesFit"
SPREAD: Final = "PodTopologySpread"
LEAST: Final = "NodeResourcesLeastAllocated"
MOST: Final = "NodeResourcesMostAllocated"
RATIO: Final = "RequestedToCapacityRatio"
NODE_LABEL: Final = "NodeLabel"
SERVICE_AFFINITY: Final = "ServiceAffinity"
AVOID: Final = "NodePreferAvoidPods"
RESOURCE_LIMITS: Final = "NodeResourceLimits"


def _names(text: str) -> tuple[PluginEntry, ...]:
    return tuple(PluginEntry(name) for name in text.split())


def _weights(text: str) -> tuple[PluginEntry, ...]:
    pairs = (item.split("=") for item in text.split())
    return tuple(PluginEntry(name, int(weight)) for name, weight in pairs)


_COMMON: Final[PointPlugins] = {
    "queueSort": _names("PrioritySort"),
    "postFilter": _names("DefaultPreemption"),
    "reserve": _names("VolumeBinding"),
    "preBind": _names("VolumeBinding"),
    "bind": _names("DefaultBinder"),
}
"""The lists that all versions share. Before 1.19, preemption and volume binding were built in."""

_FILTERS: Final = _names(
    "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
    "VolumeRestrictions EBSLimits GCEPDLimits NodeVolumeLimits AzureDiskLimits VolumeBinding "
    "VolumeZone PodTopologySpread InterPodAffinity"
)

ALPHA: Final[PointPlugins] = {
    **_COMMON,
    "preFilter": _names("NodeResourcesFit NodePorts InterPodAffinity PodTopologySpread"),
    "filter": _FILTERS,
    "preScore": _names(
        "InterPodAffinity DefaultPodTopologySpread TaintToleration PodTopologySpread"
    ),
    "score": _weights(
        "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=1 "
        "NodeResourcesLeastAllocated=1 NodeAffinity=1 NodePreferAvoidPods=10000 "
        "DefaultPodTopologySpread=1 TaintToleration=1 PodTopologySpread=1"
    ),
}
"""Defaults of v1alpha1 and v1alpha2: Kubernetes 1.18."""

BETA1: Final[PointPlugins] = {
    **_COMMON,
    "preFilter": _names(
        "NodeResourcesFit NodePorts PodTopologySpread InterPodAffinity VolumeBinding NodeAffinity"
    ),
    "filter": _FILTERS,
    "preScore": _names("InterPodAffinity PodTopologySpread TaintToleration NodeAffinity"),
    "score": _weights(
        "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=1 "
        "NodeResourcesLeastAllocated=1 NodeAffinity=1 NodePreferAvoidPods=10000 "
        "PodTopologySpread=2 TaintToleration=1"
    ),
}
"""Defaults of v1beta1, and of the lists that a Policy does not set: Kubernetes 1.20 to 1.22."""

BETA2: Final[PointPlugins] = {
    **BETA1,
    "preFilter": _names(
        "NodeResourcesFit NodePorts VolumeRestrictions PodTopologySpread InterPodAffinity "
        "VolumeBinding NodeAffinity"
    ),
    "score": _weights(
        "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=1 "
        "NodeResourcesFit=1 NodeAffinity=1 PodTopologySpread=2 TaintToleration=1"
    ),
}
"""Defaults of v1beta2: Kubernetes 1.22 and later."""


def packing(lists: PointPlugins) -> PointPlugins:
    """Return the lists of ClusterAutoscalerProvider: most instead of least allocated."""
    scores = tuple(
        PluginEntry(MOST, entry.weight) if entry.name == LEAST else entry
        for entry in lists["score"]
    )
    return {**lists, "score": scores}


def points_of(lists: PointPlugins) -> dict[str, frozenset[str]]:
    points_by_plugin: dict[str, set[str]] = {}
    for point, entries in lists.items():
        for entry in entries:
            points_by_plugin.setdefault(entry.name, set()).add(point)
    return {name: frozenset(points) for name, points in points_by_plugin.items()}


STRATEGIES: Final[Mapping[str, str]] = {
    LEAST: "LeastAllocated",
    MOST: "MostAllocated",
    RATIO: "RequestedToCapacityRatio",
}
"""Score plugin -> scoringStrategy of NodeResourcesFit that replaces it since v1beta2."""

SPREADING: Final = ("SelectorSpread", "DefaultPodTopologySpread")
"""Names of the plugin that spread the pods of a Service or ReplicaSet; the second in 1.18."""

CLOUD_LIMITS: Final = ("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits")
"""Limits of volumes that CSI drivers attach today, which NodeVolumeLimits counts."""

WITHOUT_REPLACEMENT: Final[Mapping[str, str]] = {
    AVOID: "no plugin reads the node annotation scheduler.alpha.kubernetes.io/preferAvoidPods; "
    "taint nodes that have it with PreferNoSchedule",
    RESOURCE_LIMITS: "no plugin scores limits; set requests, which NodeResourcesFit scores",
    SERVICE_AFFINITY: "no plugin keeps the pods of a Service on nodes with equal labels; "
    "give them a podAffinity with that label as topologyKey",
}
"""Removed plugin without a replacement -> what to do instead."""

FORMER_PLUGINS: Final = frozenset(
    (*STRATEGIES, *SPREADING, *CLOUD_LIMITS, *WITHOUT_REPLACEMENT, NODE_LABEL)
)
"""Every plugin that was in-tree and has been removed."""

LIMITS: Final = "NodeVolumeLimits"

BEFORE: Final[Mapping[str, str]] = {"filter": "preFilter", "score": "preScore"}
"""Point -> the point at which a plugin prepares for it."""

FOLLOWS: Final[Mapping[str, str]] = {
    "preFilter": "filter",
    "preScore": "score",
    "preEnqueue": "postFilter",
    "placementFeasible": "permit",
    "placementScore": "score",
    "podGroupPostFilter": "postFilter",
}
"""Point that a plugin began to implement later -> the point to which it belongs.

A plugin that is disabled at the second must not run at the first.
"""


def replacement(name: str, point: str, known: Mapping[str, Plugin]) -> str | None:
    """Return the plugin that replaces `name`, if any; `known` are the target's plugins."""
    if name in STRATEGIES:
        return FIT if point == "score" else None
    if name in SPREADING:
        return SPREAD if point in ("preScore", "score", "multiPoint") else None
    if name == NODE_LABEL:
        return "NodeAffinity" if point in ("filter", "score") else None
    if name == SERVICE_AFFINITY:
        return SPREAD if point == "score" else None
    if name in CLOUD_LIMITS and name not in known:
        return LIMITS
    if name == "VolumeBinding" and point == "postBind":
        return None  # up to 1.18; preBind covers it
    if name in known:
        return name
    was_removed = name in PLUGINS or name in (AVOID, RESOURCE_LIMITS)
    return None if was_removed else name
