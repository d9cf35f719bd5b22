"""Several further schedulers: each for itself, but for the names that pods ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import DEPLOYMENTS
from kube_scheduler_operator.schedulerconfig.versions import Version
from kube_scheduler_operator.secondary import reconcile as module
from kube_scheduler_operator.secondary.reconcile import control_plane_names, secondary_schedulers

from .world import IMAGE, NAMESPACE, World


def condition(world: World) -> tuple[str, str]:
    """Of KubeScheduler."""
    found = secondary_schedulers(world.snapshot(), IMAGE, lambda _: Version(1, 35, 4)).conditions
    (one,) = (each for each in found if each.type == names.SECONDARY_DEGRADED)
    return one.status, one.message


def test_none_at_all_is_as_expected(world: World) -> None:
    assert condition(world) == ("False", "")
    world.run()
    assert world.writes == []


def test_two_know_nothing_of_each_other(world: World) -> None:
    world.put("a")
    world.put("b", image="example.com/b:v1")
    world.run()
    for name in ("a", "b"):
        world.roll_out(name)
    world.run()
    world.put("b", image="example.com/b:v2")
    world.run()
    assert {write.split()[2].split("-")[0] for write in world.writes} == {"b"}


def test_one_edit_leads_to_the_writes_that_it_needs(world: World) -> None:
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
        "replace SecondaryScheduler s3",
    ]


def test_a_mistake_in_one_is_known_of_the_whole_and_stops_no_other(world: World) -> None:
    world.put("bad", config={"parallelism": 0})
    world.put("good")
    world.run()
    assert (DEPLOYMENTS, NAMESPACE, "good") in world.objects
    assert (DEPLOYMENTS, NAMESPACE, "bad") not in world.objects
    status, message = condition(world)
    assert status == "True"
    assert message.startswith("bad: spec.config.parallelism: ")


def test_a_defect_of_ours_in_one_stops_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = module.plan

    def broken(snapshot: Any, obj: Any, *rest: Any) -> Any:
        if obj["metadata"]["name"] == "b":
            raise KeyError("x")
        return plan(snapshot, obj, *rest)

    monkeypatch.setattr(module, "plan", broken)
    for name in ("a", "b", "c"):
        world.put(name)
    world.run()
    made = {name for (kind, _, name) in world.objects if kind == DEPLOYMENTS}
    assert made == {"a", "c"}
    assert condition(world) == ("True", "b: a defect in the operator: KeyError: 'x'")


def test_of_two_that_serve_a_name_the_older_one_has_it(world: World) -> None:
    world.put("z-older", born=1, profiles=[{"schedulerName": "fast"}])
    world.put("a-younger", born=2, profiles=[{"schedulerName": "own"}, {"schedulerName": "fast"}])
    world.run()
    assert (DEPLOYMENTS, NAMESPACE, "z-older") in world.objects
    assert (DEPLOYMENTS, NAMESPACE, "a-younger") not in world.objects
    _, reason, message = world.condition(names.DEGRADED, "a-younger")
    assert reason == "SchedulerNameTaken"
    assert 'pods that ask for "fast" are scheduled by SecondaryScheduler "z-older"' in message


def test_one_that_may_not_run_where_it_is_takes_no_name(world: World) -> None:
    world.put("older", born=1, namespace="elsewhere", profiles=[{"schedulerName": "fast"}])
    world.put("younger", born=2, profiles=[{"schedulerName": "fast"}])
    world.run()
    assert (DEPLOYMENTS, NAMESPACE, "younger") in world.objects


@pytest.mark.parametrize(
    ("profiles", "taken"),
    [(None, "default-scheduler"), ([{"schedulerName": "batch"}], "batch")],
)
def test_a_name_of_the_control_plane_is_taken(world: World, profiles: Any, taken: str) -> None:
    config = {"profiles": profiles} if profiles else {}
    data = {names.CONFIG_KEY: json.dumps(config)}
    world.config_maps = {names.CONFIG: {"metadata": {"name": names.CONFIG}, "data": data}}
    assert control_plane_names(world.snapshot()) == (taken,)
    world.put("mine", profiles=[{"schedulerName": taken}])
    world.run()
    assert "the control plane's scheduler" in world.condition(names.DEGRADED, "mine")[2]


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"profiles": 3}'])
def test_what_somebody_else_put_there_is_taken_for_the_default(world: World, text: str) -> None:
    data = {names.CONFIG_KEY: text}
    world.config_maps = {names.CONFIG: {"metadata": {"name": names.CONFIG}, "data": data}}
    assert control_plane_names(world.snapshot()) == ("default-scheduler",)
