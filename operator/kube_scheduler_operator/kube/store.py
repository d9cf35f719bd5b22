"""The latest known version of every watched object, from watches and the operator's own writes.

Watches lag behind writes, new lists lag behind watches, and events of an object and its successor
of the same name come in any order. The resourceVersion decides: it grows across all objects of a
kind (documented since Kubernetes 1.35, and true long before), until etcd is restored from a backup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ..base.bounded_cache import Recent
from ..base.objects import uid_of, version_of
from .resource import ObjectRef, Resource, Stream

Fields: TypeAlias = Mapping[str, Any]
"""An object in the store. It must not be changed: views share it."""

_Objects: TypeAlias = dict[ObjectRef, Fields]

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""The kubelet's mark of a mirror Pod, whose managedFields show the fields of its manifest."""

_TOMBSTONES: Final = 1024
"""Number of remembered deletions; late events arrive within seconds."""


@dataclass(frozen=True, slots=True)
class Known:
    """What was known of an object before a request: its newest version, or its deletion.

    A later response from etcd cannot be older, unless etcd was restored from a backup meanwhile.
    """

    ref: ObjectRef
    version: int = -1

    def contradiction(self, obj: Fields) -> str:
        """Return why `obj`, from a later response, proves an etcd restore; empty if it does not."""
        version = version_of(obj)
        if version < self.version:
            return f"{self.ref} has resourceVersion {version} after {self.version}"
        return ""


class StoreView:
    """An immutable view of the store at one time."""

    __slots__ = ("_by_resource",)

    def __init__(self, by_resource: Mapping[Resource, Mapping[ObjectRef, Fields]]) -> None:
        self._by_resource = by_resource

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Fields | None:
        """Return one object; None if it does not exist."""
        return self._by_resource.get(resource, {}).get(ObjectRef(resource, namespace, name))

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> tuple[Fields, ...]:
        """Return the objects of a kind, sorted by namespace and name; all namespaces for None.

        `labels` selects objects that have all these labels.
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
    """The newest version of each object by its key. Not thread-safe: for one event loop."""

    def __init__(self) -> None:
        self._by_resource: dict[Resource, _Objects] = {}
        self._shared: set[Resource] = set()  # kinds whose dict a view uses: copy before writing
        self._deleted: Recent[ObjectRef, tuple[str, int]] = Recent(_TOMBSTONES)
        self._listed: set[Stream] = set()

    def put(self, resource: Resource, obj: Fields, *, may_return: bool = False) -> bool:
        """Store `obj`, from a watch event or the response to a write, unless a newer one is known.

        With `may_return`, an object whose deletion is known may come back: a watch with a label
        selector reports that it lost the label as a deletion. For kinds that the operator does not
        write, whose objects come from watches only.

        Returns:
            Whether the store changed.
        """
        ref = resource.ref(obj)
        version = version_of(obj)
        stored = self.get(ref)
        if stored is not None and version <= version_of(stored):
            return False
        deleted_uid, deleted_version = self._deleted.get(ref, ("", -1))
        # A uid never returns, whatever the version: the response to a write that raced with the
        # deletion can have a version that no watch delivers.
        if deleted_uid and uid_of(obj) == deleted_uid and may_return:
            # With one change it may leave one selector and enter another one.
            deleted_version -= 1
        elif deleted_uid and uid_of(obj) == deleted_uid:
            return False
        if deleted_uid and version <= deleted_version:
            return False
        self._writable(resource)[ref] = _slim(obj)
        return True

    def remove(self, resource: Resource, obj: Fields) -> bool:
        """Remove `obj`, the last state of a deleted object.

        A newer object of the same name stays.

        Returns:
            Whether the store changed.
        """
        ref = resource.ref(obj)
        version = version_of(obj)
        stored = self.get(ref)
        same = stored is not None and uid_of(stored) == uid_of(obj)
        if stored is not None and not same and version_of(stored) > version:
            return False
        if stored is not None:
            version = max(version, version_of(stored))
        self._bury(ref, uid_of(obj), version)
        if stored is None:
            return False
        del self._writable(resource)[ref]
        return True

    def leave_out(self, ref: ObjectRef) -> bool:
        """Remove an object that exists and cannot be read; a later version of it may be stored.

        Returns:
            Whether the store changed.
        """
        return self._writable(ref.resource).pop(ref, None) is not None

    def forget(self, ref: ObjectRef) -> bool:
        """Remove the object `ref`, after the API returned NotFound for it.

        Returns:
            Whether the store changed.
        """
        stored = self.get(ref)
        return stored is not None and self.remove(ref.resource, stored)

    def known(self, ref: ObjectRef) -> Known:
        """Return what is known of `ref` now, to be compared with the response to a request."""
        if (stored := self.get(ref)) is not None:
            return Known(ref, version_of(stored))
        return Known(ref, self._deleted.get(ref, ("", -1))[1])

    def clear(self) -> None:
        """Forget everything, also what was listed: etcd was restored from a backup."""
        self._by_resource, self._shared = {}, set()
        self._deleted.clear()
        self._listed.clear()

    def get(self, ref: ObjectRef) -> Fields | None:
        return self._by_resource.get(ref.resource, {}).get(ref)

    def all(self, resource: Resource) -> Iterable[Fields]:
        return self._by_resource.get(resource, {}).values()

    def view(self) -> StoreView:
        """Return a view; copies a kind only at its next change."""
        self._shared = set(self._by_resource)
        return StoreView(dict(self._by_resource))

    def mark_listed(self, stream: Stream) -> None:
        """Note that all objects of `stream` have been stored once."""
        self._listed.add(stream)

    @property
    def listed(self) -> bool:
        """Whether any stream has been listed."""
        return bool(self._listed)

    def synced(self, streams: Iterable[Stream]) -> bool:
        """Return whether all `streams` have been listed; until then, an absent object may exist."""
        return self._listed.issuperset(streams)

    def unsynced(self, streams: Iterable[Stream]) -> tuple[Stream, ...]:
        """Return those of `streams` that have not been listed, for messages."""
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
        self._deleted.keep(ref, (uid, version))


def _slim(obj: Fields) -> Fields:
    """Drop managedFields, which are often half of an object; mirror Pods keep theirs."""
    if "managedFields" not in obj["metadata"]:
        return obj
    annotations = obj["metadata"].get("annotations")
    if isinstance(annotations, Mapping) and MIRROR_ANNOTATION in annotations:
        return obj
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _has_labels(obj: Fields, labels: Mapping[str, str] | None) -> bool:
    if not labels:
        return True
    present = obj["metadata"].get("labels") or {}
    return all(present.get(key) == value for key, value in labels.items())
