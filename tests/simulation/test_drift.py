"""Drift on a node: it is reported, and the node's revision is restored."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names

from .machine import Machine
from .scheduler import STOCK
from .swap import Journal
from .world import World

pytestmark = pytest.mark.presubmit_first


def adopted(nodes: int = 1) -> World:
    world = World(nodes=nodes)
    world.settle(120)
    return world


def is_back(world: World, machine: Machine) -> bool:
    return (
        machine.shown == 1
        and machine.healthy
        and world.condition(names.STATIC_PODS_DEGRADED) == "False"
        and world.condition(names.NODE_INSTALLER_PROGRESSING) == "False"
    )


def test_another_manifest_is_named_and_replaced() -> None:
    world = adopted()
    machine = world.machines["node-a"]
    machine.overwrite(STOCK)
    text = "kube-scheduler.yaml changed since revision 1 was installed, and will be put back"

    def message() -> str:
        return str(world.full_condition(names.STATIC_PODS_DEGRADED).get("message", ""))

    world.run_until(lambda: text in message(), 10, "named")
    world.run_until(lambda: is_back(world, machine), 40)
    assert world.current() == {"node-a": 1}
    assert len(world.revisions) == 1, "the same revision, not a new one"


def test_repeated_drift_is_repaired_each_time() -> None:
    world = adopted()
    machine = world.machines["node-a"]
    for _ in range(3):
        machine.overwrite(STOCK)
        world.run(3)
        world.run_until(lambda: is_back(world, machine), 40)


def test_a_missing_manifest_is_written_again() -> None:
    world = adopted()
    machine = world.machines["node-a"]
    machine.journal = Journal(1, 0)  # it was not the operator who left the node without one
    machine.withdraw()
    world.run(3)
    world.run_until(lambda: is_back(world, machine), 60)


def test_drift_is_repaired_one_node_at_a_time_without_disturbing_others() -> None:
    world = adopted(3)
    processes = {name: machine.process for name, machine in world.machines.items()}
    for name in ("node-a", "node-b"):
        world.machines[name].overwrite(STOCK)
    world.run(3)
    world.run_until(lambda: all(is_back(world, m) for m in world.machines.values()), 90)
    assert world.machines["node-c"].process is processes["node-c"]


def test_a_deleted_mirror_pod_restarts_nothing() -> None:
    world = adopted()
    machine = world.machines["node-a"]
    process = machine.process
    world.server.delete("user", machine.mirror_ref)
    world.run(120)
    assert machine.process is process
    assert is_back(world, machine)


def test_drift_stays_while_unmanaged() -> None:
    world = adopted()
    world.spec(managementState="Unmanaged")
    world.run(2)
    world.machines["node-a"].overwrite(STOCK)
    world.run(120)
    assert world.machines["node-a"].shown == 0
    world.spec(managementState="Managed")
    world.run(2)
    world.run_until(lambda: is_back(world, world.machines["node-a"]), 60)
