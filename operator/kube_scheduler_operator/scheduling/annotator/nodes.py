"""The nodes, reduced to the fields that the annotator needs.

A Node object has tens of kilobytes; one process must not keep five thousand of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ...base.names import LOAD_ANNOTATION
from ...base.quantities import amounts
from ..load.policy import OWN
from .annotation import KEYS, read_hot, read_own, read_requested
from .measurement import Load
from .node_history import LoadHistory

_FOREIGN: Final = frozenset(key for family, keys in KEYS.items() if family != OWN for key in keys)
_ADDRESSES: Final = ("InternalIP", "ExternalIP", "Hostname")


class AnnotatedNode:
    __slots__ = (
        "_text", "address", "capacities", "due", "error", "failures", "foreign", "history", "hot",
        "kubelet_port", "load", "name", "patched_at", "read_at", "reading", "requested", "uid",
        "version", "written",
    )  # fmt: skip

    def __init__(self, name: str, uid: str) -> None:
        self.name, self.uid = name, uid
        # the precondition of a PATCH; the address of its exporter and kubelet; "" if unknown
        self.version = self.address = self.error = ""
        self.kubelet_port = 0  # port of its kubelet; 0 if unknown
        self.capacities = (0.0, 0.0)  # millicores and bytes; 0 if unknown
        self.foreign: frozenset[str] = frozenset()  # keys of other families that it has
        self.written: Load | None = None  # the load in the operator's annotation
        self.history = LoadHistory()
        self.load: Load | None = None  # the last measured load
        self.failures = 0  # number of consecutive failed measurements
        self.requested: Mapping[str, float] = {}  # sums of requests in safe's annotations
        self.hot: int | None = None  # hot value in crane's annotation; None if missing
        # time of its next regular poll, on the event loop's clock; None for an early poll
        self.due: float | None = None
        self.patched_at = float("-inf")  # time of the last PATCH, on the same clock
        # what a source's last answer gave as its time, by another machine's clock
        self.reading: object = None
        # when that was first seen, in seconds since 1970 by the API server's clock
        self.read_at = 0.0
        self._text: str | None = None

    def seen(self, reading: object, now: float) -> float:
        """Return the time of a measurement to which its source gives the time `reading`.

        The source's clock may be wrong, or be set. So a measurement is as old as the time since it
        was first seen; one without a time is new.
        """
        if reading is None or reading != self.reading:
            self.reading, self.read_at = reading, now
        return self.read_at

    def update(self, obj: Mapping[str, Any]) -> None:
        metadata, status = obj["metadata"], obj.get("status") or {}
        self.version = str(metadata.get("resourceVersion") or "")
        if status:
            self.address = _address(status.get("addresses") or ())
            self.kubelet_port = _kubelet_port(status)
            capacity = amounts(status.get("capacity"))
            self.capacities = (capacity.get("cpu", 0.0), capacity.get("memory", 0.0))
        annotations = metadata.get("annotations") or {}
        foreign = _FOREIGN.intersection(annotations)
        if foreign or self.foreign:
            self.foreign = foreign
            self.hot, self.requested = read_hot(annotations), read_requested(annotations)
        text = annotations.get(LOAD_ANNOTATION)
        if text != self._text:
            self._text = text
            self.written = read_own(text)


class NodeRegistry:
    """All nodes, by name; calls `arrived` with each new node and `left` with each removed one."""

    def __init__(
        self,
        arrived: Callable[[AnnotatedNode], None] = lambda _: None,
        left: Callable[[AnnotatedNode], None] = lambda _: None,
    ) -> None:
        self._nodes: dict[str, AnnotatedNode] = {}
        self._arrived, self._left = arrived, left

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[AnnotatedNode]:
        return iter(self._nodes.values())

    def get(self, name: str) -> AnnotatedNode | None:
        return self._nodes.get(name)

    def update(self, obj: Mapping[str, Any]) -> AnnotatedNode:
        """Add or update a node from the API object; a different uid is a new node."""
        metadata = obj["metadata"]
        name, uid = metadata["name"], str(metadata.get("uid") or "")
        node = self._nodes.get(name)
        if node is not None and node.uid != uid:
            self.remove(name)
            node = None
        if node is not None:
            node.update(obj)
            return node
        node = self._nodes[name] = AnnotatedNode(name, uid)
        node.update(obj)
        if node.written is not None:
            node.history.resume(node.written)
        self._arrived(node)
        return node

    def remove(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is not None:
            self._left(node)


def _kubelet_port(status: Mapping[str, Any]) -> int:
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    port = endpoint.get("Port")  # capitalized in the API
    return port if isinstance(port, int) else 0


def _address(addresses: Any) -> str:
    by_type = {item.get("type"): str(item.get("address") or "") for item in reversed(addresses)}
    return next((by_type[kind] for kind in _ADDRESSES if by_type.get(kind)), "")
