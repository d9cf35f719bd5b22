"""The history of a SecondaryScheduler, in its status: the contents rolled out and their outcomes.

Newest first: the first entry is being rolled out, or runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.objects import Object
from ...base.times import rfc3339, timestamp

LIMIT: Final = 10
"""The number of entries that are kept."""

BAD: Final = frozenset({names.OUTCOME_REFUSED, names.OUTCOME_FAILED})


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    hash: str  # of the content
    outcome: str  # one of names.OUTCOME_…
    time: str  # when the outcome was recorded, as the API writes times
    message: str = ""  # the termination message of a scheduler that refused it or failed

    @property
    def bad(self) -> bool:
        """Whether it was refused or failed and is not tried again."""
        return self.outcome in BAD


History = tuple[HistoryEntry, ...]


def read(obj: Object) -> History:
    return tuple(
        HistoryEntry(raw["hash"], raw["outcome"], raw.get("time", ""), raw.get("message", ""))
        for raw in (obj.get("status") or {}).get("history") or ()
    )


def write(history: History) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in asdict(entry).items() if value or key != "message"}
        for entry in history
    ]


def find(history: History, content_hash: str) -> HistoryEntry | None:
    """Find the entry of a content; None if it never ran."""
    return next((entry for entry in history if entry.hash == content_hash), None)


def with_outcome(
    history: History, content_hash: str, outcome: str, now: datetime, message: str = ""
) -> History:
    entry = HistoryEntry(content_hash, outcome, rfc3339(now), message)
    if find(history, content_hash) is None:
        return (entry, *history)[:LIMIT]
    return tuple(entry if known.hash == content_hash else known for known in history)


def begun(history: History, content_hash: str, now: datetime) -> History:
    """Begin the rollout of a content; an unfinished rollout is superseded."""
    if history and history[0].hash == content_hash:
        return history
    known = find(history, content_hash)
    if known is None or known.outcome == names.OUTCOME_SUPERSEDED:
        known = HistoryEntry(content_hash, names.OUTCOME_PROGRESSING, rfc3339(now))
    others = (
        replace(entry, outcome=names.OUTCOME_SUPERSEDED, time=rfc3339(now))
        if entry.outcome == names.OUTCOME_PROGRESSING
        else entry
        for entry in history
        if entry.hash != content_hash
    )
    return (known, *others)[:LIMIT]


def last_good(history: History, available: Callable[[str], bool]) -> str:
    """Find the last content that ran healthily and is available; empty if no content did."""
    good = (entry.hash for entry in history if entry.outcome == names.OUTCOME_INSTALLED)
    return next((content_hash for content_hash in good if available(content_hash)), "")


def kept(history: Sequence[HistoryEntry], others: Sequence[str]) -> frozenset[str]:
    """Return the contents whose ConfigMaps stay: those with a good outcome, and `others`."""
    good = {entry.hash for entry in history if entry.outcome == names.OUTCOME_INSTALLED}
    return frozenset({*good, *others})


def age(entry: HistoryEntry, now: datetime) -> float:
    """Return the seconds since the outcome was recorded; infinite if the time is unknown.

    A time in the future, by another clock, counts as if it were equally long ago.
    """
    since = timestamp(entry.time)
    return abs((now - since).total_seconds()) if since is not None else float("inf")
