"""Nodes that do not exist yet, as text of `why` and `pending`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...simulate.new_nodes import (
    BLOCKED,
    CANNOT,
    FITS,
    SIZE_UNKNOWN,
    UNKNOWN,
    ComingNode,
    NewNode,
)

_SHOWN: Final = 6
_OUTCOMES: Final = {
    FITS: "can make a node on which it fits",
    SIZE_UNKNOWN: "may make a node on which it fits",
    BLOCKED: "makes no node now",
    CANNOT: "makes no node on which it fits",
}
_ORDER: Final = (FITS, SIZE_UNKNOWN, BLOCKED, UNKNOWN, CANNOT)


def lines(new: Sequence[NewNode], coming: Sequence[ComingNode]) -> Iterator[str]:
    """Yield what is known about nodes that do not exist yet, each with the next command."""
    if coming:
        yield "Nodes that are being made:"
    for one in coming[:_SHOWN]:
        since = f" since {one.since}" if one.since else ""
        yield f"  {one.node}{since}: {one.state}; {_fits(one)}"
        yield from (f"    {cause}" for cause in one.causes)
        yield f"    next: {one.command}"
    yield from _more(len(coming), "more nodes that are being made")
    if new:
        yield "Nodes that do not exist yet (each was tried as an empty node):"
    for source in sorted(new, key=_rank)[:_SHOWN]:
        yield f"  {sentence(source)}"
        yield from (f"    {cause}" for cause in source.causes)
        if source.daemons and source.outcome == FITS:
            yield f"    DaemonSets take {source.daemons} there"
        yield f"    next: {source.command}"
    yield from _more(len(new), "more that could make nodes")


def _more(count: int, what: str) -> Iterator[str]:
    if count > _SHOWN:
        yield f"  {count - _SHOWN} {what} (-o json)"


def _rank(one: NewNode) -> int:
    return _ORDER.index(one.outcome) if one.outcome in _ORDER else len(_ORDER)


def sentence(one: NewNode) -> str:
    """Return what a source can do for the Pod, without the causes."""
    outcome = _OUTCOMES.get(one.outcome)
    if outcome is None:
        return f"{one.source}: whether the Pod fits on a node of it is not known"
    like = f", like {one.like}" if one.like and one.outcome == FITS else ""
    would = f" (on one like {one.like} it would fit)" if one.like and one.outcome == BLOCKED else ""
    return f"{one.source} {outcome}{like}{would}"


def _fits(one: ComingNode) -> str:
    if one.outcome == FITS:
        return "the Pod fits on it, unless others take its room"
    if one.outcome == CANNOT:
        return "the Pod does not fit on it"
    return "whether the Pod fits on it is not known"


def short(new: Sequence[NewNode], coming: Sequence[ComingNode]) -> str:
    """Return the most important of all in one line; empty: nothing is known."""
    for one in coming:
        if one.outcome == FITS:
            since = f" since {one.since}" if one.since else ""
            return f"{one.node} is being made{since} ({one.state}); next: {one.command}"
    if not new:
        return ""
    best = min(new, key=_rank)
    cause = f": {best.causes[0]}" if best.causes and best.outcome != FITS else ""
    others = f"; {len(new) - 1} more (kubectl scheduler why)" if len(new) > 1 else ""
    return f"{sentence(best)}{cause}{others}; next: {best.command}"
