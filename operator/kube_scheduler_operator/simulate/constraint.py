"""A constraint of a pod: the smallest part that a user can change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

from .kinds import Object

Remove = Callable[[Object], None]
"""Changes a pod in place."""


@dataclass(frozen=True, slots=True)
class Constraint:
    family: str  # the key of FAMILIES
    text: str  # what it requires, for "nodes fail because …"
    fix: str  # how to remove it, in the imperative
    remove: Remove  # removes it from a pod
    resource: str = ""  # the name of the requested resource
    # what a node lacks, with figures; empty, or without the function: `text` is all that is known
    on: Callable[[str], str] | None = None


def removing(entry: Any, *path: str) -> Remove:
    """Return what removes an entry from the list at a path of a pod."""

    def remove(pod: Object) -> None:
        holder: Any = reduce(getitem, path[:-1], pod)
        holder[path[-1]] = [other for other in holder[path[-1]] if other != entry]

    return remove


def containers(spec: Mapping[str, Any]) -> Iterator[Object]:
    for field in ("initContainers", "containers"):
        yield from spec.get(field) or ()
