"""Backup and restore of the simulated etcd, below an operator that keeps running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kube_scheduler_operator.kube.resource import CONFIG_MAPS, NODES, ObjectRef

from ..imitation.apiserver import Object, clone
from .operator import RETRY_PERIOD

if TYPE_CHECKING:
    from .world import World


@dataclass(frozen=True, slots=True)
class Backup:
    """All objects at one time, and the version of the last write."""

    objects: dict[ObjectRef, Object]
    version: int


def back_up(world: World) -> Backup:
    return Backup(clone_all(world.server.objects), world.server.version)


def is_possible(world: World, backup: Backup) -> bool:
    """Whether only what this file is about differs: not the revisions, nor the machines.

    What nodes have and the API has forgotten is the subject of other tests.
    """
    same = {CONFIG_MAPS, NODES}
    before, now = (
        {(ref, obj["metadata"]["uid"]) for ref, obj in objects.items() if ref.resource in same}
        for objects in (backup.objects, world.server.objects)
    )
    quiet = not any(m.swapping or m.journal for m in world.machines.values())
    return before == now and quiet and all(m.up for m in world.machines.values())


def restore(
    world: World, backup: Backup, seconds: float, *, lease_shows: bool, noticed: bool = True
) -> None:
    """The API server is away for so long, and comes back with the state of a backup.

    `lease_shows`: the operator's Lease, which it reads every two seconds, is in the backup and has
    not been written by a faster one; `noticed`: no request for it was sent in that time.
    """
    server, operator = world.server, world.operator
    server.away = True
    for informer in operator.informers:
        informer.cut()
    for machine in world.machines.values():
        machine.lose_api_server()
    if noticed:
        operator.answered_since = None
    world.run(seconds)
    server.restore(backup.objects, backup.version)
    server.away, server.back_since = False, world.clock.now
    for informer in operator.informers:
        informer.resume()
    delay = world.rng.uniform(0.0, RETRY_PERIOD)
    world.clock.after(delay, operator._renew)
    if operator.alive and (lease_shows or noticed):
        world.clock.after(delay, lambda: operator.start_over(restored=lease_shows))
    for machine in world.machines.values():
        machine.find_other_objects()


def clone_all(objects: dict[ObjectRef, Object]) -> dict[ObjectRef, Object]:
    return {ref: clone(obj) for ref, obj in objects.items()}
