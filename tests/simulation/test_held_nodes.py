"""A node that waits for `kubeadm upgrade node` keeps its revision, and is repaired meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import NODES, PODS

from .kubeadm import NEW, OLD, UPGRADE, Kubeadm, adopted, upgrade, version
from .machine import Machine
from .world import World

pytestmark = pytest.mark.presubmit_first

Fault = Callable[[Machine], None]

REPAIR = 60.0
"""Seconds within which a node is repaired."""


def removed(machine: Machine) -> None:
    machine.remove_manifest()


def edited(machine: Machine) -> None:
    machine.edit_by_hand("-v=4")


def renewed(machine: Machine) -> None:
    machine.renew(f"{machine.kubeconfig}, renewed")


# `make test` has the first: a scheduler that is gone is repaired as on any node.
FAULTS = (edited, removed, renewed)


def mixed() -> World:
    """Three nodes, of which kubeadm has upgraded the first."""
    world = adopted(3)
    upgrade(world, world.machines["node-a"])
    world.run_until(lambda: world.current()["node-a"] == 2, 120)
    world.run_until(world.is_guarded, 120)
    return world


def is_as_installed(machine: Machine) -> bool:
    """Whether a node runs what was installed last, with its present kubeconfig."""
    process = machine.process
    return (
        machine.healthy
        and process is not None
        and process.manifest == machine.last_good
        and process.manifest.kubeconfig == machine.kubeconfig
    )


def the_upgrade_ends(world: World) -> None:
    """kubeadm upgrades the nodes that are left, and all have the new version."""
    for seed, name in enumerate(("node-b", "node-c"), 1):
        upgrade(world, world.machines[name], seed=seed)
    world.settle()
    assert {version(machine) for machine in world.machines.values()} == {NEW}
    assert world.current() == dict.fromkeys(world.machines, 2)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_node_that_waits_for_kubeadm_is_repaired_and_the_upgrade_goes_on(fault: Fault) -> None:
    world = mixed()
    machine = world.machines["node-b"]
    others = {name: world.machines[name].process for name in ("node-a", "node-c")}
    fault(machine)
    world.run(1.0)
    world.run_until(lambda: is_as_installed(machine), REPAIR, "repaired")
    assert (machine.shown, version(machine)) == (1, OLD)
    assert {name: world.machines[name].process for name in others} == others
    world.run_until(lambda: world.condition(names.STATIC_PODS_DEGRADED) == "False", REPAIR)
    the_upgrade_ends(world)


@pytest.mark.parametrize("fault", FAULTS)
def test_nodes_that_wait_are_repaired_one_after_the_other(fault: Fault) -> None:
    world = mixed()
    held = [world.machines[name] for name in ("node-b", "node-c")]
    for machine in held:
        fault(machine)
    world.run(1.0)
    world.run_until(lambda: all(map(is_as_installed, held)), 2 * REPAIR, "repaired")
    the_upgrade_ends(world)


@pytest.mark.parametrize("fault", FAULTS)
def test_kubeadm_may_begin_before_a_node_is_repaired(fault: Fault) -> None:
    """It waits for the mirror Pod of the node's scheduler."""
    world = mixed()
    fault(world.machines["node-b"])
    the_upgrade_ends(world)


def test_a_manifest_that_is_missing_while_kubeadm_runs_is_written_again() -> None:
    world = mixed()
    machine = world.machines["node-b"]
    run = Kubeadm(world, machine, NEW, seed=1)
    world.run(0.5)
    machine.remove_manifest()
    world.run_until(lambda: run.done, UPGRADE, "kubeadm ends")
    assert run.error == ""
    world.run_until(lambda: machine.shown == 2 and machine.healthy, 120)


def delete_results(world: World, node: str) -> None:
    for pod in world.installer_pods():
        if pod["spec"]["nodeName"] == node and pod["status"]["phase"] == "Succeeded":
            world.server.delete("user", PODS.ref(pod))


def delete_guard(world: World, node: str) -> None:
    for pod in world.guard_pods():
        if pod["spec"]["nodeName"] == node:
            world.server.delete("user", PODS.ref(pod))


def cordon(world: World, node: str) -> None:
    world.server.edit("user", NODES, node, lambda obj: obj["spec"].update(unschedulable=True))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_repair_goes_on_when_its_results_are_deleted(fault: Fault) -> None:
    world = mixed()
    machine = world.machines["node-b"]
    fault(machine)
    for _ in range(20):
        delete_results(world, "node-b")
        world.run(0.7)
    world.run_until(lambda: is_as_installed(machine), 2 * REPAIR, "repaired")
    assert version(machine) == OLD
    the_upgrade_ends(world)


def test_a_node_of_which_nothing_is_known_keeps_its_version() -> None:
    world = mixed()
    machine, process = world.machines["node-b"], world.machines["node-b"].process
    for _ in range(40):
        delete_results(world, "node-b")
        delete_guard(world, "node-b")
        world.run(1.0)
    assert (version(machine), machine.process) == (OLD, process)
    the_upgrade_ends(world)


def test_a_cordoned_node_without_a_guard_keeps_its_version_and_follows_kubeadm() -> None:
    """An installer of its own revision reads its disk, and restarts nothing."""
    world = mixed()
    machine, process = world.machines["node-b"], world.machines["node-b"].process
    cordon(world, "node-b")
    delete_guard(world, "node-b")
    delete_results(world, "node-b")
    world.run(60)
    assert (version(machine), machine.process) == (OLD, process)
    assert "run `kubeadm upgrade node` there" in world.full_condition(names.KUBEADM_UPGRADE).get(
        "message", ""
    )
    machine.remove_manifest()
    world.run(1.0)
    world.run_until(lambda: is_as_installed(machine), REPAIR, "repaired")
    the_upgrade_ends(world)


def test_a_node_is_repaired_although_another_one_cannot_stage_the_next_revision() -> None:
    world = adopted(3)
    world.machines["node-c"].refuses_pods = True
    world.tune(50)
    world.run(30)
    machine = world.machines["node-b"]
    removed(machine)
    world.run(1.0)
    world.run_until(lambda: machine.healthy, REPAIR, "repaired")
    assert machine.shown == 1
    world.machines["node-c"].refuses_pods = False
    world.settle()


def test_the_last_ready_scheduler_is_not_restarted() -> None:
    world = mixed()
    held, others = world.machines["node-b"], [world.machines[name] for name in ("node-a", "node-c")]
    for machine in others:
        assert machine.process is not None
        machine.break_scheduler()
    process = held.process
    renewed(held)
    world.run(40)
    assert held.process is process
    for machine in others:
        machine.mend_scheduler()
    world.run_until(lambda: is_as_installed(held), 2 * REPAIR, "restarted")


def something_happens(world: World, rng: random.Random) -> None:
    """A fault on a node on which neither kubeadm nor an installer works."""
    idle = [
        machine
        for machine in world.machines.values()
        if machine.shown > 0 and not machine.work and not machine.swapping
    ]
    if idle:
        rng.choice(FAULTS)(rng.choice(idle))


@pytest.mark.parametrize("seed", range(20))
def test_random_faults_between_and_during_upgrades_never_stop_one(seed: int) -> None:
    rng = random.Random(f"held {seed}")
    world = adopted(3, seed)
    target = OLD
    for round_ in range(2):
        target = NEW if target == OLD else OLD
        for number, name in enumerate(sorted(world.machines)):
            run = Kubeadm(world, world.machines[name], target, seed=seed * 10 + round_ + number)
            while not run.done:
                if rng.random() < 0.1:
                    something_happens(world, rng)
                world.run(rng.uniform(1.0, 20.0))
            assert run.error == "", run.error
            world.run(rng.uniform(0.0, 40.0))
            something_happens(world, rng)
    world.settle(600)
    assert {version(machine) for machine in world.machines.values()} == {target}
