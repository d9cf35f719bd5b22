"""A change as edits of fields, so that programs can read what was tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .kinds import Object

_FIELDS: Final = ("metadata", "spec")
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@dataclass(frozen=True, slots=True)
class Edit:
    """A field that gets another value; its names in documents are `from` and `to`."""

    object: str  # Kind namespace/name
    field: str = ""  # its path; empty: the object as a whole
    from_: Any = None  # None: there is no such field, or object; or its value is not known
    to: Any = None  # None: it is removed, or deleted


def edits(title: str, prefix: str, before: Object, after: Object) -> tuple[Edit, ...]:
    """Return how one form of an object becomes another one, if they are made in this order.

    They are the edits of the object `title`, which has them at `prefix`.
    """
    return tuple(
        Edit(title, path, old, new)
        for field in _FIELDS
        for path, old, new in _differences(f"{prefix}{field}", before.get(field), after.get(field))
    )


def _differences(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            name = f".{key}" if _PLAIN.issuperset(key) else f"[{key}]"
            yield from _differences(f"{path}{name}", before.get(key), after.get(key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(path, before, after)
    else:
        yield path, before, after


def _of_lists(
    path: str, before: Sequence[Any], after: Sequence[Any]
) -> Iterator[tuple[str, Any, Any]]:
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    left = shorter - start
    end = next((at for at in range(left) if before[-1 - at] != after[-1 - at]), left)
    gone, new = before[start : len(before) - end], after[start : len(after) - end]
    if len(gone) == len(new):
        for at, (old, made) in enumerate(zip(gone, new, strict=True), start):
            yield from _differences(f"{path}[{at}]", old, made)
        return
    # From the end, so that an edit moves no entry that a later one names.
    for at in reversed(range(start, start + len(gone))):
        yield f"{path}[{at}]", before[at], None
    yield from ((f"{path}[{at}]", None, made) for at, made in enumerate(new, start))
