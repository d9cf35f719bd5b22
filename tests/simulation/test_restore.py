"""Etcd is restored from a backup: what the nodes have on disk and the API has forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    PODS,
    SERVICE_ACCOUNTS,
    Resource,
)

from ..imitation.apiserver import Object, clone
from .world import World

pytestmark = pytest.mark.presubmit_first

TARGET = KUBEADM.target_namespace
SAVED: tuple[tuple[Resource, str | None], ...] = (
    (KUBE_SCHEDULERS, None),
    (CONFIG_MAPS, TARGET),
    (SERVICE_ACCOUNTS, TARGET),
    (PODS, TARGET),
)


@dataclass
class Backup:
    """Objects of an API server; pods on nodes come with the status that they had."""

    objects: list[tuple[Resource, Object]]


def back_up(world: World) -> Backup:
    return Backup(
        [
            (resource, clone(obj))
            for resource, namespace in SAVED
            for obj in world.server.list(resource, namespace)
        ]
    )


def restore(world: World, backup: Backup) -> None:
    """Bring the objects back as they were, with their uids, and start the operator again.

    Watches and versions of a running operator are another matter.
    """
    world.operator.kill()
    kept = {resource.ref(obj) for resource, obj in backup.objects}
    for resource, namespace in SAVED:
        for obj in world.server.list(resource, namespace):
            if resource.ref(obj) not in kept:
                world.server.finalize("etcd", resource.ref(obj))
    for resource, obj in backup.objects:
        ref = resource.ref(obj)
        old = world.server.objects.get(ref)
        world.server._commit("etcd", "MODIFIED" if old else "ADDED", ref, old, clone(obj))
    world.operator.start()


def edited(world: World, *percentages: int) -> None:
    for percentage in percentages:
        world.tune(percentage)
        world.run(0.5)
        world.settle(120)


def cluster(nodes: int) -> World:
    world = World(nodes=nodes)
    world.settle(90)
    edited(world, 1, 2)
    world.run_until(world.is_guarded, 90, "guards")
    return world


def content_of(world: World, number: int) -> int:
    return int(json.loads(world.config(number)).get("percentageOfNodesToScore", -1))


def stay_in_force(world: World) -> None:
    """No edit follows: the restored configuration is desired again."""


EDITS: dict[str, Callable[[World], None]] = {
    "no edit": stay_in_force,
    "the same edit again": lambda world: world.tune(3),
    "another edit": lambda world: world.tune(7),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("later", [(3,), (3, 4, 5)], ids=len)
def test_numbers_that_nodes_have_are_never_cut_again(
    edit: Callable[[World], None], nodes: int, later: tuple[int, ...]
) -> None:
    # The invariants: numbers only grow, and the content of a revision never changes.
    world = cluster(nodes)
    backup = back_up(world)
    edited(world, *later)
    newest = 3 + len(later)
    assert world.status["latestAvailableRevision"] == newest
    restore(world, backup)
    edit(world)
    world.run(120)
    world.settle(300)
    current = set(world.current().values())
    assert len(current) == 1
    assert min(current) > newest or content_of(world, newest) == later[-1]
    number = current.pop()
    wanted = {"no edit": 2, "the same edit again": 3, "another edit": 7}
    (key,) = (name for name, value in EDITS.items() if value is edit)
    assert content_of(world, number) == wanted[key]
    for machine in world.machines.values():
        assert machine.manifest == machine.last_good
        assert machine.shown == number
    assert world.condition(names.REVISION_DEGRADED) == "False"
    writes = world.operator.connection.writes
    world.run(120)
    assert world.operator.connection.writes == writes, "and then it is quiet"


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_number_that_was_cut_before_any_look_is_replaced(nodes: int) -> None:
    """The mirror pods do not show the forgotten revision 4: their labels were edited."""
    world = cluster(nodes)
    backup = back_up(world)
    edited(world, 3)
    restore(world, backup)
    for name in world.machines:
        world.server.edit(
            "user",
            PODS,
            KUBEADM.mirror_pod_name(name),
            lambda pod: pod["metadata"]["labels"].update({names.REVISION_LABEL: "3"}),
            KUBEADM.operand_namespace,
        )
    del world.invariants.contents[4]  # nothing in the API shows it
    world.tune(7)
    world.run(120)
    world.settle(300)
    (number,) = set(world.current().values())
    assert number > 4
    assert content_of(world, number) == 7
