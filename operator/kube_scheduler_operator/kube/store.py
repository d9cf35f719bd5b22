"""What is known of the cluster: objects by key, fed by watches and by our own writes.

Watches lag behind our writes, relists lag behind watches, and events of an object and its
successor under the same name come in any order. So every object is admitted by its resourceVersion,
a number that grows across a kind's whole storage (a promise since Kubernetes 1.35, and true long
before).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from .resource import ObjectRef, Resource, Stream

Fields: TypeAlias = Mapping[str, Any]
"""An object in the store. Nobody may change it: views share it."""

_Objects: TypeAlias = dict[ObjectRef, Fields]

_TOMBSTONES: Final = 1024
"""Deletions remembered; late events arrive within seconds, so a few would do."""


class View:
    """An immutable snapshot of the store: later changes do not show in it."""

    __slots__ = ("_by_resource",)

    def __init__(self, by_resource: Mapping[Resource, Mapping[ObjectRef, Fields]]) -> None:
        self._by_resource = by_resource

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Fields | None:
        """One object, None if there is none."""
        return self._by_resource.get(resource, {}).get(ObjectRef(resource, namespace, name))

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> tuple[Fields, ...]:
        """All objects of a kind by namespace and name: in one namespace or (None) all of them.

        Args:
            resource: the kind.
            namespace: only objects in there.
            labels: only objects that have all these labels.
        """
        return tuple(
            obj
            for ref, obj in sorted(
                self._by_resource.get(resource, {}).items(),
                key=lambda item: (item[0].namespace or "", item[0].name),
            )
            if namespace in (None, ref.namespace) and _has_labels(obj, labels)
        )

    def __contains__(self, ref: ObjectRef) -> bool:
        return ref in self._by_resource.get(ref.resource, {})

    def __iter__(self) -> Iterator[ObjectRef]:
        for objects in self._by_resource.values():
            yield from objects


class Store:
    """Objects by key, newest version only. Not thread-safe: for one event loop."""

    def __init__(self) -> None:
        self._by_resource: dict[Resource, _Objects] = {}
        self._shared: set[Resource] = set()  # dicts that a view holds: copy before writing
        self._deleted: OrderedDict[ObjectRef, tuple[str, int]] = OrderedDict()
        self._listed: set[Stream] = set()

    def put(self, resource: Resource, obj: Fields) -> bool:
        """Take in `obj` unless something newer is known; feed it watch events and write answers.

        Returns:
            Whether the store changed.
        """
        ref = resource.ref(obj)
        version = _version(obj)
        held = self.get(ref)
        if held is not None and version <= _version(held):
            return False
        deleted_uid, deleted_version = self._deleted.get(ref, ("", -1))
        # A uid never comes back, whatever the version: a write that raced with the deletion can be
        # answered with a version that no watch ever showed.
        if deleted_uid and (_uid(obj) == deleted_uid or version <= deleted_version):
            return False
        self._writable(resource)[ref] = _slim(obj)
        return True

    def remove(self, resource: Resource, obj: Fields) -> bool:
        """Take out `obj`, the last state of a deleted object.

        What is held stays if it is another, newer object under the same name.

        Returns:
            Whether the store changed.
        """
        ref = resource.ref(obj)
        version = _version(obj)
        held = self.get(ref)
        same = held is not None and _uid(held) == _uid(obj)
        if held is not None and not same and _version(held) > version:
            return False
        if held is not None:
            version = max(version, _version(held))
        self._bury(ref, _uid(obj), version)
        if held is None:
            return False
        del self._writable(resource)[ref]
        return True

    def forget(self, ref: ObjectRef) -> bool:
        """Take out whatever is held under `ref`, after an API answer of NotFound for it.

        Returns:
            Whether the store changed.
        """
        held = self.get(ref)
        return held is not None and self.remove(ref.resource, held)

    def get(self, ref: ObjectRef) -> Fields | None:
        """What is held under `ref`, None if nothing is."""
        return self._by_resource.get(ref.resource, {}).get(ref)

    def view(self) -> View:
        """A snapshot; costs nothing until the next change of a kind."""
        self._shared = set(self._by_resource)
        return View(dict(self._by_resource))

    def mark_listed(self, stream: Stream) -> None:
        """Everything that `stream` covers has been put in at least once."""
        self._listed.add(stream)

    def synced(self, streams: Iterable[Stream]) -> bool:
        """Whether all `streams` have been listed; before that, absence means nothing."""
        return self._listed.issuperset(streams)

    def unsynced(self, streams: Iterable[Stream]) -> tuple[Stream, ...]:
        """Those of `streams` that have not been listed yet, for messages."""
        return tuple(stream for stream in streams if stream not in self._listed)

    def _writable(self, resource: Resource) -> _Objects:
        objects = self._by_resource.setdefault(resource, {})
        if resource in self._shared:
            objects = self._by_resource[resource] = dict(objects)
            self._shared.discard(resource)
        return objects

    def _bury(self, ref: ObjectRef, uid: str, version: int) -> None:
        known_uid, known_version = self._deleted.get(ref, (uid, -1))
        if known_version > version:
            uid, version = known_uid, known_version
        self._deleted[ref] = (uid, version)
        self._deleted.move_to_end(ref)
        if len(self._deleted) > _TOMBSTONES:
            self._deleted.popitem(last=False)


def _uid(obj: Fields) -> str:
    return str(obj["metadata"].get("uid") or "")


def _version(obj: Fields) -> int:
    """The resourceVersion; 0 for an object that never was in the API, so that it loses to any."""
    return int(obj["metadata"].get("resourceVersion") or 0)


def _slim(obj: Fields) -> Fields:
    """Without managedFields: often half of an object, and nobody here reads them."""
    if "managedFields" not in obj["metadata"]:
        return obj
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _has_labels(obj: Fields, labels: Mapping[str, str] | None) -> bool:
    if not labels:
        return True
    have = obj["metadata"].get("labels") or {}
    return all(have.get(key) == value for key, value in labels.items())
