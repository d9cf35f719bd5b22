"""Defaults of in-tree plugins' arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..feature_gates import Gates

_CPU_AND_MEMORY: Final = ({"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1})
_HIGHEST_SCORE: Final = 10  # MaxCustomPriorityScore


def defaulted_args(plugin: str, args: Mapping[str, Any], gates: Gates) -> dict[str, Any]:
    """Add all defaults to decoded arguments; those of out-of-tree plugins are unchanged."""
    rule = _RULES.get(plugin)
    return rule(args, gates) if rule is not None else dict(args)


def _default_preemption(args: Mapping[str, Any], _: Gates) -> dict[str, Any]:
    return {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100, **args}


def _inter_pod_affinity(args: Mapping[str, Any], _: Gates) -> dict[str, Any]:
    return {"hardPodAffinityWeight": 1, **args}


def _balanced_allocation(args: Mapping[str, Any], _: Gates) -> dict[str, Any]:
    return {**args, "resources": _resources(args)}


def _node_resources_fit(args: Mapping[str, Any], _: Gates) -> dict[str, Any]:
    strategy = args.get("scoringStrategy", {"type": "LeastAllocated"})
    return {**args, "scoringStrategy": {**strategy, "resources": _resources(strategy)}}


def _resources(owner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the scored resources; weight 0 means 1."""
    resources = owner.get("resources") or _CPU_AND_MEMORY
    return [{**resource, "weight": resource.get("weight") or 1} for resource in resources]


def _pod_topology_spread(args: Mapping[str, Any], _: Gates) -> dict[str, Any]:
    return {**args, "defaultingType": args.get("defaultingType") or "System"}


def _volume_binding(args: Mapping[str, Any], gates: Gates) -> dict[str, Any]:
    gate, empty, full = "StorageCapacityScoring", _HIGHEST_SCORE, 0
    if gates.version.minor < 33:
        gate, empty, full = "VolumeCapacityPriority", 0, _HIGHEST_SCORE
    shape = args.get("shape")
    if not shape and gates.enabled(gate):
        shape = [{"utilization": 0, "score": empty}, {"utilization": 100, "score": full}]
    return {"bindTimeoutSeconds": 600, **args, "shape": shape}


def _dynamic_resources(args: Mapping[str, Any], gates: Gates) -> dict[str, Any]:
    defaults = {}
    if gates.enabled("DRASchedulerFilterTimeout"):
        defaults["filterTimeout"] = "10s"
    needed = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
    if all(gates.enabled(gate) for gate in needed):
        defaults["bindingTimeout"] = "600s"
    return {**defaults, **args}


_RULES: Final[Mapping[str, Callable[[Mapping[str, Any], Gates], dict[str, Any]]]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}
