"""The objects that the simulated API server serves, with versions and watch events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import orjson

from ..kube.resource import Resource
from ..scheduling.policies.pods import FINISHED
from .kinds import PODS, Object
from .world import Key, World


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A change."""

    version: int  # the resourceVersion of the object then
    type: str  # ADDED, MODIFIED or DELETED
    content: bytes  # the object as JSON


Watcher = Callable[[WatchEvent], None]

_ADDED, _MODIFIED, _DELETED = "ADDED", "MODIFIED", "DELETED"
_METADATA = b'"metadata":{'
_VERSIONED = _METADATA + b'"resourceVersion":"1",'


@dataclass(slots=True)
class _Kind:
    objects: dict[Key, bytes] = field(default_factory=dict)  # key -> JSON
    events: list[WatchEvent] = field(default_factory=list)
    watchers: set[Watcher] = field(default_factory=set)  # those that get the next events


class WorldStore:
    """A world that changes while kube-scheduler runs, at first without its waiting pods."""

    def __init__(self, world: World | Callable[[], World]) -> None:
        self.version = 1  # the resourceVersion of the latest change
        self._world = world
        self.cluster_version = ""  # of the API server, once the objects are made; empty: unknown

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], _Kind]:
        """What is served by group and plural; made when it is needed: that takes a while."""
        world = self._world if isinstance(self._world, World) else self._world()
        self.cluster_version = world.version
        kinds: dict[tuple[str, str], _Kind] = {}
        for resource, entries in world.objects.items():
            kind = kinds.setdefault((resource.group, resource.plural), _Kind())
            for key, entry in entries.items():
                if entry.node or resource is not PODS:
                    kind.objects[key] = _versioned(entry.content)
        return kinds

    def _kind(self, resource: Resource) -> _Kind:
        return self._kinds.setdefault((resource.group, resource.plural), _Kind())

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return a copy of an object; None if it does not exist."""
        content = self._kind(resource).objects.get(key)
        return None if content is None else orjson.loads(content)

    def contents(self, resource: Resource) -> list[bytes]:
        return list(self._kind(resource).objects.values())

    def snapshot(self) -> dict[tuple[str, str], dict[Key, bytes]]:
        """Return all objects that exist now, by kind and key."""
        return {name: dict(kind.objects) for name, kind in self._kinds.items() if kind.objects}

    def put(self, resource: Resource, obj: Object) -> Object:
        """Add or replace an object; return it with its new resourceVersion."""
        self.version += 1
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(self.version)
        key = (metadata.get("namespace", ""), metadata["name"])
        kind = self._kind(resource)
        content = orjson.dumps(obj)
        event = _MODIFIED if key in kind.objects else _ADDED
        # kube-scheduler's watch of pods selects those that are not finished.
        if resource == PODS and (obj.get("status") or {}).get("phase") in FINISHED:
            if kind.objects.pop(key, None) is not None:
                self._emit(kind, _DELETED, content)
            return obj
        kind.objects[key] = content
        self._emit(kind, event, content)
        return obj

    def delete(self, resource: Resource, key: Key) -> Object | None:
        """Remove an object; None if it does not exist."""
        kind = self._kind(resource)
        content = kind.objects.pop(key, None)
        if content is None:
            return None
        self.version += 1
        obj: Object = orjson.loads(content)
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._emit(kind, _DELETED, orjson.dumps(obj))
        return obj

    def watch(self, resource: Resource, since: int | None, watcher: Watcher) -> None:
        """Send the events after version `since` and all further ones; None: further ones only."""
        kind = self._kind(resource)
        if since is not None:
            for event in kind.events:
                if event.version > since:
                    watcher(event)
        kind.watchers.add(watcher)

    def unwatch(self, resource: Resource, watcher: Watcher) -> None:
        self._kind(resource).watchers.discard(watcher)

    def _emit(self, kind: _Kind, type_: str, content: bytes) -> None:
        event = WatchEvent(self.version, type_, content)
        kind.events.append(event)
        for watcher in list(kind.watchers):
            watcher(event)


def event_line(event: str, content: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (event.encode(), content)


def _versioned(content: bytes) -> bytes:
    """Return the object with the resourceVersion of the world, without parsing it.

    Every content is written by `World.add`, so its first `"metadata":{` is the object's own.
    """
    return content.replace(_METADATA, _VERSIONED, 1)
