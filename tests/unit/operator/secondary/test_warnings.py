"""Warnings about accepted settings of SecondarySchedulers, which are used anyway."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.language.command_line import LOG_LEVELS
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST

from .world import World

FIT = "NodeResourcesFit"
EXTENDER = {"urlPrefix": "http://e", "filterVerb": "f", "nodeCacheCapable": True}


def without(*filters: str, **fields: Any) -> dict[str, Any]:
    disabled = [{"name": name} for name in filters]
    return {**fields, "plugins": {"filter": {"disabled": disabled}}}


def control_plane(world: World, *profiles: dict[str, Any], gates: str = "") -> None:
    """The target ConfigMaps of the control plane's scheduler."""
    flags = [f"-v={LOG_LEVELS['Normal']}", *([f"--feature-gates={gates}"] if gates else [])]
    container = {"name": names.OPERAND, "command": ["kube-scheduler"], "args": flags}
    pod = {"metadata": {"name": "kube-scheduler"}, "spec": {"containers": [container]}}
    texts = {
        names.CONFIG: {names.CONFIG_KEY: json.dumps({"profiles": profiles} if profiles else {})},
        names.POD: {names.POD_KEY: json.dumps(pod)},
    }
    world.config_maps = {
        name: {"metadata": {"name": name}, "data": data} for name, data in texts.items()
    }


def reported(world: World, name: str = "my-scheduler") -> str:
    status, reason, message = world.condition(names.WARNINGS, name)
    assert (status == "True") == bool(message)
    assert message or reason == "AsExpected"
    return message


def test_an_image_that_is_newer_than_the_record_is_served_with_a_note(world: World) -> None:
    following = f"1.{NEWEST.minor + 1}"
    world.installed(image=f"registry.k8s.io/kube-scheduler:v{following}.0")
    assert reported(world).startswith(
        f"kube-scheduler {following}: Kubernetes {following} is newer"
    )
    world.installed(image="registry.example/own:v7.0.0")
    assert reported(world) == ""


def test_the_default_configuration_has_no_warning(world: World) -> None:
    control_plane(world)
    world.installed()
    assert reported(world) == ""


@pytest.mark.parametrize(
    ("spec", "begins"),
    [
        (
            {"profiles": [without(FIT)]},
            "spec.profiles[0].plugins.filter.disabled[0]: NodeResourcesFit does not run at filter",
        ),
        ({"profiles": [{"percentageOfNodesToScore": 1}]},
         "spec.profiles[0].percentageOfNodesToScore: with 1 % "),
        ({"config": {"percentageOfNodesToScore": 1}},
         "spec.config.percentageOfNodesToScore: with 1 % "),
        ({"extraArguments": {"profiling": "true"}},
         "spec.extraArguments.profiling: kube-scheduler ignores --profiling when --config is set"),
        ({"config": {"extenders": [{**EXTENDER, "httpTimeout": "300ms"}]}},
         "spec.config.extenders[0].ignorable: while this extender does not answer filterVerb"),
    ],
)  # fmt: skip
def test_a_warning_names_its_field_and_blocks_nothing(
    world: World, spec: dict[str, Any], begins: str
) -> None:
    world.installed(**spec)
    assert reported(world).startswith(begins)
    assert "; " in reported(world), "the fix is included"
    assert world.condition(names.DEGRADED)[0] == "False"
    assert world.condition(names.AVAILABLE)[0] == "True"
    world.run()
    assert world.writes == []


def test_errors_replace_warnings(world: World) -> None:
    world.put(profiles=[without(FIT)], config={"parallelism": 0})
    world.run()
    assert world.condition(names.DEGRADED)[0] == "True"
    assert reported(world) == ""


def test_a_warning_about_a_scheduler_profile_is_reported_there(world: World) -> None:
    world.profile("other", **without(FIT))
    world.profile("first", schedulerName="my-scheduler", **without("NodePorts"))
    world.installed()
    assert reported(world) == ""
    found = world.secondary().results
    warned = {result.name: [each.text for each in result.warnings] for result in found}
    for name, filter_ in (("other", FIT), ("first", "NodePorts")):
        begins = f"SchedulerProfile/{name} spec.plugins.filter.disabled[0]: {filter_} does not run"
        assert [text.startswith(begins) for text in warned[name]] == [True]


def test_a_warning_about_a_profile_of_the_spec_is_reported_in_its_status(
    world: World,
) -> None:
    world.profile("other")
    world.installed(profiles=[{}, without(FIT, schedulerName="second")])
    assert reported(world).startswith("spec.profiles[1].plugins.filter.disabled[0]: ")


# --- differences from the control plane ---------------------------------------------------------
BOTH = "the control plane's scheduler places pods on the same nodes"


def test_filters_that_differ_from_the_control_planes_are_listed(world: World) -> None:
    control_plane(world)
    world.installed(profiles=[without("PodTopologySpread")])
    assert reported(world).startswith(f"spec.profiles: {BOTH}")
    assert "only the control plane's scheduler filters by PodTopologySpread" in reported(world)
    control_plane(world, without("PodTopologySpread"), without(FIT, schedulerName="few"))
    world.run()
    assert reported(world) == "", "a warning about a profile is reported at that profile"
    control_plane(world, without("PodTopologySpread", "VolumeZone"))
    world.run()
    assert "only my-scheduler filters by VolumeZone" in reported(world)
    control_plane(world, without("PodTopologySpread"))
    world.run()
    assert reported(world) == ""


def test_feature_gates_of_the_control_plane_affect_its_filters(world: World) -> None:
    control_plane(world, gates="NodeDeclaredFeatures=true")
    world.installed()
    assert "scheduler filters by NodeDeclaredFeatures" in reported(world)


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"profiles": 3}'])
def test_without_a_known_control_plane_there_is_no_warning(world: World, text: str) -> None:
    control_plane(world)
    for part, key in ((names.CONFIG, names.CONFIG_KEY), (names.POD, names.POD_KEY)):
        before = world.config_maps[part]["data"]
        world.config_maps[part]["data"] = {key: text}
        world.put(profiles=[without("PodTopologySpread")])
        world.run()
        assert reported(world) == ""
        world.config_maps[part]["data"] = before
