"""Lists of nodes' names, as requests have them, and where in the cluster those nodes are.

kube-scheduler goes round its nodes and asks about as many as it needs, so the same lists come
again, byte by byte, as soon as it is round: with 500 nodes and pods that fit everywhere six of ten
were among the last 256. To parse a list and to find its names is a quarter of what a request costs,
because every name is somewhere else in memory. So the last lists are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import orjson

from ...policies.arrays import np

if TYPE_CHECKING:
    from ...policies.arrays import Ints
    from ...policies.cluster import Cluster

_KEPT: Final = 256
_KEPT_BYTES: Final = 1024 * 1024
"""Lists that are kept, and bytes of JSON; with what belongs to them it is some eight times that."""


class NamesError(ValueError):
    """A name is no text."""


class Names:
    """A list of names; not to be changed, because requests share it.

    Attributes:
        texts: the names themselves.
        json: the same as JSON.
        indices: those that the cluster knows, by their index there (intp[k]); see `locate`.
        positions: where in `texts` each of `indices` is (intp[k]); None: they are all.
    """

    __slots__ = ("_split", "_version", "indices", "json", "positions", "texts")

    def __init__(self, texts: list[str], json: bytes | None = None) -> None:
        self.texts = texts
        self.json = orjson.dumps(texts) if json is None else json
        self.indices: Ints
        self.positions: Ints | None = None
        self._version = -1
        self._split: tuple[tuple[int, ...], Names, list[str]] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def locate(self, cluster: Cluster) -> None:
        """Find them in the cluster: sets `indices` and `positions`.

        Raises:
            NamesError: a name is no text.
        """
        if self._version == cluster.names_version:
            return
        try:
            known = map(cluster.index.__getitem__, self.texts)
            self.indices, self.positions = np.fromiter(known, np.intp, len(self.texts)), None
        except KeyError:
            self._locate_some(cluster)
        except TypeError as error:
            raise NamesError("NodeNames must be a list of texts") from error
        self._version = cluster.names_version

    def split(self, positions: Iterable[int]) -> tuple[Names, list[str]]:
        """All but those at these positions, and those at these positions.

        A node that is rejected for one pod is so for the next one as a rule, so the last answer is
        kept.
        """
        at = tuple(positions)
        if self._split is None or self._split[0] != at:
            texts = self.texts
            left = Names(without(texts, at))
            if self.positions is None and self._version >= 0:
                kept = np.ones(len(texts), np.bool_)
                kept[list(at)] = False
                left.indices, left._version = self.indices[kept], self._version
            self._split = at, left, [texts[each] for each in at]
        return self._split[1:]

    def _locate_some(self, cluster: Cluster) -> None:
        if not all(type(name) is str for name in self.texts):
            raise NamesError("NodeNames must be a list of texts")
        found = [cluster.index.get(name, -1) for name in self.texts]
        known = [position for position, index in enumerate(found) if index >= 0]
        self.indices = np.array([found[position] for position in known], np.intp)
        self.positions = np.array(known, np.intp)


class LastNames:
    """The last lists, by their JSON."""

    def __init__(self, kept: int = _KEPT, kept_bytes: int = _KEPT_BYTES) -> None:
        self._kept, self._room = kept, kept_bytes
        self._lists: OrderedDict[bytes, Names] = OrderedDict()

    def get(self, json: bytes) -> Names:
        """The list that a request has.

        Raises:
            orjson.JSONDecodeError: It is no JSON.
        """
        names = self._lists.get(json)
        if names is not None:
            self._lists.move_to_end(json)
            return names
        names = Names(orjson.loads(json), json)
        self._lists[json] = names
        self._room -= len(json)
        while self._room < 0 or len(self._lists) > self._kept:
            forgotten, _ = self._lists.popitem(last=False)
            self._room += len(forgotten)
        return names


def without(found: list[Any], positions: Iterable[int]) -> list[Any]:
    """A list without what is at these positions."""
    left = found.copy()
    for at in sorted(positions, reverse=True):  # few, so most of the list is never looked at
        del left[at]
    return left
