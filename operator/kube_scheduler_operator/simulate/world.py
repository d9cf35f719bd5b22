"""A world: the objects of a cluster that scheduling reads, in few bytes each.

Objects are kept as JSON: 30,000 pods as dictionaries would need ten times the memory, and most of
them are only sent to kube-scheduler.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE, FOREIGN_NAME, FOREIGN_REASON
from ..base.objects import controller_of, mapping
from ..kube.resource import Resource
from ..scheduling.policies.pods import FINISHED
from .api_defaults import set_api_defaults
from .device_claims import claims_of, is_deleted_with, without_users
from .kinds import (
    BY_KIND,
    KINDS,
    NAMESPACES,
    NODES,
    PODS,
    RESIZES,
    RESOURCE_CLAIMS,
    Object,
    new_object,
    strip,
)
from .other_schedulers import MOST, FoundScheduler, found_group, found_scheduler

_NAMESPACE_OF_UIDS: Final = uuid.UUID("8c4f1c52-32a8-4c4e-9d0a-0d2f54c2b7a5")


UNKNOWN_TIME: Final = "2020-01-01T00:00:00Z"
"""The creationTimestamp of objects that have none: the API server always sends one."""


@dataclass(frozen=True, slots=True)
class Entry:
    content: bytes  # the object as JSON, without a resourceVersion
    node: str = ""  # the node of a bound pod; otherwise empty
    may_leave: bool = False  # whether it is a pod that terminates or may be resized

    def object(self) -> Object:
        obj: Object = orjson.loads(self.content)
        return obj


Key = tuple[str, str]
"""Namespace (empty if cluster-scoped) and name."""


@dataclass(frozen=True, slots=True)
class EndedPod:
    """A pod that needs no node any more; its texts are of others."""

    phase: str
    node: str  # empty if it never had one
    reason: str  # of its status; empty without one
    message: str
    owner: str  # its controller as Kind/name; empty without one


@dataclass(slots=True)
class World:
    # kind -> key -> object
    objects: dict[Resource, dict[Key, Entry]] = field(
        default_factory=lambda: {resource: {} for resource in KINDS}
    )
    # omissions of the world, one sentence each
    notes: list[str] = field(default_factory=list)
    # kinds of which nothing could be read -> why
    unread: Mapping[Resource, str] = field(default_factory=dict)
    annotations: bool = False
    version: str = ""  # version of the cluster's API server; empty: unknown
    kubelets: set[str] = field(default_factory=set)  # the versions of the nodes' kubelets
    ended: dict[Key, EndedPod] = field(default_factory=dict)  # for messages
    # Pods and workloads that run a scheduler, also those that the operator does not configure
    schedulers: list[FoundScheduler] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)  # PodGroup of Volcano -> its state
    # the Nodes that were read, which all copies of this world share
    _nodes: dict[Key, tuple[Entry, Object]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def add(self, obj: Mapping[str, Any]) -> bool:
        """Add what scheduling reads of an object; return False for another kind or a finished pod.

        Raises:
            ValueError: the object has no name.
        """
        self._note_others(obj)
        kind = BY_KIND.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
        if kind is None:
            return False
        resource = kind.resource
        kept = strip(kind, obj, self.annotations and resource.kind == "Node")
        metadata = kept["metadata"]
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"an object of kind {resource.kind} has no metadata.name")
        if resource.namespaced and not isinstance(metadata.setdefault("namespace", "default"), str):
            raise ValueError("metadata.namespace is not a text; put it in quotation marks")
        if "uid" not in metadata:
            where = f"{resource.name}/{metadata.get('namespace', '')}/{name}"
            metadata["uid"] = str(uuid.uuid5(_NAMESPACE_OF_UIDS, where))
        metadata.setdefault("creationTimestamp", UNKNOWN_TIME)
        node = ""
        if resource is PODS:
            if kept["status"].get("phase") in FINISHED:
                self.ended[metadata["namespace"], name] = _ended(obj)
                return False
            node = kept["spec"].get("nodeName") or ""
            kept["status"].setdefault("phase", "Running" if node else "Pending")
        set_api_defaults(resource, kept)
        if resource is NODES and (kubelet := _kubelet(obj)):
            self.kubelets.add(kubelet)
        key = (metadata.get("namespace", ""), name)
        if kind.only not in (None, key):
            return False
        may_leave = resource is PODS and may_leave_room(kept)
        self.objects[resource][key] = Entry(orjson.dumps(kept), node, may_leave)
        return True

    def _note_others(self, obj: Mapping[str, Any]) -> None:
        """Note what other schedulers an object shows."""
        if len(self.schedulers) < MOST and (scheduler := found_scheduler(obj)) is not None:
            self.schedulers.append(scheduler)
        if len(self.groups) < MOST and (group := found_group(obj)) is not None:
            self.groups |= (group,)

    def complete(self) -> None:
        """Add the namespaces of objects that came without them: affinity terms select them."""
        known = self.objects[NAMESPACES]
        for resource, entries in self.objects.items():
            if not resource.namespaced:
                continue
            for namespace in {key[0] for key in entries}:
                if ("", namespace) not in known:
                    labels = {"kubernetes.io/metadata.name": namespace}
                    self.add(new_object(NAMESPACES, namespace, labels=labels))

    def sort(self) -> None:
        """Put the objects into the order in which an API server lists them, by their keys."""
        for resource, entries in self.objects.items():
            ordered = sorted(entries)
            if ordered != list(entries):
                self.objects[resource] = {key: entries[key] for key in ordered}

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return a copy of an object; None if the world does not have it."""
        entry = self.objects[resource].get((namespace, name))
        return None if entry is None else entry.object()

    def all(self, resource: Resource) -> Iterator[Object]:
        return (entry.object() for entry in self.objects[resource].values())

    def node(self, name: str) -> Mapping[str, Any] | None:
        """Return a Node without its images, shared and not to be changed; None without one."""
        key = ("", name)
        entry = self.objects[NODES].get(key)
        if entry is None:
            return None
        known = self._nodes.get(key)
        if known is None or known[0] is not entry:
            known = self._nodes[key] = (entry, entry.object())
            known[1]["status"].pop("images", None)
        return known[1]

    def nodes(self) -> Iterator[Mapping[str, Any]]:
        """Yield all Nodes like `node`: questions read them many times."""
        return (node for _, name in self.objects[NODES] if (node := self.node(name)) is not None)

    def labels_of_nodes(self) -> dict[str, Mapping[str, str]]:
        """Return the labels of all Nodes by name, shared and not to be changed."""
        return {
            node["metadata"]["name"]: mapping(node["metadata"].get("labels"))
            for node in self.nodes()
        }

    def pending(self) -> list[Object]:
        """Return the pods without a node, oldest first."""
        pods = [entry.object() for entry in self.objects[PODS].values() if not entry.node]
        return sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def copy(self) -> World:
        """Return a world that can be changed without changing this one."""
        objects = {resource: dict(entries) for resource, entries in self.objects.items()}
        copied = replace(self, objects=objects, notes=list(self.notes), ended=dict(self.ended))
        copied._nodes = self._nodes
        return copied

    def drop_annotations(self) -> None:
        """Keep only the annotations of Nodes that kube-scheduler reads."""
        if self.annotations:
            self.annotations = False
            for node in list(self.all(NODES)):
                self.add(node)

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        self.objects[resource].pop((namespace, name), None)

    def remove_pod(self, pod: Object, *, comes_back: bool = False) -> None:
        """Remove a pod, and what its claims hold for it.

        Claims that were made for it go with it, unless the same pod `comes_back`.
        """
        namespace = pod["metadata"]["namespace"]
        self.remove(PODS, pod["metadata"]["name"], namespace)
        for name in claims_of(pod):
            claim = self.get(RESOURCE_CLAIMS, name, namespace)
            if claim is not None and is_deleted_with(claim, pod) and not comes_back:
                self.remove(RESOURCE_CLAIMS, name, namespace)
            elif claim is not None and (freed := without_users(claim, [pod])) is not None:
                self.add(freed)


def may_leave_room(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod terminates or may be resized."""
    if "deletionTimestamp" in pod["metadata"]:
        return True
    conditions = pod["status"].get("conditions") or ()
    return any(str(each.get("type")) in RESIZES for each in conditions)


def _kubelet(node: Mapping[str, Any]) -> str:
    return str(mapping(mapping(node.get("status")).get("nodeInfo")).get("kubeletVersion") or "")


def _ended(pod: Mapping[str, Any]) -> EndedPod:
    status, owner = mapping(pod.get("status")), controller_of(pod) or {}
    return EndedPod(
        str(status.get("phase")),
        str(mapping(pod.get("spec")).get("nodeName") or ""),
        foreign(str(status.get("reason") or ""), FOREIGN_REASON),
        foreign(str(status.get("message") or ""), FOREIGN_MESSAGE),
        f"{_name(owner.get('kind'))}/{_name(owner.get('name'))}" if owner else "",
    )


def _name(text: Any) -> str:
    """Return a name, as `owners.owner_of` does."""
    return str(text)[: FOREIGN_NAME + 1]


# --- what a result depends on --------------------------------------------------------------------


_UNRELATED: Final[Mapping[Resource, str]] = {PODS: "conditions", NODES: "images"}
"""Fields of the status that no filter reads: kube-scheduler writes one while a Pod waits, the
kubelet the other after each pull."""


def situation(world: World, others: Any) -> str:
    """Return the SHA-256 (hex) of all that decides which nodes accept the Pods of a world.

    `others` is further JSON data on which the result depends.
    """
    digest = hashlib.sha256(orjson.dumps(others, option=orjson.OPT_SORT_KEYS))
    for resource, kind in KINDS.items():
        if kind.read_by_scheduler:
            for _, entry in sorted(world.objects[resource].items()):
                digest.update(_relevant(resource, entry))
    return digest.hexdigest()


def content_hash(world: World, others: Any) -> str:
    """Return the SHA-256 (hex) of all objects of a world, and of further JSON data."""
    digest = hashlib.sha256(orjson.dumps(others, option=orjson.OPT_SORT_KEYS))
    for resource, entries in world.objects.items():
        digest.update(resource.name.encode())
        for _, entry in sorted(entries.items()):
            digest.update(entry.content)
    return digest.hexdigest()


def _relevant(resource: Resource, entry: Entry) -> bytes:
    """Return the object as JSON, without its unrelated field."""
    field = _UNRELATED.get(resource)
    if field is None:
        return entry.content
    obj: Object = entry.object()
    obj["status"].pop(field, None)
    return orjson.dumps(obj)
