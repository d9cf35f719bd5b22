"""SchedulerProfiles in a cluster that lives: edits, mistakes, restarts, and calm."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import SCHEDULER_PROFILES

from ..expect import expect_forgotten
from .invariants import configuration
from .world import World

pytestmark = pytest.mark.presubmit_first

GOOD = {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}}
BETTER = {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 8}]}}}
BAD = {"plugins": {"score": {"enabled": [{"name": "ImageLocalty"}]}}}
QUEUE = {
    "plugins": {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}]}}
}


def settled(nodes: int = 1) -> World:
    world = World(nodes=nodes)
    world.settle(90)
    return world


def reach(world: World, *served: str) -> None:
    world.run(2.0)
    world.run_until(lambda: world.served == list(served) and world.settled(), 120, f"{served}")


def weight(world: World, name: str) -> int:
    config = configuration(world, max(world.current().values()))
    (found,) = (p for p in config["profiles"] if p["schedulerName"] == name)
    return int(found["plugins"]["score"]["enabled"][0]["weight"])


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_profile_comes_is_edited_and_goes_with_a_revision_each(nodes: int) -> None:
    world = settled(nodes)
    first = world.revisions[-1].number
    world.offer("team", **GOOD)
    reach(world, "default-scheduler", "team")
    assert (world.accepted("team"), weight(world, "team")) == ("True", 9)
    world.offer("team", **BETTER)
    world.run(2.0)
    world.settle(120)
    assert weight(world, "team") == 8
    world.retract("team")
    reach(world)
    assert world.revisions[-1].number == first + 3
    assert "profiles" not in world.kubescheduler["spec"]["observedConfig"]


def test_a_mistake_in_one_profile_does_not_delay_the_edit_of_another() -> None:
    world = settled()
    world.offer("a", **GOOD)
    world.offer("b", **GOOD)
    reach(world, "default-scheduler", "a", "b")
    before = world.revisions[-1].number
    world.offer("a", **BAD)
    world.run(30.0)
    assert world.revisions[-1].number == before, "held: nothing to roll out"
    assert world.accepted("a") == "False"
    assert world.condition(names.SCHEDULER_PROFILES_DEGRADED) == "True"
    assert world.operator_condition("Degraded")["status"] == "True"
    world.offer("b", **BETTER)
    world.run(2.0)
    world.settle(120)
    assert (weight(world, "a"), weight(world, "b")) == (9, 8)
    world.offer("a", **BETTER)
    world.run(2.0)
    world.settle(120)
    assert (world.accepted("a"), weight(world, "a")) == ("True", 8)
    assert world.condition(names.SCHEDULER_PROFILES_DEGRADED) == "False"


def test_an_operator_that_restarts_knows_the_accepted_versions() -> None:
    world = settled()
    world.offer("a", **GOOD)
    reach(world, "default-scheduler", "a")
    world.operator.kill()
    world.offer("a", **BAD)
    world.run(5.0)
    before = world.revisions[-1].number
    world.operator.start()
    world.run(60.0)
    assert world.revisions[-1].number == before
    assert world.served == ["default-scheduler", "a"]
    assert world.accepted("a") == "False"


def test_another_queue_comes_when_all_have_it_and_each_step_runs() -> None:
    """A queue cannot be changed in one profile: the first leads, the others follow or are held."""
    world = settled()
    world.offer("a", **GOOD)
    reach(world, "default-scheduler", "a")
    world.offer("default-scheduler", **QUEUE)
    reach(world, "default-scheduler")
    assert world.accepted("a") == "False"
    world.offer("a", **QUEUE)
    reach(world, "default-scheduler", "a")
    assert world.accepted("a") == "True"


def test_an_hour_with_profiles_of_every_kind_is_an_hour_without_a_write() -> None:
    world = settled()
    for number in range(20):
        world.offer(f"p{number:02}", **GOOD)
    reach(world, "default-scheduler", *(f"p{number:02}" for number in range(20)))
    world.offer("p03", **BAD)
    world.offer("never", **BAD)
    world.offer("same", schedulerName="p05")
    world.offer("nowhere", scheduler="missing")
    world.run(300.0)
    writes, events = world.operator.connection.writes, len(world.operator.recorder.events)
    world.run(3600.0)
    world.operator.kill()
    world.run(7.0)
    world.operator.start()
    world.run(60.0)
    for informer in world.operator.informers:
        informer.relist()
    world.run(60.0)
    assert world.operator.connection.writes == writes
    assert len(world.operator.recorder.events) == events


def test_removal_leaves_users_objects_as_they_wrote_them() -> None:
    world = settled()
    world.offer("a", **GOOD)
    world.offer("b", **BAD)
    reach(world, "default-scheduler", "a")
    world.spec(managementState="Removed")
    world.run(120.0)
    found = world.server.list(SCHEDULER_PROFILES)
    assert [obj["spec"] for obj in found] == [GOOD, BAD]
    for obj in found:
        expect_forgotten(obj["status"])
    world.spec(managementState="Managed")
    world.settle(120)
    reach(world, "default-scheduler", "a")
