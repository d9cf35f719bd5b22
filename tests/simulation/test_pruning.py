"""Old revisions go, and with them what they own; what anybody could still need stays."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names

from .invariants import configuration
from .scheduler import Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

CRASHES_LATER = 45
SCRIPT = {CRASHES_LATER: Behavior(lifetimes=(25.0, 0.5))}


def edited(world: World, *percentages: int) -> None:
    for percentage in percentages:
        world.tune(percentage)
        world.run(0.5)
        world.settle(120)


def numbers(world: World) -> list[int]:
    return [revision.number for revision in world.revisions]


def test_the_last_five_revisions_are_kept_and_nothing_of_the_others_is_left() -> None:
    world = World(script=SCRIPT)
    world.settle(90)
    edited(world, *range(1, 8))
    world.run(30)
    assert numbers(world) == [4, 5, 6, 7, 8]
    left = [pod["metadata"]["name"] for pod in world.installer_pods()]
    assert left == [f"installer-{number}-node-a" for number in numbers(world)]
    for name in (f"{names.CONFIG}-3", f"{names.POD}-3"):
        assert world.config_map_ref(name) not in world.server.objects
    assert world.has_event("RevisionsPruned")


def test_a_smaller_limit_takes_effect_at_once_and_only_once() -> None:
    world = World(script=SCRIPT)
    world.settle(90)
    edited(world, 1, 2, 3)
    world.spec(failedRevisionLimit=1, succeededRevisionLimit=1)
    world.run(30)
    assert numbers(world) == [3, 4], "what runs, and what it would go back to"
    writes = world.operator.connection.writes
    world.run(300)
    assert world.operator.connection.writes == writes


def test_with_the_smallest_limits_the_last_good_revision_is_kept() -> None:
    world = World(script=SCRIPT)
    world.settle(90)
    world.spec(failedRevisionLimit=1, succeededRevisionLimit=1)
    edited(world, 1, 2, CRASHES_LATER)
    world.run(120)
    newest = world.revisions[-1].number
    assert world.current() == {"node-a": newest}
    assert configuration(world, newest)["percentageOfNodesToScore"] == 2
    assert world.condition(names.STATIC_PODS_AVAILABLE) == "True"
