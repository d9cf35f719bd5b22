"""Upgrades by kubeadm are followed, node by node, and never disturbed."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace
from functools import partial

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import NODES, PODS

from .kubeadm import NEW, OLD, UPGRADE, Kubeadm, adopted, image, upgrade
from .machine import Machine
from .scheduler import REFUSAL, SENTENCE, STOCK, Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

IMAGE = f"registry.k8s.io/kube-scheduler:{NEW}"


def message(world: World, type_: str) -> str:
    return str(world.full_condition(type_).get("message", ""))


def test_an_upgrade_becomes_a_revision_with_its_image() -> None:
    world = adopted()
    (machine,) = world.machines.values()
    upgrade(world, machine)
    assert machine.shown == 0, "kubeadm's manifest was not replaced while it waited"
    world.run_until(lambda: machine.shown == 2, 120)
    world.settle()
    assert image(machine) == IMAGE
    assert world.current() == {"node-a": 2}
    assert NEW in message(world, names.VERSION_SKEW)
    assert world.condition(names.KUBEADM_UPGRADE) == "False"


def test_nodes_follow_as_kubeadm_upgrades_them() -> None:
    world = adopted(3)
    upgrade(world, world.machines["node-a"])
    world.run_until(lambda: world.current()["node-a"] == 2, 120)
    world.run(120)
    assert {name: image(one)[-7:] for name, one in world.machines.items()} == {
        "node-a": NEW,
        "node-b": OLD,
        "node-c": OLD,
    }
    assert f"{OLD} on node-b, node-c; {NEW} on node-a" in message(world, names.VERSION_SKEW)
    assert "run `kubeadm upgrade node` there" in message(world, names.KUBEADM_UPGRADE)
    assert world.condition(names.STATIC_PODS_DEGRADED) == "False"
    upgrade(world, world.machines["node-b"], seed=1)
    upgrade(world, world.machines["node-c"], seed=2)
    world.settle()
    assert world.current() == dict.fromkeys(world.machines, 2)
    assert {image(one) for one in world.machines.values()} == {IMAGE}


LATE = 30
"""Seconds by which a condition may lag behind: a guard that has just ended starts after 20 s."""


def test_conditions_are_true_through_an_upgrade() -> None:
    world = adopted(3)
    worked = {name: deque[bool](maxlen=LATE) for name in world.machines}

    def check() -> None:
        for name, machine in world.machines.items():
            seen = worked[name]
            seen.append(bool(machine.work))
            text = f'node "{name}": `kubeadm upgrade` uses'
            claimed = text in message(world, names.KUBEADM_UPGRADE)
            assert any(seen) or not claimed, f"no kubeadm works on {name}"
            assert claimed or not (len(seen) == LATE and all(seen)), f"unreported on {name}"
        assert world.condition(names.VERSION_SKEW) == "False", message(world, names.VERSION_SKEW)
        assert world.condition(names.STATIC_PODS_AVAILABLE) == "True"
        assert world.condition(names.NODE_INSTALLER_DEGRADED) == "False"
        available = world.operator_condition("Available")
        assert available["status"] == "True"
        assert "no scheduler pod is Ready" not in available["message"].splitlines()

    for seed, name in enumerate(sorted(world.machines)):
        run = Kubeadm(world, world.machines[name], NEW, seed=seed)
        rest = 60
        while not run.done or rest:
            rest -= run.done
            world.run(1.0)
            check()
        assert run.error == ""
    world.settle()


def test_an_edit_waits_while_kubeadm_works_on_a_node() -> None:
    world = adopted(3)
    run = Kubeadm(world, world.machines["node-b"], NEW, seed=3)
    world.run_until(lambda: "`kubeadm upgrade` uses" in message(world, names.KUBEADM_UPGRADE), 40)
    world.tune(50)
    world.run_until(lambda: run.done, UPGRADE)
    assert run.error == ""
    before = {one: m.shown for one, m in world.machines.items()}
    assert set(before.values()) <= {0, 1}, "no node moved meanwhile"
    world.run_until(lambda: world.machines["node-b"].shown > 1, 120)
    for seed, name in enumerate(("node-a", "node-c"), 4):
        upgrade(world, world.machines[name], seed=seed)
    world.settle()
    number = world.current()["node-a"]
    assert '"percentageOfNodesToScore":50' in world.config(number)
    assert {image(one) for one in world.machines.values()} == {IMAGE}


@pytest.mark.presubmit
def test_a_setting_that_the_new_version_does_not_have_is_named_with_what_runs() -> None:
    world = adopted()
    (machine,) = world.machines.values()
    gates = {"feature-gates": ["CSIServiceAccountTokenSecrets=false"]}
    world.spec(unsupportedConfigOverrides={"arguments": gates})
    world.settle()
    upgrade(world, machine)
    world.run_until(lambda: world.condition(names.OVERRIDES_DEGRADED) == "True", 120)
    world.run(300)
    assert (machine.shown, image(machine)) == (0, IMAGE), "what kubeadm wrote stays"
    text = message(world, names.OVERRIDES_DEGRADED)
    assert "CSIServiceAccountTokenSecrets is locked to true in 1.36" in text
    assert f"(in {IMAGE}; nodes that kubeadm has upgraded run it without the configuration" in text
    assert OLD in text
    world.spec(unsupportedConfigOverrides=None)
    world.settle()
    assert machine.shown > 0
    assert image(machine) == IMAGE


def test_a_configuration_that_the_new_version_refuses_leaves_the_stock_scheduler() -> None:
    world = adopted()
    (machine,) = world.machines.values()
    machine.of_image[IMAGE] = Behavior(refused=REFUSAL)
    upgrade(world, machine)
    world.run_until(lambda: world.condition(names.PREFLIGHT_DEGRADED) == "True", 120)
    world.run(300)
    assert machine.shown == 0
    assert image(machine) == IMAGE, "what kubeadm wrote stays"
    assert machine.healthy
    text = message(world, names.PREFLIGHT_DEGRADED)
    assert SENTENCE in text
    assert NEW in text
    assert OLD in text
    assert world.condition(names.STATIC_PODS_DEGRADED) == "False"
    machine.of_image.clear()
    world.tune(50)  # its author mends it
    world.settle()
    assert image(machine) == IMAGE
    assert machine.shown == world.current()["node-a"] > 1


def test_a_revision_that_fails_with_the_new_version_goes_back_to_what_kubeadm_wrote() -> None:
    world = adopted()
    (machine,) = world.machines.values()
    machine.of_image[IMAGE] = Behavior(ready_after=None)
    upgrade(world, machine)
    world.run_until(lambda: world.condition(names.NODE_INSTALLER_DEGRADED) == "True", 300)
    world.run(120)
    assert (machine.shown, image(machine)) == (0, IMAGE)
    assert machine.healthy


def test_the_same_version_again_is_put_back_after_kubeadm_has_ended() -> None:
    world = adopted()
    (machine,) = world.machines.values()
    upgrade(world, machine, OLD)
    world.run_until(lambda: machine.shown == 1 and machine.healthy, 120)
    world.settle()
    assert world.current() == {"node-a": 1}
    assert len(world.revisions) == 1


def test_a_downgrade_is_followed() -> None:
    world = adopted(3)
    for seed, name in enumerate(sorted(world.machines)):
        upgrade(world, world.machines[name], seed=seed)
    world.settle()
    for seed, name in enumerate(sorted(world.machines)):
        upgrade(world, world.machines[name], OLD, seed=seed)
        world.run_until(partial(lambda one: one.shown == 3, one=world.machines[name]), 120)
    world.settle()
    assert len(world.revisions) == 3, "content of before is a new revision, and only one"
    assert {image(one)[-7:] for one in world.machines.values()} == {OLD}


def test_an_upgrade_that_kubeadm_rolls_back_changes_nothing() -> None:
    world = adopted()
    (machine,) = world.machines.values()
    run = Kubeadm(world, machine, NEW, fails=True)
    world.run_until(lambda: run.done, UPGRADE)
    world.settle()
    world.run(120)
    assert world.current() == {"node-a": 1}
    assert len(world.revisions) == 1


@pytest.mark.parametrize(
    "other",
    [
        "registry.example/kube-scheduler:v1.36.3",
        "registry.k8s.io/kube-scheduler:v1.37.0",
        "registry.k8s.io/kube-scheduler:v1.34.0",
        "registry.k8s.io/kube-scheduler:latest",
    ],
)
def test_another_image_is_not_followed(other: str) -> None:
    """Of another repository, newer than the node's API server, too old, or without a version."""
    world = adopted()
    (machine,) = world.machines.values()
    machine.api_server = "registry.k8s.io/kube-apiserver:v1.36.3"
    machine.overwrite(STOCK.__class__(0, "", other, STOCK.arguments, STOCK.behavior))
    machine.look_again()
    world.run(3)
    world.run_until(lambda: machine.shown == 1 and machine.healthy, 120)
    world.settle()
    assert len(world.revisions) == 1


def test_a_forged_mirror_pod_is_not_followed() -> None:
    world = adopted()
    (machine,) = world.machines.values()
    forged = world.server.get(machine.mirror_ref)
    container = {**forged["spec"]["containers"][0], "image": IMAGE}
    labels = {k: v for k, v in forged["metadata"]["labels"].items() if k != names.REVISION_LABEL}
    metadata = {**forged["metadata"], "labels": labels}
    spec = {**forged["spec"], "containers": [container]}
    world.server.replace("forger", PODS, {**forged, "metadata": metadata, "spec": spec})
    world.run(120)
    assert len(world.revisions) == 1
    assert image(machine).endswith(OLD)


def test_a_cordoned_node_without_a_guard_is_upgraded_as_well() -> None:
    world = adopted(3)
    machine = world.machines["node-a"]
    world.server.edit("user", NODES, "node-a", lambda node: node["spec"].update(unschedulable=True))
    for pod in world.guard_pods():
        if pod["spec"]["nodeName"] == "node-a":
            world.server.delete("user", PODS.ref(pod))
    world.run(5)
    upgrade(world, machine)
    world.run_until(lambda: machine.shown == 2 and machine.healthy, 200)
    assert image(machine) == IMAGE


def joined(world: World, name: str, version: str = NEW) -> Machine:
    """A machine that begins with a version."""
    machine = world.add_node(name, replace(STOCK, image=STOCK.image.replace(OLD, version)))
    machine.api_server = machine.api_server.replace(OLD, version)
    return machine


def test_machines_that_are_replaced_bring_the_new_version() -> None:
    """As Cluster API does it: one joins with the new version, then an old one leaves."""
    world = adopted(3)
    for old, new in (("node-a", "node-x"), ("node-b", "node-y"), ("node-c", "node-a")):
        machine = joined(world, new)
        world.run_until(partial(lambda one: one.shown == 2 and one.healthy, one=machine), 200)
        assert image(machine) == IMAGE
        world.remove_node(old)
        world.run(60)
    world.settle()
    assert world.current() == dict.fromkeys(("node-x", "node-y", "node-a"), 2)


def test_a_machine_that_joins_while_the_new_version_is_refused_keeps_its_scheduler() -> None:
    world = adopted()
    machine = world.add_node("node-b", replace(STOCK, image=IMAGE))
    machine.api_server = machine.api_server.replace(OLD, NEW)
    machine.of_image[IMAGE] = Behavior(refused=REFUSAL)
    world.run_until(lambda: world.condition(names.PREFLIGHT_DEGRADED) == "True", 200)
    events = len(world.operator.recorder.events)
    world.run(300)
    assert (machine.shown, image(machine)) == (0, IMAGE)
    assert world.machines["node-a"].shown == 1
    assert len(world.operator.recorder.events) - events < 5, "nothing is tried again and again"


@pytest.mark.parametrize("seed", range(20))
def test_random_upgrades_are_never_disturbed_and_end_with_one_version(seed: int) -> None:
    """With edits, kills of the operator and lost nodes at random moments."""
    rng = random.Random(seed)
    world = adopted(rng.choice((1, 3)), seed)
    version = OLD
    for _ in range(3):
        version = NEW if version == OLD else OLD
        for number, name in enumerate(sorted(world.machines)):
            run = Kubeadm(world, world.machines[name], version, seed=seed * 10 + number)
            while not run.done:
                match rng.randrange(6):
                    case 0:
                        world.tune(rng.choice((None, 10, 50)))
                    case 1:
                        world.operator.kill()
                        world.run(rng.uniform(1.0, 30.0))
                        world.operator.start()
                    case _:
                        world.run(rng.uniform(1.0, 20.0))
            assert run.error == "", run.error
            world.run(rng.uniform(0.0, 40.0))
    world.settle(600)
    assert {image(one)[-7:] for one in world.machines.values()} == {version}
