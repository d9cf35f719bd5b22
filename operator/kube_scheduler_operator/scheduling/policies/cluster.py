"""The node view of policies: nodes by index, their Pods, and callbacks for changes.

Watches call `set_node`, `set_pod` and so on. Policies receive the changes and keep derived values,
which are then ready for requests from kube-scheduler. Everything runs in one thread, without locks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from ...base.quantities import PODS, amounts
from .arrays import Column
from .pods import FINISHED, Amounts, Pod, assumed_pod, pod_key, read_pod

F = TypeVar("F")

ASSUMED_SECONDS: Final = 10.0
"""Seconds after which an assumed Pod without an observed binding is removed. Bindings are observed
within milliseconds; where one fails, kube-scheduler tries the Pod again."""

_MOST_ASSUMED: Final = 4096
"""Assumed Pods; the oldest are removed for others."""


class Node:
    """An immutable node; amounts of CPU are in millicores, all others in base units."""

    __slots__ = (
        "allocatable", "annotations", "capacity", "labels", "name", "taints", "uid",
        "unschedulable",
    )  # fmt: skip

    def __init__(self, obj: Mapping[str, Any]) -> None:
        metadata, spec = obj.get("metadata") or {}, obj.get("spec") or {}
        status = obj.get("status") or {}
        self.name = str(metadata.get("name") or "")
        self.uid = str(metadata.get("uid") or "")
        self.labels: Mapping[str, str] = metadata.get("labels") or {}
        self.annotations: Mapping[str, str] = metadata.get("annotations") or {}
        self.capacity: Amounts = amounts(status.get("capacity"))
        # Without allocatable, all of the capacity is available to Pods.
        self.allocatable: Amounts = amounts(status.get("allocatable")) or self.capacity
        self.taints: list[Mapping[str, Any]] = spec.get("taints") or []
        self.unschedulable = bool(spec.get("unschedulable"))

    def same(self, other: Node) -> bool:
        """Report whether the nodes are equal for policies; a heartbeat makes no difference."""
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)


NodeCallback = Callable[[int, Node | None], None]
PodCallback = Callable[[int, Pod, bool], None]
NameCallback = Callable[[int, str], None]


class Cluster:
    """Nodes, the Pods that are bound to them, and the sums of their requests.

    A node gets an index with its first event or the first of its Pods, and keeps it until the node
    and all its Pods are gone. The index is then reused.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.index: dict[str, int] = {}  # node name to index
        self.names: list[str] = []  # index to node name; empty for an unused index
        self.nodes: list[Node | None] = []  # index to node; None if only its Pods are known
        self.version = 0  # incremented with every observed change that is visible to policies
        self.names_version = 0  # incremented when an index is assigned or released
        self.now = clock
        """Seconds since 1970, by the clock of those who wrote times into Pods and annotations."""
        self._pods: dict[str, tuple[int, Pod]] = {}  # by key, the assumed ones included
        self._assumed: dict[str, float] = {}  # key to the time until which it counts, in this order
        self._on: list[dict[str, Pod]] = []
        self._free: list[int] = []
        self._requested: dict[str, Column] = {}
        self._node_callbacks: list[NodeCallback] = []
        self._pod_callbacks: list[PodCallback] = []
        self._name_callbacks: list[NameCallback] = []

    def __len__(self) -> int:
        """Return the number of indices, and of rows of columns and tables."""
        return len(self.names)

    # --- callbacks ------------------------------------------------------------------------------

    def on_node(self, callback: NodeCallback) -> Callable[[], None]:
        """Call back with (index, node; None if removed) for all present nodes and every change.

        Like the next two, it returns a function that removes the callback.
        """
        for index, node in enumerate(self.nodes):
            if node is not None:
                callback(index, node)
        return _register(self._node_callbacks, callback)

    def on_pod(self, callback: PodCallback) -> Callable[[], None]:
        """Call back with (index, pod, whether it was added) for all present Pods and every change.

        A Pod whose requests change is removed and added.
        """
        for index, pod in self._pods.values():
            callback(index, pod, True)
        return _register(self._pod_callbacks, callback)

    def on_name(self, callback: NameCallback) -> Callable[[], None]:
        """Call back with (index, name) for all present names and every new one."""
        for name, index in self.index.items():
            callback(index, name)
        return _register(self._name_callbacks, callback)

    # --- changes --------------------------------------------------------------------------------

    def set_node(self, obj: Mapping[str, Any]) -> None:
        """Add or update a node from the API's JSON."""
        node = Node(obj)
        if not node.name:
            return
        index = self._slot(node.name)
        before = self.nodes[index]
        if before is not None and before.same(node):
            return
        self.nodes[index] = node
        self.version += 1
        for callback in self._node_callbacks:
            callback(index, node)

    def remove_node(self, name: str) -> None:
        """Remove a node; its Pods are removed by their own events."""
        index = self.index.get(name)
        if index is None or self.nodes[index] is None:
            return
        self.nodes[index] = None
        self.version += 1
        for callback in self._node_callbacks:
            callback(index, None)
        self._release(index)

    def set_pod(self, obj: Mapping[str, Any]) -> None:
        """Add or update a Pod from the API's JSON.

        Pods without a node, and those that have finished, use no resources and are removed.
        """
        pod = read_pod(obj)
        if not pod.node_name or pod.phase in FINISHED:
            self._forget(pod.key)
            return
        before = self._pods.get(pod.key)
        if before is not None:
            if before[1].node_name == pod.node_name and before[1].demand.same(pod.demand):
                if self._assumed.pop(pod.key, None) is not None:
                    before[1].assumed = False
                    self.version += 1
                return
            self._forget(pod.key)
        self._put(self._slot(pod.node_name), pod)
        self.version += 1

    def remove_pod(self, obj: Mapping[str, Any]) -> None:
        self._forget(pod_key(obj))

    def assume(self, pod: Pod, index: int) -> None:
        """Count a Pod on the node that kube-scheduler will probably choose for it.

        Of a burst, kube-scheduler places dozens of Pods before the first binding is observed. Until
        that of this Pod is, at most for ASSUMED_SECONDS, it counts like a bound one.
        """
        if pod.key in self._pods and pod.key not in self._assumed:
            return
        self.forget_assumed(pod.key)
        if len(self._assumed) >= _MOST_ASSUMED:
            self.forget_assumed(next(iter(self._assumed)))
        now = self.now()
        self._assumed[pod.key] = now + ASSUMED_SECONDS
        self._put(index, assumed_pod(pod, self.names[index], now))

    def forget_assumed(self, key: str) -> None:
        """Remove an assumed Pod, which is tried again."""
        if key in self._assumed:
            self._forget(key)

    @contextlib.contextmanager
    def without_assumed(self, key: str) -> Iterator[None]:
        """Leave a Pod out where it is assumed, to evaluate the nodes for this Pod itself."""
        until, assumed = self._assumed.get(key), self._pods.get(key)
        self.forget_assumed(key)
        yield
        if until is None or assumed is None:
            return
        index, pod = assumed
        if self.names[index] == pod.node_name:  # its node may exist no more
            self._assumed[key] = until
            self._put(index, pod)

    def expire_assumed(self) -> None:
        """Remove assumed Pods whose bindings were not observed in time."""
        while self._assumed:
            key, until = next(iter(self._assumed.items()))
            if until > self.now():
                return
            self._forget(key)

    # --- queries --------------------------------------------------------------------------------

    def pods_on(self, index: int) -> Iterator[Pod]:
        return iter(self._on[index].values())

    def pod_keys(self) -> set[str]:
        """Return the keys of all Pods whose bindings were observed."""
        return self._pods.keys() - self._assumed.keys()

    def pod(self, key: str) -> Pod | None:
        """Return the bound Pod with this key (`Pod.key`)."""
        bound = self._pods.get(key)
        return bound[1] if bound else None

    def requested(self, resource: str) -> Column:
        """Return the sum of requests of each node's Pods for a resource; for "pods", their number.

        The column is updated. CPU is in millicores, all others in base units; 0 without Pods.
        """
        column = self._requested.get(resource)
        if column is None:
            column = self._requested[resource] = Column(0.0)
            for index, pod in self._pods.values():
                column[index] += pod.requests.get(resource, 0.0) if resource != PODS else 1.0
        return column

    # --- inside ---------------------------------------------------------------------------------

    def _put(self, index: int, pod: Pod) -> None:
        self._pods[pod.key] = (index, pod)
        self._on[index][pod.key] = pod
        self._add(index, pod.requests, 1.0)
        for callback in self._pod_callbacks:
            callback(index, pod, True)

    def _forget(self, key: str) -> None:
        bound = self._pods.pop(key, None)
        if bound is None:
            return
        if self._assumed.pop(key, None) is None:
            self.version += 1
        index, pod = bound
        del self._on[index][key]
        self._add(index, pod.requests, -1.0)
        for callback in self._pod_callbacks:
            callback(index, pod, False)
        self._release(index)

    def _add(self, index: int, requests: Amounts, sign: float) -> None:
        # Requests are integers, so the sums remain exact.
        for resource, column in self._requested.items():
            amount = 1.0 if resource == PODS else requests.get(resource, 0.0)
            if amount:
                column[index] += sign * amount

    def _slot(self, name: str) -> int:
        index = self.index.get(name)
        if index is not None:
            return index
        if self._free:
            index = self._free.pop()
            self.names[index] = name
        else:
            index = len(self.names)
            self.names.append(name)
            self.nodes.append(None)
            self._on.append({})
        self.index[name] = index
        self.names_version += 1
        for callback in self._name_callbacks:
            callback(index, name)
        return index

    def _release(self, index: int) -> None:
        if self.nodes[index] is None and not self._on[index]:
            del self.index[self.names[index]]
            self.names_version += 1
            self.names[index] = ""
            self._free.append(index)


def _register(callbacks: list[F], callback: F) -> Callable[[], None]:
    callbacks.append(callback)

    def leave() -> None:
        callbacks.remove(callback)

    return leave
