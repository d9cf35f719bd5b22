"""Etcd is restored from an older backup, and the operator is not restarted."""

from __future__ import annotations

from functools import partial

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import CLUSTER_OPERATORS, KUBE_SCHEDULERS, ObjectRef

from .etcd import back_up, restore
from .world import World

pytestmark = pytest.mark.presubmit_first

BOUND = 60
"""Writes after a restore that a rollout, all statuses and all guards need at most."""


def mark(world: World, count: int) -> None:
    """Let versions grow without another revision."""
    for number in range(count):
        world.server.edit(
            "user",
            KUBE_SCHEDULERS,
            "cluster",
            partial(
                lambda obj, number: obj["metadata"].update(labels={"mark": str(number)}),
                number=number,
            ),
        )


@pytest.mark.parametrize("lease_shows", [True, False], ids=["by the Lease", "by a write"])
def test_an_edit_after_a_restore_arrives_with_few_writes(lease_shows: bool) -> None:
    world = World()
    world.settle(60)
    world.run_until(world.is_guarded, 200, "guarded")
    world.run(90)
    backup = back_up(world)
    mark(world, 200)
    world.run(5)
    restore(world, backup, 5.0, lease_shows=lease_shows, noticed=False)
    writes = world.operator.connection.writes
    world.run(200 if not lease_shows else 20)
    world.tune(7)
    world.run_until(lambda: world.current() == {"node-a": 2}, 200, "the edit arrives")
    world.settle(60)
    assert world.operator.connection.writes - writes < BOUND
    if world.operator.restored_at is not None:
        condition = world.full_condition(names.ETCD_RESTORED)
        assert condition["status"] == "True"
        assert "older backup" in condition["message"]


def test_a_write_at_a_version_that_was_taken_back_is_recognised_at_once() -> None:
    world = World()
    world.settle(60)
    world.run(90)
    backup = back_up(world)
    mark(world, 200)
    world.run(5)
    restore(world, backup, 5.0, lease_shows=False, noticed=False)
    writes = world.operator.connection.writes
    # A rollout of what the operator knows, although the API server has forgotten the edit.
    world.operator.wake()
    world.server.delete("user", ObjectRef(CLUSTER_OPERATORS, None, names.CLUSTEROPERATOR))
    world.run(200)
    assert world.operator.connection.writes - writes < BOUND
    world.tune(7)
    world.run_until(lambda: world.current() == {"node-a": 2}, 60, "the edit arrives")


def test_objects_that_the_restore_brought_back_are_seen() -> None:
    world = World()
    world.settle(60)
    world.offer("default-scheduler", plugins={"score": {"enabled": [{"name": "Nope"}]}})
    world.run(5)
    backup = back_up(world)
    world.retract("default-scheduler")
    world.run(5)
    mark(world, 50)
    restore(world, backup, 5.0, lease_shows=True)
    world.run(30)
    assert world.accepted("default-scheduler") == "False"
