"""What was rolled out before and how that ended: the memory of a SecondaryScheduler, in its status.

Newest first; the one that is on its way, or runs, is the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from ..base import names
from ..base.objects import Object
from ..base.times import rfc3339, timestamp

LIMIT: Final = 10
"""How many contents are remembered."""

BAD: Final = frozenset({names.OUTCOME_REFUSED, names.OUTCOME_FAILED})


@dataclass(frozen=True, slots=True)
class Entry:
    """One content and what came of it.

    Attributes:
        hash: of the content.
        outcome: one of names.OUTCOME_….
        time: when the outcome was found, as the API writes times.
        message: the last words of a scheduler that refused or failed.
    """

    hash: str
    outcome: str
    time: str
    message: str = ""

    @property
    def bad(self) -> bool:
        """Whether it is not tried again."""
        return self.outcome in BAD


History = tuple[Entry, ...]


def read(obj: Object) -> History:
    """The history in the status of a SecondaryScheduler."""
    raw = (obj.get("status") or {}).get("history") or ()
    return tuple(
        Entry(one["hash"], one["outcome"], one.get("time", ""), one.get("message", ""))
        for one in raw
    )


def write(history: History) -> list[dict[str, Any]]:
    """The history as the status has it."""
    return [
        {
            "hash": entry.hash,
            "outcome": entry.outcome,
            "time": entry.time,
            **({"message": entry.message} if entry.message else {}),
        }
        for entry in history
    ]


def find(history: History, content_hash: str) -> Entry | None:
    """What is remembered of a content."""
    return next((entry for entry in history if entry.hash == content_hash), None)


def judged(
    history: History, content_hash: str, outcome: str, now: datetime, message: str = ""
) -> History:
    """The history with a new outcome of a content."""
    entry = Entry(content_hash, outcome, rfc3339(now), message)
    if find(history, content_hash) is None:
        return (entry, *history)[:LIMIT]
    return tuple(entry if known.hash == content_hash else known for known in history)


def begun(history: History, content_hash: str, now: datetime) -> History:
    """The history when a content is to run; what was on its way until then is superseded."""
    if history and history[0].hash == content_hash:
        return history
    known = find(history, content_hash)
    if known is None or known.outcome == names.OUTCOME_SUPERSEDED:
        known = Entry(content_hash, names.OUTCOME_PROGRESSING, rfc3339(now))
    others = (
        replace(entry, outcome=names.OUTCOME_SUPERSEDED, time=rfc3339(now))
        if entry.outcome == names.OUTCOME_PROGRESSING
        else entry
        for entry in history
        if entry.hash != content_hash
    )
    return (known, *others)[:LIMIT]


def last_good(history: History, available: Callable[[str], bool]) -> str:
    """The content that ran last of those that did well and are there; empty if there is none."""
    good = (entry.hash for entry in history if entry.outcome == names.OUTCOME_INSTALLED)
    return next((content_hash for content_hash in good if available(content_hash)), "")


def kept(history: Sequence[Entry], others: Sequence[str]) -> frozenset[str]:
    """The contents whose ConfigMaps stay: all that did well and are remembered, and `others`."""
    good = {entry.hash for entry in history if entry.outcome == names.OUTCOME_INSTALLED}
    return frozenset({*good, *others})


def age(entry: Entry, now: datetime) -> float:
    """Seconds since the outcome was found; without end if nobody knows."""
    since = timestamp(entry.time)
    return (now - since).total_seconds() if since is not None else float("inf")
