"""Rules for the arguments of in-tree plugins."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.findings import format_path
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.plugin_args import validate_args
from kube_scheduler_operator.config.language.versions import Version

FIT = "NodeResourcesFit"
SPREAD = "PodTopologySpread"
ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def found(plugin: str, args: Any, minor: int = 35, **gates: bool) -> list[str]:
    problems = validate_args(plugin, args, (), Gates(Version(1, minor), gates))
    return [format_path(problem.path) for problem in problems]


def fit(**strategy: Any) -> dict[str, Any]:
    return {"scoringStrategy": strategy}


def ratio(*shape: tuple[int, int]) -> dict[str, Any]:
    points = [{"utilization": utilization, "score": score} for utilization, score in shape]
    return fit(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": points})


def required(**requirement: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [requirement]}]
    return {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        (FIT, {}),
        (FIT, fit(type="MostAllocated", resources=[{"name": "cpu", "weight": 100}, {"name": "x"}])),
        (FIT, ratio((0, 0), (100, 10))),
        (FIT, {"ignoredResources": ["example.com/gpu"], "ignoredResourceGroups": ["example.com"]}),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 1}]}),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 0}),
        (SPREAD, {"defaultingType": "List", "defaultConstraints": [ZONE]}),
        (SPREAD, {"defaultConstraints": []}),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}),
        ("DynamicResources", {"filterTimeout": "0s"}),
        ("NodeAffinity", required(key="a", operator="In", values=["b"])),
        ("NodeAffinity", required(key="a", operator="Gt", values=["5"])),
        ("NodeAffinity", {"addedAffinity": {PREFERRED: [{"weight": 0, "preference": {
            "matchExpressions": [{"operator": "unread"}]}}]}}),
        ("ImageLocality", {"whatever": 1}),
    ],
)  # fmt: skip
def test_valid_arguments_are_accepted(plugin: str, args: Any) -> None:
    assert found(plugin, args) == []


@pytest.mark.parametrize(
    ("plugin", "args", "path"),
    [
        (FIT, fit(), "scoringStrategy.type"),
        (FIT, fit(type="Most"), "scoringStrategy.type"),
        (FIT, fit(type="MostAllocated", resources=[{"name": "cpu", "weight": 101}]),
         "scoringStrategy.resources[0].weight"),
        (FIT, fit(type="RequestedToCapacityRatio"), "scoringStrategy.requestedToCapacityRatio"),
        (FIT, ratio(), "scoringStrategy.requestedToCapacityRatio.shape"),
        (FIT, ratio((5, 1), (5, 2)),
         "scoringStrategy.requestedToCapacityRatio.shape[1].utilization"),
        (FIT, ratio((101, 1)), "scoringStrategy.requestedToCapacityRatio.shape[0].utilization"),
        (FIT, ratio((0, 11)), "scoringStrategy.requestedToCapacityRatio.shape[0].score"),
        (FIT, {"ignoredResources": ["a b"]}, "ignoredResources[0]"),
        (FIT, {"ignoredResourceGroups": ["example.com/x"]}, "ignoredResourceGroups[0]"),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 2}]},
         "resources[0].weight"),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
         "resources[1].name"),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage"),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute"),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
         "minCandidateNodesPercentage"),
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight"),
        (SPREAD, {"defaultConstraints": [ZONE]}, "defaultingType"),
        (SPREAD, {"defaultingType": "Lists"}, "defaultingType"),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds"),
        ("DynamicResources", {"filterTimeout": "-1s"}, "filterTimeout"),
        ("NodeAffinity", required(key="a", operator="in"),
         f"addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator"),
        ("NodeAffinity", required(key="a", operator="In"),
         f"addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values"),
        ("NodeAffinity", required(key="a", operator="Lt", values=["x"]),
         f"addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]"),
        ("NodeAffinity", {"addedAffinity": {PREFERRED: [{"weight": 1, "preference": {
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": []}]}}]}},
         f"addedAffinity.{PREFERRED}[0].preference.matchFields[0].values"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_reported_at_their_path(plugin: str, args: Any, path: str) -> None:
    assert found(plugin, args) == [path]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"maxSkew": 0}, "maxSkew"),
        ({"topologyKey": ""}, "topologyKey"),
        ({"whenUnsatisfiable": "Never"}, "whenUnsatisfiable"),
        ({"labelSelector": {}}, "labelSelector"),
    ],
)
def test_default_constraints(change: Any, path: str) -> None:
    args = {"defaultingType": "List", "defaultConstraints": [{**ZONE, **change}]}
    assert found(SPREAD, args) == [f"defaultConstraints[0].{path}"]


@pytest.mark.parametrize(
    ("minor", "expected"), [(35, []), (36, ["scoringStrategy.requestedToCapacityRatio"])]
)
def test_an_unused_shape_is_rejected_from_1_36(minor: int, expected: list[str]) -> None:
    args = fit(
        type="LeastAllocated",
        requestedToCapacityRatio={"shape": [{"utilization": 0, "score": 0}]},
    )
    assert found(FIT, args, minor) == expected
    assert found(FIT, ratio((0, 0), (100, 10)), minor) == []


def test_a_duplicate_default_constraint() -> None:
    args = {"defaultingType": "List", "defaultConstraints": [ZONE, {**ZONE, "maxSkew": 2}]}
    assert found(SPREAD, args) == ["defaultConstraints[1]"]


SHAPE = {"shape": [{"utilization": 0, "score": 0}]}


@pytest.mark.parametrize(
    ("plugin", "args", "minor", "gates", "paths"),
    [
        ("VolumeBinding", SHAPE, 35, {}, ["shape"]),
        ("VolumeBinding", SHAPE, 35, {"StorageCapacityScoring": True}, []),
        ("VolumeBinding", SHAPE, 32, {}, ["shape"]),
        ("VolumeBinding", SHAPE, 32, {"VolumeCapacityPriority": True}, []),
        ("VolumeBinding", SHAPE, 35, {"AllAlpha": True}, []),
        ("DynamicResources", {"bindingTimeout": "5s"}, 35, {}, ["bindingTimeout"]),
        (
            "DynamicResources",
            {"bindingTimeout": "5s"},
            35,
            {"DRADeviceBindingConditions": True},
            [],
        ),
        (
            "DynamicResources",
            {"bindingTimeout": "0.5s"},
            35,
            {"DRADeviceBindingConditions": True},
            ["bindingTimeout"],
        ),
    ],
)
def test_fields_behind_a_feature_gate(
    plugin: str, args: Any, minor: int, gates: dict[str, bool], paths: list[str]
) -> None:
    assert found(plugin, args, minor, **gates) == paths
