"""Configurations whose validity depends on feature gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube_scheduler_operator.config.language.feature_gates import known_gates

from .by_hand import args, plugins
from .seeds import entries

Gates = dict[str, bool]

_WORKLOADS = {"GenericWorkload": True}
SETS: tuple[Gates, ...] = (
    {"StorageCapacityScoring": True},
    {"VolumeCapacityPriority": True},
    {"DRASchedulerFilterTimeout": False},
    {"DRADeviceBindingConditions": True, "DRAResourceClaimDeviceStatus": True},
    {"DRADeviceBindingConditions": False},
    {"DynamicResourceAllocation": False},
    {"DynamicResourceAllocation": True},
    {"NodeDeclaredFeatures": True},
    {"NodeDeclaredFeatures": False},
    _WORKLOADS,
    {**_WORKLOADS, "GangScheduling": True},
    {**_WORKLOADS, "TopologyAwareWorkloadScheduling": True},
    {"InPlacePodVerticalScalingSchedulerPreemption": True},
    {"PodSchedulingReadiness": False},
    {"AllAlpha": False},
)
"""A set is used for versions that have all of its gates and allow these values."""

_SHAPES: tuple[Any, ...] = (
    None, [], [{"utilization": 0, "score": 0}], [{"utilization": 101, "score": 11}],
    [{"utilization": 5, "score": 1}, {"utilization": 5, "score": 1}], [{}], [None],
)  # fmt: skip


def gated(minor: int) -> Iterator[tuple[str, dict[str, Any], Gates]]:
    """(description, configuration, gates)."""
    for gates in SETS:
        if not _possible(gates, minor):
            continue
        named = ", ".join(f"{name}={value}" for name, value in gates.items())
        for name, config in _configs(gates, minor):
            yield f"{name} with {named}", config, gates


def _possible(gates: Gates, minor: int) -> bool:
    known = known_gates(minor) or {}
    # From 1.36 on these cannot be off alone, because others that are on need them.
    needed = ({"DynamicResourceAllocation": False}, {"NodeDeclaredFeatures": False})
    alone = gates in needed and minor >= 36
    fixed = {name: value for name, value in gates.items() if known.get(name) not in (None, value)}
    return not alone and not fixed and set(gates) <= set(known)


def _configs(gates: Gates, minor: int) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "nothing", {}
    yield "all arguments", {"profiles": [{"pluginConfig": entries(minor)}]}
    if {"StorageCapacityScoring", "VolumeCapacityPriority"} & set(gates):
        for shape in _SHAPES:
            yield f"shape {shape}", args("VolumeBinding", shape=shape)
    elif any(name.startswith(("DRA", "Dynamic")) for name in gates):
        for field in ("filterTimeout", "bindingTimeout"):
            for value in (None, "0s", "-1s", "999ms", "1s", "1h"):
                yield f"{field} {value}", args("DynamicResources", **{field: value})
        yield "without it", plugins("multiPoint", disabled=("DynamicResources",))
    else:
        for name in ("DeferredPodScheduling", "GangScheduling", "NodeDeclaredFeatures",
                     "PodGroupPodsCount", "TopologyPlacementGenerator",
                     "SchedulingGates"):  # fmt: skip
            yield f"{name} more", plugins("multiPoint", name)
            yield f"{name} less", plugins("multiPoint", disabled=(name,))
        lists = [{"name": "NodeResourcesFit", "weight": -1}]
        yield "a weight", {"profiles": [{"plugins": {"placementScore": {"enabled": lists}}}]}
        for name in ("DefaultPreemption", "DynamicResources", "GangScheduling"):
            yield f"{name} for groups", plugins("podGroupPostFilter", name)
        if minor >= 38:
            yield from _placements()


def _placements() -> Iterator[tuple[str, dict[str, Any]]]:
    """What 1.38 added for groups of Pods."""
    for value in (None, 0, 30, 100, 101, -1):
        field = {"percentageOfPlacementsToScore": value}
        yield f"{value} % of placements", field
        yield f"{value} % of placements in a profile", {"profiles": [field]}
    for name in ("GangScheduling", "DefaultPreemption"):
        yield f"{name} decides on placements", plugins("placementFeasible", name)
        yield f"{name} permits", plugins("permit", name)
        yield f"{name} reserves", plugins("reserve", name)
        yield f"{name} does not reserve", plugins("reserve", disabled=(name,))
