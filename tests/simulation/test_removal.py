"""managementState Removed: what was there before comes back, and nothing of the operator stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    PODS,
    SERVICE_ACCOUNTS,
)

from .scheduler import STOCK, Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

SLOW = 43
SCRIPT = {SLOW: Behavior(pending_for=8.0, preflight_for=8.0, ready_after=8.0)}
NEVER_READY = Behavior(ready_after=None)


def adopted(nodes: int = 1) -> World:
    world = World(nodes=nodes, script=SCRIPT)
    world.settle(120)
    world.tune(1)
    world.run(0.5)
    world.settle(120)
    return world


def owned(world: World) -> list[str]:
    target = world.platform.target_namespace
    kinds = (CONFIG_MAPS, SERVICE_ACCOUNTS, PODS, DISRUPTION_BUDGETS)
    return [obj["metadata"]["name"] for kind in kinds for obj in world.server.list(kind, target)]


def is_gone(world: World) -> bool:
    machines = [machine for machine in world.machines.values() if machine.up]
    return (
        not owned(world)
        and not world.entries
        and all(m.manifest == STOCK and m.healthy and not m.outcomes for m in machines)
    )


def removed(world: World, seconds: float = 120) -> None:
    world.spec(managementState="Removed")
    world.run_until(lambda: is_gone(world), seconds)


@pytest.mark.parametrize("nodes", [1, 3])
def test_everything_is_as_it_was_before(nodes: int) -> None:
    world = adopted(nodes)
    removed(world)
    assert is_gone(world), owned(world)
    assert "observedConfig" not in world.kubescheduler["spec"]
    available = world.operator_condition("Available")
    assert (available["status"], available["reason"]) == ("Unknown", "Removed")
    assert "nothing of the operator is left" in available["message"]


def test_removal_clears_the_observed_configuration() -> None:
    world = adopted()
    world.offer("team-a", base="HighNodeUtilization")
    world.run_until(lambda: "profiles" in world.kubescheduler["spec"].get("observedConfig", {}), 30)
    world.retract("team-a")
    world.run_until(lambda: world.kubescheduler["spec"].get("observedConfig") == {}, 30)
    removed(world)
    assert "observedConfig" not in world.kubescheduler["spec"]
    writes = world.operator.connection.writes
    world.run(300)
    assert world.operator.connection.writes == writes


def test_the_status_has_the_generation_of_its_edit() -> None:
    """Otherwise the report of an earlier removal could be taken for the end of this one."""
    world = adopted()
    world.spec(managementState="Removed")
    asked = world.kubescheduler["metadata"]["generation"]
    world.run_until(lambda: world.status["observedGeneration"] >= asked, 10)
    progressing = world.full_condition(names.NODE_INSTALLER_PROGRESSING)
    assert (progressing["status"], progressing["reason"]) == ("True", "Removing")
    world.run_until(lambda: is_gone(world), 120)
    world.run(5)
    assert world.status["observedGeneration"] == world.kubescheduler["metadata"]["generation"]


def test_one_node_at_a_time_and_the_one_that_schedules_last() -> None:
    world = adopted(3)
    leader = world.leader
    order: list[str] = []

    def note() -> bool:
        for name, machine in world.machines.items():
            if machine.manifest == STOCK and name not in order:
                order.append(name)
        return is_gone(world)

    world.spec(managementState="Removed")
    world.run_until(note, 180)
    assert len(order) == 3
    assert order[-1] == leader


def test_a_rollout_in_progress_ends_first() -> None:
    world = adopted()
    world.tune(SLOW)
    world.run_until(lambda: world.machines["node-a"].swapping, 60)
    removed(world, 180)
    assert is_gone(world), str(world)


def test_an_installer_that_has_not_started_is_deleted() -> None:
    world = adopted()
    world.tune(SLOW)
    world.run(3)
    assert any("-3-" in pod["metadata"]["name"] for pod in world.installer_pods())
    removed(world)
    assert is_gone(world), str(world)


def test_a_node_that_is_away_is_waited_for_and_named() -> None:
    world = adopted(3)
    world.machines["node-b"].fail()
    world.run(5)
    world.spec(managementState="Removed")
    world.run(120)
    message = world.operator_condition("Progressing")["message"]
    assert "node-b: the node is not Ready" in message
    assert [entry["nodeName"] for entry in world.entries] == ["node-b"]
    world.machines["node-b"].recover()
    world.run_until(lambda: is_gone(world), 120)
    assert is_gone(world), str(world)


def test_a_stock_scheduler_that_does_not_run_is_reported_and_retried() -> None:
    world = adopted()
    machine = world.machines["node-a"]
    machine.adopted = replace(STOCK, behavior=NEVER_READY)
    world.spec(managementState="Removed")
    world.run(150)
    assert machine.shown == 2, "the operator's scheduler came back"
    degraded = world.full_condition(names.NODE_INSTALLER_DEGRADED)
    assert (degraded["status"], degraded["reason"]) == ("True", "RestoreFailed")
    assert 'node "node-a": kube-scheduler ran, but did not become ready' in degraded["message"]
    machine.adopted = STOCK
    world.run_until(lambda: is_gone(world), 200)
    assert is_gone(world), str(world)


def test_a_node_without_a_previous_scheduler_waits_for_a_manifest() -> None:
    world = adopted()
    machine = world.machines["node-a"]
    machine.adopted = None
    world.spec(managementState="Removed")
    world.run(60)
    assert machine.shown == 2
    assert machine.healthy
    assert "there was nothing before" in world.operator_condition("Available")["message"]
    machine.overwrite(STOCK)
    world.run_until(lambda: is_gone(world), 60)
    assert is_gone(world), str(world)


@pytest.mark.parametrize("moment", [0.5, 2.0, 4.0, 8.0, 60.0])
def test_managed_again_continues_with_higher_revision_numbers(moment: float) -> None:
    world = adopted(3)
    latest = world.status["latestAvailableRevision"]
    world.spec(managementState="Removed")
    world.run(moment)
    world.spec(managementState="Managed")
    world.run(1)
    world.settle(240)
    assert len(set(world.current().values())) == 1
    assert world.status["latestAvailableRevision"] >= latest
    assert all(machine.shown > 0 for machine in world.machines.values())
    # And the results of the first way out are not taken for those of the second.
    removed(world, 180)
    assert is_gone(world), str(world)


@pytest.mark.parametrize("write", range(1, 16, 2))
def test_removal_continues_after_the_operator_was_killed(write: int) -> None:
    world = adopted(2)
    connection = world.operator.connection
    connection.kill_at = connection.writes + write
    connection.kill_after_effect = write % 4 == 1
    world.spec(managementState="Removed")
    world.run(20)
    connection.kill_at = None
    if not world.operator.alive:
        world.operator.start()
    world.run_until(lambda: is_gone(world), 180)
    assert is_gone(world), str(world)
