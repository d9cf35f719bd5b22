"""Effective plugins: kube-scheduler's two-stage expansion."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.effective_plugins import (
    PluginEntry,
    effective_plugins,
)
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import default_plugins
from kube_scheduler_operator.config.language.versions import Version

GATES = Gates(Version(1, 35))
V38 = Version(1, 38)


def points(plugins: Any, gates: Gates = GATES) -> dict[str, list[str]]:
    effective = effective_plugins({"plugins": plugins}, gates)
    return {point: [entry.name for entry in entries] for point, entries in effective.points.items()}


def test_defaults_run_at_every_point_that_they_implement() -> None:
    found = points({})
    assert found["preEnqueue"] == ["SchedulingGates", "DynamicResources", "DefaultPreemption"]
    assert found["queueSort"] == ["PrioritySort"]
    assert found["filter"][:3] == ["NodeUnschedulable", "NodeName", "TaintToleration"]
    assert found["postFilter"] == ["DynamicResources", "DefaultPreemption"]
    assert found["reserve"] == found["preBind"] == ["VolumeBinding", "DynamicResources"]
    assert found["bind"] == ["DefaultBinder"]
    assert found["permit"] == found["postBind"] == found["placementScore"] == []


def test_preemption_reserves_by_default_only_for_groups_of_pods() -> None:
    """From 1.38 on: the default list of reserve disables DefaultPreemption without the gate."""
    others = ["VolumeBinding", "DynamicResources"]
    assert points({}, Gates(V38))["reserve"] == others
    groups = Gates(V38, {"GenericWorkload": True})
    assert points({}, groups)["reserve"] == [*others, "DefaultPreemption"]
    assert points({}, groups)["placementFeasible"] == ["GangScheduling"]
    assert points({}, groups)["permit"] == []
    listed = {"reserve": {"enabled": [{"name": "DefaultPreemption"}]}}
    assert points(listed, Gates(V38))["reserve"] == [*others, "DefaultPreemption"]


def test_plugins_whose_gate_was_removed_are_default_plugins() -> None:
    enabled = {name for name, _ in default_plugins(Gates(V38))}
    assert {"SchedulingGates", "DynamicResources"} <= enabled


def test_default_score_weights() -> None:
    effective = effective_plugins({}, GATES)
    assert {entry.name: entry.weight or 1 for entry in effective.points["score"]} == {
        "TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1, "VolumeBinding": 1,
        "PodTopologySpread": 2, "InterPodAffinity": 2, "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1, "ImageLocality": 1,
    }  # fmt: skip


def test_a_disabled_star_at_a_point_clears_that_point_only() -> None:
    found = points({"score": {"disabled": [{"name": "*"}]}})
    assert found["score"] == []
    assert "NodeResourcesFit" in found["filter"]


def test_a_disabled_star_at_multi_point_clears_everything() -> None:
    found = points(
        {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}]}}
    )
    assert found == {**{point: [] for point in found}, "queueSort": ["PrioritySort"]}


def test_a_weight_at_the_point_takes_precedence_and_comes_first() -> None:
    effective = effective_plugins(
        {"plugins": {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}]}}}, GATES
    )
    assert effective.points["score"][0] == PluginEntry("NodeResourcesFit", 5)
    assert effective.duplicates == ()


def test_a_default_listed_at_multi_point_keeps_its_position() -> None:
    found = effective_plugins(
        {"plugins": {"multiPoint": {"enabled": [{"name": "TaintToleration", "weight": 9}]}}}, GATES
    )
    assert found.points["score"][0] == PluginEntry("TaintToleration", 9)


def test_a_default_disabled_and_enabled_again_moves_to_the_end() -> None:
    found = points(
        {
            "multiPoint": {
                "disabled": [{"name": "TaintToleration"}],
                "enabled": [{"name": "TaintToleration"}],
            }
        }
    )
    assert found["score"][-1] == "TaintToleration"


def test_a_plugin_enabled_twice_is_reported_at_its_point() -> None:
    twice = [{"name": "ImageLocality"}, {"name": "ImageLocality"}]
    at_point = effective_plugins({"plugins": {"score": {"enabled": twice}}}, GATES)
    assert at_point.duplicates == (("score", "ImageLocality"),)
    at_multi = effective_plugins(
        {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": twice}}}, GATES
    )
    assert at_multi.duplicates == (("score", "ImageLocality"),)


def test_unknown_plugins_are_listed() -> None:
    effective = effective_plugins({"plugins": {"multiPoint": {"enabled": [{"name": "X"}]}}}, GATES)
    assert effective.unknown == ("X",)


@pytest.mark.parametrize(
    ("minor", "explicit", "name", "enabled"),
    [
        (30, {}, "EBSLimits", True),
        (31, {}, "EBSLimits", False),
        (33, {}, "DynamicResources", False),
        (33, {"DynamicResourceAllocation": True}, "DynamicResources", True),
        (34, {}, "DynamicResources", True),
        (35, {}, "NodeDeclaredFeatures", False),
        (36, {}, "NodeDeclaredFeatures", True),
        (35, {"GangScheduling": True}, "GangScheduling", True),
    ],
)
def test_the_default_plugins_of_a_version(
    minor: int, explicit: dict[str, bool], name: str, enabled: bool
) -> None:
    names = [plugin for plugin, _ in default_plugins(Gates(Version(1, minor), explicit))]
    assert (name in names) is enabled
