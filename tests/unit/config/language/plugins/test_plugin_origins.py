"""The effective plugins with the origin of every entry."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.merging.merge import merge_semantically
from kube_scheduler_operator.config.language.merging.presets import profile_fragment
from kube_scheduler_operator.config.language.plugins.effective_plugins import effective_plugins
from kube_scheduler_operator.config.language.plugins.plugin_origins import (
    Layer,
    PluginRow,
    ProfileTable,
    profile_tables,
)
from kube_scheduler_operator.config.language.versions import Version

GATES = Gates(Version(1, 35))


def config(name: str = "default-scheduler", **points: Any) -> dict[str, Any]:
    return {"profiles": [{"schedulerName": name, "plugins": points}]}


def table(*layers: Layer, gates: Gates = GATES) -> ProfileTable:
    merged = merge_semantically([layer.config for layer in layers])
    (found,) = profile_tables(merged, layers, gates)
    return found


def on(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def origins(rows: tuple[PluginRow, ...]) -> dict[str, str]:
    return {row.name: row.origin for row in rows}


def test_without_lists_every_origin_is_the_default() -> None:
    found = table(Layer("profile", {}))
    assert found.scheduler_name == "default-scheduler"
    assert {row.origin for rows in found.points.values() for row in rows} == {"default"}
    assert (found.off, found.unknown) == ({}, ())


def test_order_and_weights_are_the_effective_ones() -> None:
    profile = profile_fragment("HighNodeUtilization")
    found = table(Layer("base", profile))
    effective = effective_plugins(profile["profiles"][0], GATES)
    for point, rows in found.points.items():
        assert [row.name for row in rows] == [entry.name for entry in effective.points[point]]
    assert found.points["score"][0] == PluginRow("NodeResourcesFit", 5, "base")
    assert PluginRow("ImageLocality", 1, "default") in found.points["score"]
    assert {row.weight for row in found.points["filter"]} == {0}
    assert found.off == {"score": (PluginRow("NodeResourcesBalancedAllocation", 1, "base"),)}


def test_each_list_comes_from_the_last_layer_that_has_it() -> None:
    found = table(
        Layer("base", profile_fragment("HighNodeUtilization")),
        Layer("profile", config(filter={"disabled": on("NodePorts")})),
        Layer("override", config(score={"enabled": [{"name": "ImageLocality", "weight": 9}]})),
    )
    assert found.points["score"][0] == PluginRow("ImageLocality", 9, "override")
    # The override's list of enabled plugins replaced the base's.
    assert PluginRow("NodeResourcesFit", 1, "default") in found.points["score"]
    assert found.off == {
        "filter": (PluginRow("NodePorts", 0, "profile"),),
        "score": (PluginRow("NodeResourcesBalancedAllocation", 1, "base"),),
    }


def test_an_entry_at_multi_point_has_its_origin_at_every_point() -> None:
    lists = {"disabled": on("*"), "enabled": on("PrioritySort", "DefaultBinder", "NodeAffinity")}
    found = table(
        Layer("base", config(multiPoint={"disabled": on("ImageLocality")})),
        Layer("override", config(multiPoint=lists)),
    )
    assert origins(found.points["preFilter"]) == {"NodeAffinity": "override"}
    assert origins(found.points["bind"]) == {"DefaultBinder": "override"}
    assert origins(found.off["score"])["ImageLocality"] == "override"
    assert found.off["score"][0] == PluginRow("TaintToleration", 3, "override")


def test_profiles_have_their_own_origins() -> None:
    layers = [
        Layer("base", config(filter={"disabled": on("NodePorts")})),
        Layer("override", config("second", filter={"disabled": on("NodeName")})),
    ]
    first, second = profile_tables(
        merge_semantically([each.config for each in layers]), layers, GATES
    )
    assert (first.scheduler_name, origins(first.off["filter"])) == (
        "default-scheduler", {"NodePorts": "base"},
    )  # fmt: skip
    assert (second.scheduler_name, origins(second.off["filter"])) == (
        "second", {"NodeName": "override"},
    )  # fmt: skip


def test_plugins_of_a_custom_image_are_listed_as_unknown() -> None:
    found = table(Layer("override", config(multiPoint={"enabled": on("Own")})))
    assert found.unknown == (PluginRow("Own", 0, "override"),)


def test_points_that_a_version_does_not_have_are_omitted() -> None:
    assert "placementScore" not in table(Layer("profile", {})).points
    newer = table(Layer("profile", {}), gates=Gates(Version(1, 36)))
    assert newer.points["placementScore"][0] == PluginRow("NodeResourcesFit", 1, "default")
