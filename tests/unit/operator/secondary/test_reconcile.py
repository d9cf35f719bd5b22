"""Several secondary schedulers: they are independent except for their schedulerNames."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import DEPLOYMENTS
from kube_scheduler_operator.operator.secondary import reconcile as module
from kube_scheduler_operator.operator.secondary.reconcile import control_plane_names, plan

from .world import NAMESPACE, World


def condition(world: World) -> tuple[str, str]:
    """Status and message of KubeScheduler's condition."""
    found = world.secondary().conditions
    (one,) = (each for each in found if each.type == names.SECONDARY_DEGRADED)
    return one.status, one.message


def test_without_secondary_schedulers_nothing_is_degraded(world: World) -> None:
    assert condition(world) == ("False", "")
    world.run()
    assert world.writes == []


def test_an_edit_of_one_does_not_write_to_the_other(world: World) -> None:
    world.put("a")
    world.put("b", image="example.com/b:v1")
    world.run()
    for name in ("a", "b"):
        world.roll_out(name)
    world.run()
    world.put("b", image="example.com/b:v2")
    world.run()
    assert {write.split()[-1].split("-")[0] for write in world.writes} == {"b"}


def test_an_edit_causes_only_the_necessary_writes(world: World) -> None:
    for number in range(5):
        world.put(f"s{number}")
    world.run()
    for number in range(5):
        world.roll_out(f"s{number}")
    world.run()
    world.put("s3", logLevel="Debug")
    world.run()
    assert [write.rpartition("-")[0] or write for write in world.writes] == [
        "create ConfigMap s3-config",
        "replace Deployment s3",
        "replace status SecondaryScheduler s3",
    ]


def test_an_invalid_scheduler_degrades_the_operator_and_stops_no_other(world: World) -> None:
    world.put("bad", config={"parallelism": 0})
    world.put("good")
    world.run()
    assert (DEPLOYMENTS, NAMESPACE, "good") in world.objects
    assert (DEPLOYMENTS, NAMESPACE, "bad") not in world.objects
    status, message = condition(world)
    assert status == "True"
    assert message.startswith("bad: spec.config.parallelism: ")


def test_an_unexpected_error_in_one_stops_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(snapshot: Any, obj: Any, *rest: Any) -> Any:
        if obj["metadata"]["name"] == "b":
            raise KeyError("x")
        return plan(snapshot, obj, *rest)

    monkeypatch.setattr(module, "plan", broken)
    for name in ("a", "b", "c"):
        world.put(name)
    world.run()
    created = {name for (kind, _, name) in world.objects if kind == DEPLOYMENTS}
    assert created == {"a", "c"}
    status, message = condition(world)
    assert status == "True"
    assert message.startswith("b: the operator cannot process this object: KeyError: 'x'")
    assert world.condition(names.DEGRADED, "b")[:2] == ("True", "OperatorError")


def test_the_older_of_two_schedulers_keeps_a_shared_name(world: World) -> None:
    world.put("z-older", born=1, profiles=[{"schedulerName": "fast"}])
    world.put("a-younger", born=2, profiles=[{"schedulerName": "own"}, {"schedulerName": "fast"}])
    world.run()
    assert (DEPLOYMENTS, NAMESPACE, "z-older") in world.objects
    assert (DEPLOYMENTS, NAMESPACE, "a-younger") not in world.objects
    _, reason, message = world.condition(names.DEGRADED, "a-younger")
    assert reason == "SchedulerNameTaken"
    assert 'SecondaryScheduler "z-older" already serves schedulerName "fast"' in message


def test_a_scheduler_in_a_forbidden_namespace_reserves_no_name(world: World) -> None:
    world.put("older", born=1, namespace="elsewhere", profiles=[{"schedulerName": "fast"}])
    world.put("younger", born=2, profiles=[{"schedulerName": "fast"}])
    world.run()
    assert (DEPLOYMENTS, NAMESPACE, "younger") in world.objects


@pytest.mark.parametrize(
    ("profiles", "taken"),
    [(None, "default-scheduler"), ([{"schedulerName": "batch"}], "batch")],
)
def test_names_of_the_control_plane_are_reserved(world: World, profiles: Any, taken: str) -> None:
    config = {"profiles": profiles} if profiles else {}
    data = {names.CONFIG_KEY: json.dumps(config)}
    world.config_maps = {names.CONFIG: {"metadata": {"name": names.CONFIG}, "data": data}}
    assert control_plane_names(world.snapshot()) == (taken,)
    world.put("mine", profiles=[{"schedulerName": taken}])
    world.run()
    assert "the control plane's scheduler" in world.condition(names.DEGRADED, "mine")[2]


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"profiles": 3}'])
def test_an_invalid_target_config_map_counts_as_the_default(world: World, text: str) -> None:
    data = {names.CONFIG_KEY: text}
    world.config_maps = {names.CONFIG: {"metadata": {"name": names.CONFIG}, "data": data}}
    assert control_plane_names(world.snapshot()) == ("default-scheduler",)
