"""The nodes that there are, and of each only what the annotator needs.

Node objects have tens of kilobytes; of five thousand of them one process must not keep all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ...base.names import LOAD_ANNOTATION
from ...base.quantities import amounts
from .annotation import KEYS, OWN, read_hot, read_own, read_requested
from .measurement import Load
from .node_history import Track

_FOREIGN: Final = frozenset(key for family, keys in KEYS.items() if family != OWN for key in keys)
_ADDRESSES: Final = ("InternalIP", "ExternalIP", "Hostname")


class Node:
    """A node.

    Attributes:
        name: its name.
        uid: which one of that name.
        version: its resourceVersion, what a PATCH is conditional on.
        address: where its exporter and its kubelet listen; "" if nobody says.
        capacities: thousandths of a core and bytes, 0 if nobody says.
        foreign: keys of other families that it has.
        written: what our annotation says.
        track: the past of its load.
        load: what was said of it last.
        failures: how often in a row its source had nothing to say.
        trouble: why.
        requested: the sums of requests that safe's annotations say.
        hot: the hot value that crane's annotation says; None if it has none.
        due: when its next look is to begin, clock of the event loop; None: out of turn.
        patched_at: when it was written last, of the same clock.
    """

    __slots__ = (
        "_text", "address", "capacities", "due", "failures", "foreign", "hot", "load", "name",
        "patched_at", "requested", "track", "trouble", "uid", "version", "written",
    )  # fmt: skip

    def __init__(self, name: str, uid: str) -> None:
        self.name, self.uid = name, uid
        self.version = self.address = self.trouble = ""
        self.capacities = (0.0, 0.0)
        self.foreign: frozenset[str] = frozenset()
        self.written: Load | None = None
        self.track = Track()
        self.load: Load | None = None
        self.failures = 0
        self.requested: Mapping[str, float] = {}
        self.hot: int | None = None
        self.due: float | None = None
        self.patched_at = float("-inf")
        self._text: str | None = None

    def see(self, obj: Mapping[str, Any]) -> None:
        """Take over what the API says of it."""
        metadata, status = obj["metadata"], obj.get("status") or {}
        self.version = str(metadata.get("resourceVersion") or "")
        if status:
            self.address = _address(status.get("addresses") or ())
            found = amounts(status.get("capacity"))
            self.capacities = (found.get("cpu", 0.0), found.get("memory", 0.0))
        annotations = metadata.get("annotations") or {}
        foreign = _FOREIGN.intersection(annotations)
        if foreign or self.foreign:
            self.foreign = foreign
            self.hot, self.requested = read_hot(annotations), read_requested(annotations)
        text = annotations.get(LOAD_ANNOTATION)
        if text != self._text:
            self._text = text
            self.written = read_own(text)


class Fleet:
    """All nodes, by name.

    Args:
        arrived: told of a node that is new.
        left: told of one that is gone.
    """

    def __init__(
        self,
        arrived: Callable[[Node], None] = lambda _: None,
        left: Callable[[Node], None] = lambda _: None,
    ) -> None:
        self._nodes: dict[str, Node] = {}
        self._arrived, self._left = arrived, left

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def get(self, name: str) -> Node | None:
        """The node of that name."""
        return self._nodes.get(name)

    def see(self, obj: Mapping[str, Any]) -> Node:
        """A node as the API has it; one that was made anew under its name is another one."""
        metadata = obj["metadata"]
        name, uid = metadata["name"], str(metadata.get("uid") or "")
        node = self._nodes.get(name)
        if node is not None and node.uid != uid:
            self.lose(name)
            node = None
        if node is not None:
            node.see(obj)
            return node
        node = self._nodes[name] = Node(name, uid)
        node.see(obj)
        if node.written is not None:
            node.track.resume(node.written)
        self._arrived(node)
        return node

    def lose(self, name: str) -> None:
        """A node is gone."""
        node = self._nodes.pop(name, None)
        if node is not None:
            self._left(node)

    def keep_only(self, names: set[str]) -> None:
        """All others are gone."""
        for name in self._nodes.keys() - names:
            self.lose(name)


def _address(addresses: Any) -> str:
    found = {entry.get("type"): str(entry.get("address") or "") for entry in reversed(addresses)}
    return next((found[kind] for kind in _ADDRESSES if found.get(kind)), "")
