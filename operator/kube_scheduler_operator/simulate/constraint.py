"""A constraint of a pod: the smallest part that a user can change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from operator import getitem
from typing import Any

from .kinds import Object

Change = Callable[[Object], None]
"""Changes a pod in place."""


class Rank(IntEnum):
    """The order of advice: what a person would do first."""

    MEND = 0  # repair what is broken in the cluster
    RULE = 1  # repair the rule, which stays
    LESS = 2  # ask for less
    NODE = 3  # add a node
    DROP = 4  # remove a rule
    NOTHING = 5  # ask for nothing of a resource


@dataclass(frozen=True, slots=True, eq=False)
class Repair:
    """A change that keeps a constraint, and may help."""

    text: str  # the change, in the imperative
    change: Change
    field: str = ""  # that it sets, as a path in the pod
    rank: Rank = Rank.RULE
    object: str = ""  # Kind namespace/name that has the field; empty: what the pod's owner edits
    objects: tuple[Object, ...] = ()  # that the changed pod needs


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
    field: str = ""  # that `fix` changes, as a path in the pod; empty: another object
    repairs: tuple[Repair, ...] = ()  # to try before `fix`
    # the family that names the same fact: what it excludes, this one does not name again
    named_by: str = ""
    words: str = ""  # a part of kube-scheduler's reason for it; empty: that is not known

    def reasons(self, of_family: Sequence[str]) -> tuple[str, ...]:
        """Return those of kube-scheduler's reasons for its family that are for this constraint."""
        own = tuple(reason for reason in of_family if self.words and self.words in reason)
        return own or tuple(of_family)


def removing(entry: Any, *path: str) -> Change:
    """Return what removes an entry from the list at a path of a pod."""

    def remove(pod: Object) -> None:
        holder: Any = reduce(getitem, path[:-1], pod)
        holder[path[-1]] = [other for other in holder[path[-1]] if other != entry]

    return remove


def containers(spec: Mapping[str, Any]) -> Iterator[Object]:
    for field in ("initContainers", "containers"):
        yield from spec.get(field) or ()
