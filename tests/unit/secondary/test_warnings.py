"""What a SecondaryScheduler may ask for and may regret: it is told, and it runs all the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.schedulerconfig.command_line import LOG_LEVELS
from kube_scheduler_operator.schedulerconfig.versions import Version
from kube_scheduler_operator.secondary.reconcile import secondary_schedulers

from .world import IMAGE, World

FIT = "NodeResourcesFit"
EXTENDER = {"urlPrefix": "http://e", "filterVerb": "f", "nodeCacheCapable": True}


def without(*filters: str, **fields: Any) -> dict[str, Any]:
    disabled = [{"name": name} for name in filters]
    return {**fields, "plugins": {"filter": {"disabled": disabled}}}


def control_plane(world: World, *profiles: dict[str, Any], gates: str = "") -> None:
    """What the operator has written for the control plane's scheduler."""
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


def told(world: World, name: str = "my-scheduler") -> str:
    status, reason, message = world.condition(names.WARNINGS, name)
    assert (status == "True") == bool(message)
    assert message or reason == "AsExpected"
    return message


def test_the_least_has_nothing_to_be_warned_of(world: World) -> None:
    control_plane(world)
    world.installed()
    assert told(world) == ""


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
         "spec.extraArguments.profiling: kube-scheduler ignores --profiling beside --config"),
        ({"config": {"extenders": [{**EXTENDER, "httpTimeout": "300ms"}]}},
         "spec.config.extenders[0].ignorable: when this extender does not answer filterVerb"),
    ],
)  # fmt: skip
def test_it_is_told_with_its_field_and_runs(
    world: World, spec: dict[str, Any], begins: str
) -> None:
    world.installed(**spec)
    assert told(world).startswith(begins)
    assert "; " in told(world), "what to do is said as well"
    assert world.condition(names.DEGRADED)[0] == "False"
    assert world.condition(names.AVAILABLE)[0] == "True"
    world.run()
    assert world.writes == []


def test_mistakes_come_first(world: World) -> None:
    world.put(profiles=[without(FIT)], config={"parallelism": 0})
    world.run()
    assert world.condition(names.DEGRADED)[0] == "True"
    assert told(world) == ""


def test_a_profile_with_an_object_of_its_own_says_it_there(world: World) -> None:
    world.profile("other", **without(FIT))
    world.profile("first", schedulerName="my-scheduler", **without("NodePorts"))
    world.installed()
    assert told(world) == ""
    found = secondary_schedulers(world.snapshot(), IMAGE, lambda _: Version(1, 35, 4)).verdicts
    warned = {verdict.name: [each.text for each in verdict.warnings] for verdict in found}
    for name, filter_ in (("other", FIT), ("first", "NodePorts")):
        begins = f"SchedulerProfile/{name} spec.plugins.filter.disabled[0]: {filter_} does not run"
        assert [text.startswith(begins) for text in warned[name]] == [True]


def test_of_its_own_profiles_beside_one_with_an_object_it_is_told(world: World) -> None:
    world.profile("other")
    world.installed(profiles=[{}, without(FIT, schedulerName="second")])
    assert told(world).startswith("spec.profiles[1].plugins.filter.disabled[0]: ")


# --- beside the control plane -------------------------------------------------------------------
BOTH = "the control plane's scheduler places pods on the same nodes"


def test_other_filters_than_the_control_planes_are_named(world: World) -> None:
    control_plane(world)
    world.installed(profiles=[without("PodTopologySpread")])
    assert told(world).startswith(f"spec.profiles: {BOTH}")
    assert "only the control plane's scheduler filters by PodTopologySpread" in told(world)
    control_plane(world, without("PodTopologySpread"), without(FIT, schedulerName="few"))
    world.run()
    assert told(world) == "", "what a profile for some pods does is told of that profile"
    control_plane(world, without("PodTopologySpread", "VolumeZone"))
    world.run()
    assert "only my-scheduler filters by VolumeZone" in told(world)
    control_plane(world, without("PodTopologySpread"))
    world.run()
    assert told(world) == ""


def test_gates_of_the_control_plane_count(world: World) -> None:
    control_plane(world, gates="NodeDeclaredFeatures=true")
    world.installed()
    assert "scheduler filters by NodeDeclaredFeatures" in told(world)


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"profiles": 3}'])
def test_of_a_control_plane_that_is_not_known_nothing_is_said(world: World, text: str) -> None:
    control_plane(world)
    for part, key in ((names.CONFIG, names.CONFIG_KEY), (names.POD, names.POD_KEY)):
        before = world.config_maps[part]["data"]
        world.config_maps[part]["data"] = {key: text}
        world.put(profiles=[without("PodTopologySpread")])
        world.run()
        assert told(world) == ""
        world.config_maps[part]["data"] = before
