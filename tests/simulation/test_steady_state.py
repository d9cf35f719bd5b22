"""When nothing changes, nothing is written."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names

from .scheduler import REFUSAL, Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

SCRIPT = {
    41: Behavior(refused=REFUSAL),
    42: Behavior(ready_after=None),
    45: Behavior(lifetimes=(25.0, 0.5)),
}


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize(
    "percentage",
    [
        pytest.param(None, id="all well"),
        pytest.param(41, id="refused edit"),
        pytest.param(42, id="rolled back edit"),
        pytest.param(45, id="quarantined edit"),
    ],
)
def test_an_hour_without_a_change_is_an_hour_without_a_write(
    percentage: int | None, nodes: int
) -> None:
    world = World(nodes=nodes, script=SCRIPT)
    world.settle(90)
    world.tune(percentage)
    world.run(900)
    writes, events = world.operator.connection.writes, len(world.operator.recorder.events)
    passes = world.operator.passes
    world.run(3600)
    assert world.operator.connection.writes == writes
    assert len(world.operator.recorder.events) == events
    assert world.operator.passes - passes < 3600 / 10, "and few passes"


def test_a_restart_of_the_operator_writes_nothing() -> None:
    world = World(nodes=3)
    world.settle(90)
    world.run(200)
    writes = world.operator.connection.writes
    for _ in range(5):
        world.operator.kill()
        world.run(7)
        world.operator.start()
        world.run(60)
    assert world.operator.connection.writes == writes


def test_a_relist_of_every_watch_writes_nothing() -> None:
    world = World(nodes=3)
    world.settle(90)
    world.run(200)
    writes = world.operator.connection.writes
    for informer in world.operator.informers:
        informer.relist()
    world.run(60)
    assert world.operator.connection.writes == writes


def test_an_operator_that_starts_after_the_scheduler_died_does_not_call_it_available() -> None:
    world = World()
    world.settle(90)
    world.operator.kill()
    machine = world.machines["node-a"]
    machine.fail()
    world.run(120)
    world.operator.start()
    world.run(10)
    assert world.condition(names.STATIC_PODS_AVAILABLE) == "False"
