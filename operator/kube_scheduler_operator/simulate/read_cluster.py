"""Reads a world from a cluster with the user's rights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ..base.limits import WORLD
from ..base.objects import entries, mapping
from ..kube.api import LeftOut, ListResult
from ..kube.client import ApiClient
from ..kube.errors import Forbidden, NotFound
from ..kube.resource import Resource
from .kinds import DAEMON_SETS, KINDS, NODES, PODS, Object, WorldKind
from .node_groups import has_groups
from .world import World

_NEEDED: Final = (NODES, PODS)

_FILLED: Final = 0.9
"""The part of a world's size that is left after objects were removed, so that this is rare."""


async def read_cluster(
    api: ApiClient,
    *,
    annotations: bool = False,
    most: int = WORLD,
    new_nodes: bool = False,
    new_pods: bool = False,
) -> World:
    """Read all kinds that scheduling reads, and with `new_pods` those that admission reads.

    Kinds that the user may not read are left out and noted, except Nodes and Pods. With
    `annotations`, all annotations of Nodes are kept, for policies that read them. `most` is the
    number of bytes of all objects; objects beyond it are left out and noted. With `new_nodes`, what
    autoscalers say about nodes that do not exist yet is read as well.

    Raises:
        KubeError: Nodes or Pods cannot be read, or the API server does not respond.
    """
    world = World(annotations=annotations)
    room = _Room(world, most)
    for resource, kind in KINDS.items():
        if kind.makes_nodes and not (new_nodes and _is_needed(kind, world)):
            continue
        if kind.of_new_pods and not new_pods:
            continue

        def take(obj: Object, resource: Resource = resource) -> Object:
            room.add(resource, obj)
            return _NOTHING

        try:
            listed = await _list(api, kind, take)
        except Forbidden:
            if resource in _NEEDED:
                raise
            if kind.only is not None and not has_groups(world):
                continue
            if not await _serves(api, kind):
                continue  # the API server refuses those without rights before it looks for the kind
            why = f"you have no permission to list {resource.name}"
            world.notes.append(f"{why}, so the simulation has none")
            world.unread = {**world.unread, resource: why}
        else:
            world.notes += not_simulated(listed.left_out if listed else ())
    world.notes += room.notes()
    world.complete()
    return world


async def read_nodes(api: ApiClient, namespace: str | None, *, most: int = WORLD) -> World:
    """Read Nodes with their annotations, and the Pods of a namespace or (None) of all; no more.

    Raises:
        KubeError: as of `read_cluster`.
    """
    world = World(annotations=True)
    room = _Room(world, most)
    for resource, where in ((NODES, None), (PODS, namespace)):

        def take(obj: Object, resource: Resource = resource) -> Object:
            room.add(resource, obj)
            return _NOTHING

        listed = await api.list(resource, where, keep=take)
        world.notes += not_simulated(listed.left_out)
    world.notes += room.notes()
    if world.notes:
        world.notes.append("what these objects request is not counted, so less may be free")
    world.version = str((await api.get_path("/version")).get("gitVersion") or "")
    return world


async def _list(
    api: ApiClient, kind: WorldKind, take: Callable[[Object], Object]
) -> ListResult | None:
    """List a kind in the newest version that the API server serves; None: it serves none."""
    for resource in kind.versions():
        try:
            if kind.only is not None:
                take(await api.get(resource.named(kind.only[1], kind.only[0])))
                return None
            return await api.list(resource, keep=take)
        except NotFound:
            pass
    return None


async def _serves(api: ApiClient, kind: WorldKind) -> bool:
    """Return whether the API server serves a kind; every account may read that."""
    for resource in kind.versions():
        if not resource.group:
            return True
        try:
            served = await api.get_path(f"/apis/{resource.api_version}")
        except NotFound:
            continue
        names = (mapping(entry).get("name") for entry in entries(served.get("resources")))
        if resource.plural in names:
            return True
    return False


def _is_needed(kind: WorldKind, world: World) -> bool:
    """Return whether a kind matters: DaemonSets, if anything is known that makes nodes."""
    if kind.resource is not DAEMON_SETS:
        return True
    others = (other.resource for other in KINDS.values() if other.makes_nodes)
    return any(world.objects[resource] for resource in others) or has_groups(world)


class _Room:
    """Keeps the size of a world.

    Beyond it, the namespace with most bytes loses the objects that were read last: no object
    displaces those of other namespaces.
    """

    def __init__(self, world: World, most: int) -> None:
        self._world, self._most = world, most
        self._keys: dict[str, list[tuple[Resource, str]]] = {}  # of each namespace
        self._sizes: Counter[str] = Counter()  # likewise, in bytes
        self._total = 0  # those without a namespace included
        self._removed: Counter[str] = Counter()

    def add(self, resource: Resource, obj: Object) -> None:
        objects = self._world.objects[resource]
        namespace = str(obj["metadata"].get("namespace") or "")
        key = (namespace, str(obj["metadata"]["name"]))
        before = objects.get(key)  # a list that outlasts its snapshot is read again
        if not self._world.add(obj):
            return
        size = len(objects[key].content) - (len(before.content) if before else 0)
        self._total += size
        if resource.namespaced:
            self._sizes[namespace] += size
            if before is None:
                self._keys.setdefault(namespace, []).append((resource, key[1]))
        if self._total > self._most:
            self._make_room()

    def notes(self) -> Iterator[str]:
        for namespace, count in sorted(self._removed.items()):
            yield (
                f"{count} objects of namespace {namespace} are not in the simulation: together, "
                f"the objects of the cluster have more than {self._most} bytes"
            )

    def _make_room(self) -> None:
        while self._total > _FILLED * self._most and self._keys:
            namespace = max(self._keys, key=self._sizes.__getitem__)
            resource, name = self._keys[namespace].pop()
            size = len(self._world.objects[resource].pop((namespace, name)).content)
            self._total -= size
            self._sizes[namespace] -= size
            self._removed[namespace] += 1
            if not self._keys[namespace]:
                del self._keys[namespace]


def not_simulated(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """Yield a note for each namespace of which objects are too large; a tenant may have thousands.

    They are of one kind.
    """
    by_namespace: dict[str, list[LeftOut]] = {}
    for obj in left_out:
        by_namespace.setdefault(obj.namespace, []).append(obj)
    for namespace, (first, *others) in by_namespace.items():
        name = f"{namespace}/{first.name}" if namespace else first.name
        if others:
            yield (
                f"{first.kind} {name} and {len(others)} more objects of this kind and namespace "
                "are not in the simulation: they are too large"
            )
        else:
            yield f"{first.kind} {name} is not in the simulation: it has {first.excess}"


_NOTHING: Final[Object] = {}
