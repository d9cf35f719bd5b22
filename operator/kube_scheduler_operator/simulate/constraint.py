"""A constraint of a pod: the smallest part that a user can change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from math import floor
from operator import getitem
from typing import Any, Final

from ..base.quantities import CPU, EPHEMERAL_STORAGE, MEMORY
from .edits import Edit
from .kinds import Object

_IN_BYTES: Final = (MEMORY, EPHEMERAL_STORAGE)


Change = Callable[[Object], None]
"""Changes a pod in place."""

OtherEdits = Callable[[Sequence[str]], Iterable[Edit]]
"""Returns the edits of other objects that have the effect of a `Change`, from the nodes where the
pod fits then."""


def no_edits(_nodes: Sequence[str]) -> Iterable[Edit]:
    return ()


def unknown_edits(_nodes: Sequence[str]) -> Iterable[Edit]:
    """Return no edits: a change of other objects has the effect, and which one is not known."""
    return ()


class Rank(IntEnum):
    """The order of advice: what a person would do first."""

    MEND = 0  # repair what is broken in the cluster
    RULE = 1  # repair the rule, which stays
    LESS = 2  # ask for less
    NODE = 3  # add a node
    DROP = 4  # remove a rule
    NOTHING = 5  # ask for nothing of a resource


@dataclass(frozen=True, slots=True, eq=False)
class RuleRepair:
    """A change that keeps a constraint, and may help."""

    text: str  # the change, in the imperative
    change: Change
    field: str = ""  # that it sets, as a path in the pod
    rank: Rank = Rank.RULE
    object: str = ""  # Kind namespace/name that has the field; empty: what the pod's owner edits
    objects: tuple[Object, ...] = ()  # that the changed pod needs
    others: OtherEdits = no_edits  # what is edited, if `field` is none of the pod
    # the nodes where the text has the effect of `change`; None: all
    only: Callable[[str], bool] | None = None
    series: str = ""  # of those with the same one, the first that helps is named alone


@dataclass(frozen=True, slots=True)
class Constraint:
    family: str  # the key of FAMILIES
    text: str  # what it requires, for "nodes fail because …"
    fix: str  # how to remove it, in the imperative
    remove: Change  # removes it from a pod
    resource: str = ""  # the name of the requested resource
    # what a node lacks, with figures; empty, or without the function: `text` is all that is known
    on: Callable[[str], str] | None = None
    rank: Rank = Rank.DROP  # of `fix`
    size: int = 0  # how much a pod loses by `fix`; 0: as by others of the family
    field: str = ""  # that `fix` changes, as a path in the pod; empty: another object
    # what to try before `fix`; it is made only for a pod that fits nowhere
    repairs: Callable[[], Iterable[RuleRepair]] = tuple
    # the family that names the same fact: what it excludes, this one does not name again
    named_by: str = ""
    others: OtherEdits = no_edits  # what `fix` edits without `field`, as far as is known
    words: str = ""  # a part of kube-scheduler's reason for it; empty: that is not known
    # whether a reason is for a node; None: that does not depend on the node
    is_for: Callable[[str, str], bool] | None = None
    # what those reasons state about it, in our words; empty, or without the function: `on`
    seen: Callable[[Sequence[str]], str] | None = None

    def reasons(self, of_family: Sequence[str], node: str) -> tuple[str, ...]:
        """Return those of kube-scheduler's reasons for its family that are for this constraint."""
        own = tuple(reason for reason in of_family if self.words and self.words in reason)
        own = own or tuple(of_family)
        of_node = tuple(text for text in own if self.is_for is None or self.is_for(text, node))
        return of_node or own


def removing(entry: Any, *path: str) -> Change:
    """Return what removes an entry from the list at a path of a pod."""

    def remove(pod: Object) -> None:
        holder: Any = reduce(getitem, path[:-1], pod)
        holder[path[-1]] = [other for other in holder[path[-1]] if other != entry]

    return remove


def distinct(listed: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield entries of a list with their positions, without those that an earlier one equals.

    What removes an entry removes the equal ones as well.
    """
    for at, entry in enumerate(listed):
        if listed.index(entry) == at:
            yield at, entry


def containers(spec: Mapping[str, Any]) -> Iterator[Object]:
    for field in ("initContainers", "containers"):
        yield from spec.get(field) or ()


_UNITS: Final = (
    ("Ei", 2**60),
    ("Pi", 2**50),
    ("Ti", 2**40),
    ("Gi", 2**30),
    ("Mi", 2**20),
    ("Ki", 2**10),
)
_READABLE: Final = 100_000
"""Units of an amount that people write; of more, they use the next unit."""


def quantity_text(resource: str, amount: float) -> str:
    """Return an amount of `Demand` as users write it: 1500m, 2, 4Gi.

    It is at most the amount: 18181869946 bytes are 16.9Gi.
    """
    if resource == CPU:
        return f"{amount / 1000:g}" if amount % 1000 == 0 else f"{amount:.0f}m"
    if resource in _IN_BYTES or resource.startswith("hugepages-"):
        for unit, size in _UNITS:
            if amount >= size and amount % size == 0 and amount / size < _READABLE:
                return f"{amount / size:.0f}{unit}"
        for unit, size in _UNITS:
            if amount >= size:
                return f"{floor(10 * amount / size) / 10:g}{unit}"
    return f"{amount:.0f}"


def different_texts(resource: str, first: float, second: float) -> tuple[str, str]:
    """Return the texts of two amounts, with all digits if they would look alike otherwise."""
    texts = quantity_text(resource, first), quantity_text(resource, second)
    if texts[0] == texts[1] and first != second:
        return f"{first:.0f}", f"{second:.0f}"
    return texts
