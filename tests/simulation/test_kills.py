"""The operator is killed at every single write, before and after it takes effect.

`make test` kills it at every fifth one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from kube_scheduler_operator.base import names

from ..seeds import some_in_presubmit
from .invariants import revisions_are_complete_and_in_order
from .scheduler import REFUSAL, Behavior
from .world import World

STRIDE = 5
REFUSED, UNHEALTHY, CRASHES_LATER = 41, 42, 45
SCRIPT = {
    REFUSED: Behavior(refused=REFUSAL),
    UNHEALTHY: Behavior(ready_after=None),
    CRASHES_LATER: Behavior(lifetimes=(25.0, 0.5)),
}


def outcome(world: World) -> object:
    """The end of a history, without values that may differ: times, versions, uids."""
    revisions = [(r.number, r.outcome, r.hash, r.ready) for r in world.revisions]
    entries = [
        (e["nodeName"], e.get("currentRevision"), e.get("targetRevision")) for e in world.entries
    ]
    conditions = [(c["type"], c["status"]) for c in world.status["conditions"]]
    shown = [machine.shown for machine in world.machines.values()]
    return world.status["latestAvailableRevision"], revisions, entries, conditions, shown


def edit(percentage: int) -> Callable[[World], None]:
    return lambda world: world.tune(percentage)


@pytest.mark.parametrize(
    ("nodes", "change", "seconds"),
    [
        pytest.param(1, None, 30.0, id="adoption"),
        pytest.param(2, None, 45.0, id="adoption of two nodes"),
        pytest.param(2, edit(7), 45.0, id="edit"),
        pytest.param(1, edit(REFUSED), 30.0, id="refused edit"),
        pytest.param(1, edit(UNHEALTHY), 110.0, id="rolled back edit"),
        pytest.param(1, edit(CRASHES_LATER), 140.0, id="edit that fails later"),
    ],
)
@pytest.mark.parametrize("first", some_in_presubmit(range(1, STRIDE + 1), 1))
def test_killed_at_any_write_it_ends_in_the_same_state(
    nodes: int, change: Callable[[World], None] | None, seconds: float, first: int
) -> None:
    def history(kill_at: int | None, *, after: bool) -> World:
        world = World(nodes=nodes, script=SCRIPT, start=False)
        world.operator.start()
        if change is not None:
            world.settle(90)
            change(world)
        connection = world.operator.connection
        connection.kill_at = None if kill_at is None else connection.writes + kill_at
        connection.kill_after_effect = after
        if kill_at is not None:
            world.run_until(lambda: not world.operator.alive, seconds, f"write {kill_at}")
            world.run(1.0)
            world.operator.start()
        world.run(seconds)
        return world

    undisturbed = history(None, after=False)
    expected = outcome(undisturbed)
    revisions_are_complete_and_in_order(undisturbed.revisions)
    for kill_at, after in itertools.product(range(first, 200, STRIDE), (False, True)):
        try:
            world = history(kill_at, after=after)
        except AssertionError as error:
            if f"write {kill_at}" in str(error):
                break  # there are no more writes to be killed at
            raise
        revisions_are_complete_and_in_order(world.revisions)
        assert outcome(world) == expected, f"killed at write {kill_at}, after effect: {after}"
    assert kill_at > 8, "a rollout takes more writes than that"


@pytest.mark.parametrize("k", some_in_presubmit(range(1, 8), 3))
def test_lost_responses_are_not_lost_writes(k: int) -> None:
    world = World(nodes=2, script=SCRIPT, start=False)
    count = itertools.count(1)
    world.operator.connection.lost_answers = lambda: next(count) % (k + 1) == 0
    world.operator.start()
    world.settle(120)
    world.tune(9)
    world.run(0.5)
    world.settle(120)
    revisions_are_complete_and_in_order(world.revisions)
    assert len(world.revisions) == 2
    assert world.condition(names.INSTALLER_DEGRADED) in ("True", "False")
