"""Who undoes what the operator writes: an API server with older CRDs, and other clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kube_scheduler_operator.kube.resource import ObjectRef, Resource

from ..imitation.apiserver import Change, Object, clone
from ..imitation.connection import ACTOR

if TYPE_CHECKING:
    from .world import World


def prune(world: World, resource: Resource, *path: str) -> Callable[[], None]:
    """The API server drops a field of a kind, as with a CRD that does not have it.

    Returns:
        The installation of the right CRD.
    """
    server = world.server
    admit = server._admit

    def dropping(verb: str, ref: ObjectRef, old: Object | None, new: Object) -> None:
        if ref.resource == resource:
            _drop(new, path)
        admit(verb, ref, old, new)

    server._admit = dropping  # type: ignore[method-assign]

    def mend() -> None:
        server._admit = admit  # type: ignore[method-assign]

    return mend


def _drop(obj: Any, path: tuple[str, ...]) -> None:
    head, *rest = path
    if isinstance(obj, list):
        for item in obj:
            _drop(item, path)
    elif isinstance(obj, dict) and head in obj:
        if rest:
            obj[head] = clone(obj[head])
            _drop(obj[head], tuple(rest))
        else:
            del obj[head]


def revert(
    world: World,
    selects: Callable[[ObjectRef], bool],
    change: Callable[[Object], object] | None,
    subresource: str | None = None,
    delay: float = 0.02,
) -> Callable[[], None]:
    """Another client changes an object after each write of the operator; or deletes it (None).

    Returns:
        The end of that client.
    """
    server = world.server

    def listen(written: Change) -> None:
        if written.actor == ACTOR and written.kind != "DELETED" and selects(written.ref):
            world.clock.after(delay, lambda: act(written.ref))

    def act(ref: ObjectRef) -> None:
        if listen not in server.listeners or ref not in server.objects or server.away:
            return
        if change is None:
            server.delete("other", ref)
        else:
            obj = clone(server.objects[ref])
            change(obj)
            server.replace("other", ref.resource, obj, subresource)

    server.listeners.append(listen)
    return lambda: server.listeners.remove(listen) if listen in server.listeners else None
