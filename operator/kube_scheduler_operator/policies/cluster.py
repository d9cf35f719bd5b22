"""The cluster as policies see it: nodes by index, the pods on them, and who wants to know.

Whoever watches the API calls `set_node`, `set_pod` and so on; policies are told what has changed
and keep what they derive from it, so that a request from kube-scheduler finds it ready. All of it
happens in one thread, so there are no locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ..base.quantities import PODS, amounts
from .arrays import Column
from .pods import FINISHED, Amounts, Pod, read_pod

F = TypeVar("F")


class Node:
    """One node; not to be changed.

    Attributes:
        name, uid, labels, annotations: of the node.
        allocatable: what pods may have; cpu in thousandths of a core, everything else in base
            units.
        capacity: what the machine has.
        taints: as the API has them.
        unschedulable: it is cordoned.
    """

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
        # A kubelet that says nothing else gives pods the whole machine.
        self.allocatable: Amounts = amounts(status.get("allocatable")) or self.capacity
        self.taints: list[Mapping[str, Any]] = spec.get("taints") or []
        self.unschedulable = bool(spec.get("unschedulable"))

    def same(self, other: Node) -> bool:
        """Whether policies would see no difference: a heartbeat is none."""
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)


NodeCallback = Callable[[int, Node | None], None]
PodCallback = Callable[[int, Pod, bool], None]
NameCallback = Callable[[int, str], None]


class Cluster:
    """Nodes, the pods that are bound to them, and sums of what those request.

    A node has an index from when it or a pod of it is first heard of until both are gone; then the
    index may go to another one.

    Attributes:
        index: node name to index.
        names: index to node name; empty where there is none.
        nodes: index to node; None where only its pods are known.
        version: grows with every change that a policy could see.
        names_version: grows when a name gets an index or loses it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.index: dict[str, int] = {}
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self.version = 0
        self.names_version = 0
        self.now = clock
        """Seconds since 1970."""
        self._pods: dict[str, tuple[int, Pod]] = {}
        self._on: list[dict[str, Pod]] = []
        self._free: list[int] = []
        self._requested: dict[str, Column] = {}
        self._node_callbacks: list[NodeCallback] = []
        self._pod_callbacks: list[PodCallback] = []
        self._name_callbacks: list[NameCallback] = []

    def __len__(self) -> int:
        """How many indices there are; columns and tables have as many rows."""
        return len(self.names)

    # --- who wants to know ----------------------------------------------------------------------

    def on_node(self, callback: NodeCallback) -> Callable[[], None]:
        """Call back with (index, node, or None when it is gone), now for those that are known.

        Returns:
            What ends it.
        """
        for index, node in enumerate(self.nodes):
            if node is not None:
                callback(index, node)
        return _enter(self._node_callbacks, callback)

    def on_pod(self, callback: PodCallback) -> Callable[[], None]:
        """Call back with (index, pod, whether it has come), now for those that are known.

        A pod whose requests change goes and comes. Returns what ends it.
        """
        for index, pod in self._pods.values():
            callback(index, pod, True)
        return _enter(self._pod_callbacks, callback)

    def on_name(self, callback: NameCallback) -> Callable[[], None]:
        """Call back with (index, name) when an index gets a name, now for those that have one.

        Returns:
            What ends it.
        """
        for name, index in self.index.items():
            callback(index, name)
        return _enter(self._name_callbacks, callback)

    # --- what has happened ----------------------------------------------------------------------

    def set_node(self, obj: Mapping[str, Any]) -> None:
        """A node is there, or has changed; `obj` is the API's JSON."""
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
        """A node is gone; its pods go by themselves."""
        index = self.index.get(name)
        if index is None or self.nodes[index] is None:
            return
        self.nodes[index] = None
        self.version += 1
        for callback in self._node_callbacks:
            callback(index, None)
        self._release(index)

    def set_pod(self, obj: Mapping[str, Any]) -> None:
        """A pod is there, or has changed; `obj` is the API's JSON.

        Pods without a node are nobody's, and those that have finished hold nothing any more.
        """
        pod = read_pod(obj)
        if not pod.node_name or pod.phase in FINISHED:
            self._forget(pod.key)
            return
        before = self._pods.get(pod.key)
        if before is not None:
            if before[1].node_name == pod.node_name and before[1].demand.same(pod.demand):
                return
            self._forget(pod.key)
        index = self._slot(pod.node_name)
        self._pods[pod.key] = (index, pod)
        self._on[index][pod.key] = pod
        self._add(index, pod.requests, 1.0)
        self.version += 1
        for callback in self._pod_callbacks:
            callback(index, pod, True)

    def remove_pod(self, namespace: str, name: str, uid: str) -> None:
        """A pod is gone."""
        self._forget(uid or f"{namespace}/{name}")

    # --- what is known --------------------------------------------------------------------------

    def pods_on(self, index: int) -> Iterator[Pod]:
        """The pods that are bound to a node."""
        return iter(self._on[index].values())

    def pod_keys(self) -> set[str]:
        """The keys of all pods that are known: a new list lacks those that have gone."""
        return set(self._pods)

    def pod(self, key: str) -> Pod | None:
        """The pod of that key (`Pod.key`), if it is bound."""
        found = self._pods.get(key)
        return found[1] if found else None

    def requested(self, resource: str) -> Column:
        """What the pods of each node request of a resource, kept up to date; of "pods", how many.

        In thousandths of a core for cpu, in base units otherwise; 0 where there is no pod.
        """
        column = self._requested.get(resource)
        if column is None:
            column = self._requested[resource] = Column(0.0)
            for index, pod in self._pods.values():
                column[index] += pod.requests.get(resource, 0.0) if resource != PODS else 1.0
        return column

    # --- inside ---------------------------------------------------------------------------------

    def _forget(self, key: str) -> None:
        found = self._pods.pop(key, None)
        if found is None:
            return
        index, pod = found
        del self._on[index][key]
        self._add(index, pod.requests, -1.0)
        self.version += 1
        for callback in self._pod_callbacks:
            callback(index, pod, False)
        self._release(index)

    def _add(self, index: int, requests: Amounts, sign: float) -> None:
        # Requests are whole numbers, so sums are exact however often pods come and go.
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


def _enter(callbacks: list[F], callback: F) -> Callable[[], None]:
    callbacks.append(callback)

    def leave() -> None:
        callbacks.remove(callback)

    return leave
