"""Responses to prioritize, assembled from prebuilt fragments.

A response is a list of `{"Host":"NODE","Score":7}`. A node has only eleven such fragments, which
are encoded when the node is added. A response is then one table lookup and one join: 5 µs for 230
nodes, an eighth of the time for encoding.
"""

from __future__ import annotations

from typing import Any

import orjson

from ..policies.arrays import Ints, np
from ..policies.cluster import Cluster
from ..policies.policy import BEST

_WIDTH = BEST + 1


class Fragments:
    """The fragments of every node of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._table: Any = np.empty(64 * _WIDTH, dtype=object)
        cluster.on_name(self._named)

    def answer(self, indices: Ints, scores: Ints) -> bytes:
        """Return the HostPriorityList of node indices and scores 0..BEST (each intp[n])."""
        parts: list[bytes] = self._table[indices * _WIDTH + scores].tolist()
        return b"[" + b",".join(parts) + b"]"

    def _named(self, index: int, name: str) -> None:
        begin = index * _WIDTH
        if begin >= len(self._table):
            table: Any = np.empty(max(2 * len(self._table), begin + _WIDTH), dtype=object)
            table[: len(self._table)] = self._table
            self._table = table
        host = orjson.dumps(name)
        for score in range(_WIDTH):
            self._table[begin + score] = b'{"Host":%b,"Score":%d}' % (host, score)
