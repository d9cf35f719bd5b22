"""Lists of node names in requests, with the indices of the nodes in the cluster.

kube-scheduler goes through its nodes in a circle and sends as many as it needs, so lists recur byte
by byte: with 500 nodes and Pods that fit everywhere, six of ten were among the last 256. Parsing a
list and looking up its names is a quarter of the cost of a request, so the last lists are cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import orjson

from ..policies.arrays import Ints, np
from ..policies.cluster import Cluster

_CACHE_SIZE: Final = 256
_CACHE_BYTES: Final = 1024 * 1024
"""Limits of the cache: lists, and bytes of JSON; the objects take about eight times as much."""


class NamesError(ValueError):
    """A name is not a string."""


class NodeNames:
    """An immutable list of names, shared by requests."""

    __slots__ = ("_split", "_version", "indices", "json", "positions", "texts")

    def __init__(self, texts: list[str], json: bytes | None = None) -> None:
        self.texts = texts
        self.json = orjson.dumps(texts) if json is None else json
        self.indices: Ints  # cluster indices of the known nodes (intp[k]); see `locate`
        # position in `texts` of each of `indices` (intp[k]); None: all are known
        self.positions: Ints | None = None
        self._version = -1
        self._split: tuple[tuple[int, ...], NodeNames, list[str]] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def locate(self, cluster: Cluster) -> None:
        """Look the names up in the cluster: sets `indices` and `positions`. Raises NamesError."""
        if self._version == cluster.names_version:
            return
        try:
            known = map(cluster.index.__getitem__, self.texts)
            self.indices, self.positions = np.fromiter(known, np.intp, len(self.texts)), None
        except KeyError:
            self._locate_some(cluster)
        except TypeError as error:
            raise NamesError("NodeNames must be a list of strings") from error
        self._version = cluster.names_version

    def split(self, positions: Iterable[int]) -> tuple[NodeNames, list[str]]:
        """Return the names at other positions, and the names at these positions.

        Successive Pods often have the same nodes rejected, so the last result is cached.
        """
        at = tuple(positions)
        if self._split is None or self._split[0] != at:
            texts = self.texts
            left = NodeNames(without(texts, at))
            if self.positions is None and self._version >= 0:
                remaining = np.ones(len(texts), np.bool_)
                remaining[list(at)] = False
                left.indices, left._version = self.indices[remaining], self._version
            self._split = at, left, [texts[position] for position in at]
        return self._split[1:]

    def _locate_some(self, cluster: Cluster) -> None:
        if not all(type(name) is str for name in self.texts):
            raise NamesError("NodeNames must be a list of strings")
        indices = [cluster.index.get(name, -1) for name in self.texts]
        known = [position for position, index in enumerate(indices) if index >= 0]
        self.indices = np.array([indices[position] for position in known], np.intp)
        self.positions = np.array(known, np.intp)


class RecentNodeNames:
    """A cache of the last lists by their JSON."""

    def __init__(self, size: int = _CACHE_SIZE, size_bytes: int = _CACHE_BYTES) -> None:
        self._size, self._room = size, size_bytes
        self._lists: OrderedDict[bytes, NodeNames] = OrderedDict()

    def get(self, json: bytes) -> NodeNames:
        """Return the list of a request.

        Raises:
            orjson.JSONDecodeError: it is not JSON.
        """
        names = self._lists.get(json)
        if names is not None:
            self._lists.move_to_end(json)
            return names
        names = NodeNames(orjson.loads(json), json)
        self._lists[json] = names
        self._room -= len(json)
        while self._room < 0 or len(self._lists) > self._size:
            forgotten, _ = self._lists.popitem(last=False)
            self._room += len(forgotten)
        return names


def without(elements: list[Any], positions: Iterable[int]) -> list[Any]:
    """Return a list without the elements at these positions."""
    left = elements.copy()
    for at in sorted(positions, reverse=True):  # few, so most of the list is copied only once
        del left[at]
    return left
