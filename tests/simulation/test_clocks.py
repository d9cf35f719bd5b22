"""The clocks of nodes differ from the operator's, and jump."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import PODS

from .machine import Machine
from .scheduler import Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

CRASHES, LATER, UNHEALTHY = 42, 43, 44
SCRIPT = {
    CRASHES: Behavior(lifetimes=(4.0, 0.5)),
    LATER: Behavior(lifetimes=(40.0, 0.5)),
    UNHEALTHY: Behavior(ready_after=None),
}
SKEWS = (-1200.0, -560.0, -20.0, 20.0, 560.0, 1200.0)


def failed(world: World, number: int) -> bool:
    return any(r.number == number and r.outcome == names.OUTCOME_FAILED for r in world.revisions)


def recovered(world: World) -> bool:
    machines = world.machines.values()
    return all(machine.healthy and machine.shown != 2 for machine in machines)


@pytest.mark.parametrize("percentage", SCRIPT)
@pytest.mark.parametrize("skew", SKEWS)
def test_a_revision_that_crash_loops_is_failed_whatever_the_clock_of_its_node(
    skew: float, percentage: int
) -> None:
    world = World(nodes=2, script=SCRIPT)
    for machine in world.machines.values():
        machine.skew = skew
    world.settle(60)
    world.run(90)
    world.tune(percentage)
    world.run_until(lambda: failed(world, 2), 400, "revision 2 is failed")
    world.run_until(lambda: recovered(world), 400, "the last good content runs")


@pytest.mark.parametrize("jump", SKEWS)
@pytest.mark.parametrize("after", [1.0, 8.0, 30.0])
def test_a_clock_that_jumps_in_a_rollout_changes_nothing(jump: float, after: float) -> None:
    world = World(nodes=2, script=SCRIPT)
    world.settle(60)
    world.run(90)
    world.tune(LATER)
    world.run(after)
    world.machines["node-a"].skew = jump
    world.run_until(lambda: failed(world, 2), 600, "revision 2 is failed")
    world.run_until(lambda: recovered(world), 400, "the last good content runs")


@pytest.mark.parametrize("skew", SKEWS)
def test_a_good_revision_is_not_failed_by_a_clock(skew: float) -> None:
    world = World(nodes=2)
    world.machines["node-a"].skew = skew
    world.settle(60)
    for percentage in (5, 6):
        world.tune(percentage)
        world.run(1)
        world.settle(60)
        world.outage(20)
    world.run(60)
    world.settle(120)
    assert not any(revision.bad for revision in world.revisions)


@pytest.mark.parametrize("skew", SKEWS)
def test_a_restarted_operator_does_not_call_a_renewed_lease_expired(skew: float) -> None:
    world = World()
    world.machines["node-a"].skew = skew
    world.settle(60)
    world.operator.kill()
    world.run(30)
    world.operator.start()
    for _ in range(20):
        world.run(1)
        assert world.condition(names.STATIC_PODS_AVAILABLE) == "True"


def is_reported(world: World) -> bool:
    return world.condition(names.HAND_EDITS) == "True"


def is_as_installed(world: World, machine: Machine) -> bool:
    return (
        machine.healthy
        and machine.manifest == machine.last_good
        and world.condition(names.HAND_EDITS) == "False"
        and world.settled()
    )


def edit_is_put_back(world: World, machine: Machine, text: str) -> None:
    machine.edit_by_hand(text)
    world.run_until(lambda: is_reported(world), 40, "reported")
    world.run_until(lambda: is_as_installed(world, machine), 90, "put back")


@pytest.mark.parametrize("jump", SKEWS)
def test_a_hand_edit_after_a_jump_of_the_clock_is_noticed_as_fast_as_any(jump: float) -> None:
    world = World(nodes=2)
    world.settle(60)
    world.run_until(world.is_guarded, 60)
    machine = world.machines["node-a"]
    edit_is_put_back(world, machine, "before")
    machine.skew = jump
    edit_is_put_back(world, machine, "after")
    machine.skew = 0.0
    edit_is_put_back(world, machine, "once more")


@pytest.mark.parametrize("jump", SKEWS)
def test_a_hand_edit_while_a_node_is_off_is_noticed_whatever_its_clock_then(jump: float) -> None:
    world = World(nodes=2)
    world.settle(60)
    world.run_until(world.is_guarded, 60)
    machine = world.machines["node-a"]
    machine.fail()
    world.run(30)
    machine.skew = jump
    machine.edit_by_hand("while it is off")
    machine.recover()
    world.run_until(lambda: is_as_installed(world, machine), 120, "put back")
    world.run(30)
    assert is_as_installed(world, machine)


@pytest.mark.parametrize("jump", SKEWS)
def test_a_renewed_kubeconfig_after_a_jump_of_the_clock_restarts_the_scheduler(
    jump: float,
) -> None:
    world = World(nodes=1)
    world.settle(60)
    world.run_until(world.is_guarded, 60)
    machine = world.machines["node-a"]
    machine.skew = jump
    machine.renew("renewed")
    world.run(1)
    world.run_until(world.is_guarded, 90, "the scheduler has the new kubeconfig")


@pytest.mark.parametrize("jump", SKEWS)
def test_hand_edits_are_noticed_on_nodes_with_programs_of_two_versions(jump: float) -> None:
    """An older operator installed; this one replaces its guards before the clock jumps."""
    world = World(nodes=2)
    for machine in world.machines.values():
        machine.is_old = True
    world.settle(60)
    world.run_until(world.is_guarded, 60)
    machine = world.machines["node-a"]
    edit_is_put_back(world, machine, "noticed by the old guard")
    machine.is_old = False
    for pod in world.guard_pods():
        world.server.delete("operator", PODS.ref(pod))
    world.run(1)
    world.run_until(world.is_guarded, 60)
    machine.skew = jump
    edit_is_put_back(world, machine, "noticed by the new guard")
    edit_is_put_back(world, machine, "again")
