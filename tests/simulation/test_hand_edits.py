"""What a node runs is known from its disk: hand edits, labels that lie, forged objects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, KUBE_SCHEDULERS, PODS

from ..imitation.apiserver import Object
from .machine import Machine
from .world import World

pytestmark = pytest.mark.presubmit_first

KEEPS_EDITS = replace(KUBEADM, keeps_hand_edits=True)
TARGET = KUBEADM.target_namespace


def rolled_out(nodes: int = 1, platform: Platform = KUBEADM) -> World:
    """A cluster at revision 2, with guards."""
    world = World(nodes=nodes, platform=platform)
    world.settle(90)
    world.tune(1)
    world.run(0.5)
    world.settle(90)
    world.run_until(world.is_guarded, 60, "guards")
    return world


def is_as_installed(world: World, machine: Machine) -> bool:
    return (
        machine.healthy
        and machine.manifest == machine.last_good
        and not machine.edited_file
        and world.condition(names.STATIC_PODS_DEGRADED) == "False"
        and world.condition(names.HAND_EDITS) == "False"
        and world.settled()
    )


def is_reported(world: World) -> bool:
    return world.condition(names.HAND_EDITS) == "True"


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("label", [None, 99, 1])
def test_an_edited_manifest_is_reported_and_put_back(label: int | None, nodes: int) -> None:
    world = rolled_out(nodes)
    machine = world.machines["node-a"]
    machine.edit_by_hand("-v=4", label)
    world.run_until(lambda: is_reported(world), 15, "reported")
    assert world.condition(names.STATIC_PODS_DEGRADED) == "True"
    world.run_until(lambda: is_as_installed(world, machine), 60, "put back")
    assert world.status["latestAvailableRevision"] == 2, "no new revision"
    assert len(world.revisions) == 2


def test_an_edited_file_of_the_revision_is_put_back_and_the_scheduler_restarted() -> None:
    world = rolled_out()
    machine = world.machines["node-a"]
    process = machine.process
    machine.edit_a_file("enableProfiling: true")
    world.run_until(lambda: is_reported(world), 15, "reported")
    world.run_until(lambda: is_as_installed(world, machine), 60, "put back")
    assert machine.process is not process


def test_repeated_edits_are_put_back_each_time() -> None:
    world = rolled_out()
    machine = world.machines["node-a"]
    for text in ("one", "two", "two"):
        machine.edit_by_hand(text)
        world.run_until(lambda: is_reported(world), 40, "reported")
        world.run_until(lambda: is_as_installed(world, machine), 90, "put back")


def test_where_edits_are_kept_they_stay_reported_until_the_next_revision() -> None:
    world = rolled_out(3, KEEPS_EDITS)
    machine = world.machines["node-a"]
    machine.edit_a_file("enableProfiling: true")
    machine.edit_by_hand("a blank more")
    edited = machine.manifest
    world.run_until(lambda: is_reported(world), 15, "reported")
    world.run(300)
    assert is_reported(world)
    assert "stays until the next revision" in world.full_condition(names.HAND_EDITS)["message"]
    assert machine.manifest is edited
    assert world.condition(names.STATIC_PODS_DEGRADED) == "False"
    assert world.guarded() == set(world.machines), "no guard crashes meanwhile"
    writes = world.operator.connection.writes
    world.run(300)
    assert world.operator.connection.writes == writes
    world.tune(2)
    world.run(0.5)
    world.settle(120)
    world.run_until(lambda: is_as_installed(world, machine), 60, "replaced by the next revision")


def test_where_edits_are_kept_one_with_another_label_is_put_back() -> None:
    world = rolled_out(platform=KEEPS_EDITS)
    machine = world.machines["node-a"]
    machine.edit_by_hand("-v=4", 99)
    world.run(5)
    world.run_until(lambda: is_as_installed(world, machine), 60, "put back")
    assert len(world.revisions) == 2


def relabel(world: World, node: str, revision: str | None) -> None:
    """What `kubectl label pod` does to a mirror pod."""

    def edit(pod: Object) -> None:
        pod["metadata"]["labels"].pop(names.REVISION_LABEL, None)
        if revision is not None:
            pod["metadata"]["labels"][names.REVISION_LABEL] = revision

    name = KUBEADM.mirror_pod_name(node)
    world.server.edit("user", PODS, name, edit, KUBEADM.operand_namespace)


LABELS = ["1", "3", "99", "2147483647", "9223372036854775807", None, "two"]


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("label", LABELS)
def test_a_label_makes_no_number_and_restarts_no_scheduler(label: str | None, nodes: int) -> None:
    world = rolled_out(nodes)
    processes = {name: machine.process for name, machine in world.machines.items()}
    relabel(world, "node-a", label)
    world.run(120)
    assert {name: machine.process for name, machine in world.machines.items()} == processes
    assert world.condition(names.HAND_EDITS) == "True"
    assert "was edited and does not count" in world.full_condition(names.HAND_EDITS)["message"]
    assert world.condition(names.STATIC_PODS_DEGRADED) == "False"
    world.tune(2)
    world.run(0.5)
    world.settle(120)
    assert set(world.current().values()) == {3}, "the next edit gets the next number"
    assert world.condition(names.HAND_EDITS) == "False"


def test_a_label_can_be_taken_back() -> None:
    world = rolled_out()
    relabel(world, "node-a", "9223372036854775807")
    world.run(60)
    relabel(world, "node-a", "2")
    world.run(10)
    assert world.condition(names.HAND_EDITS) == "False"
    assert world.settled()


@pytest.mark.parametrize("number", ["7", "99", "2147483648", "9223372036854775807"])
def test_a_forged_revision_status_makes_no_number(number: str) -> None:
    world = rolled_out()
    name = f"{names.REVISION_STATUS}-{number}"
    metadata = {
        "name": name,
        "namespace": TARGET,
        "labels": dict(names.OWN_LABELS),
        "annotations": {names.REVISION_READY_ANNOTATION: "true"},
    }
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    world.server.create("user", CONFIG_MAPS, {**body, "data": {"hash": "x", "revision": number}})
    world.run(10)
    assert name in world.full_condition(names.REVISION_DEGRADED)["message"]
    assert world.condition(names.REVISION_DEGRADED) == "True"
    world.tune(2)
    world.run(20)
    assert world.status["latestAvailableRevision"] == 3
    world.server.delete("user", world.config_map_ref(name))
    world.run(5)
    world.settle(60)
    assert world.current() == {"node-a": 3}
    assert world.condition(names.REVISION_DEGRADED) == "False"


def test_a_cluster_with_an_impossible_number_recovers_by_itself() -> None:
    world = rolled_out(3)
    largest = 2**63 - 1
    world.operator.kill()

    def spoil(obj: Object) -> None:
        obj["status"]["latestAvailableRevision"] = largest
        obj["status"]["nodeStatuses"][0]["currentRevision"] = largest

    world.server.edit("user", KUBE_SCHEDULERS, "cluster", spoil, None, "status")
    relabel(world, "node-a", str(largest))
    world.operator.start()
    world.run(60)
    world.tune(2)
    world.run(0.5)
    world.settle(180)
    assert set(world.current().values()) == {3}
