"""Reads a world from a cluster with the user's rights."""

from __future__ import annotations

from typing import Final

from ..kube.api import LeftOut
from ..kube.client import ApiClient
from ..kube.errors import Forbidden, NotFound
from .kinds import KINDS, NODES, PODS, Object
from .world import World

_NEEDED: Final = (NODES, PODS)


async def read_cluster(api: ApiClient, *, annotations: bool = False) -> World:
    """Read all kinds that scheduling reads.

    Kinds that the user may not read are left out and noted, except Nodes and Pods. With
    `annotations`, all annotations of Nodes are kept, for policies that read them.

    Raises:
        KubeError: Nodes or Pods cannot be read, or the API server does not respond.
    """
    world = World(annotations=annotations)

    def take(obj: Object) -> Object:
        world.add(obj)
        return _NOTHING

    for resource in KINDS:
        try:
            listed = await api.list(resource, keep=take)
        except Forbidden:
            if resource in _NEEDED:
                raise
            world.notes.append(
                f"you have no permission to list {resource.name}, so the simulation has none"
            )
        except NotFound:
            pass  # this version does not serve the kind
        else:
            world.notes += [not_simulated(left_out) for left_out in listed.left_out]
    world.complete()
    return world


def not_simulated(left_out: LeftOut) -> str:
    """Return a note about an object that is not in the world."""
    name = f"{left_out.namespace}/{left_out.name}" if left_out.namespace else left_out.name
    return f"{left_out.kind} {name} is not in the simulation: it has {left_out.excess}"


_NOTHING: Final[Object] = {}
