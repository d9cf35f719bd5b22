"""Times as the API writes them (RFC 3339, UTC). Standard library only."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
"""A start time for a state whose start is unknown."""


def timestamp(text: str | None) -> datetime | None:
    """Parse a time, in UTC if it names no zone; None if it is absent or malformed."""
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time and time.tzinfo is None else time


def seconds_left(now: datetime, since: datetime, period: float) -> float:
    """Return the seconds until `period` seconds after `since`; 0.0 once they have passed.

    A time more than one period in the future does not count, because another clock or a restored
    API wrote it: the wait is at most twice the period.
    """
    left = period - (now - since).total_seconds()
    return left if 0 < left <= 2 * period else 0.0


def rfc3339(moment: datetime) -> str:
    """Format a Time of the API: `2026-11-21T01:20:17Z`, rounded down to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(moment: datetime) -> str:
    """Format a MicroTime of the API: `2026-11-21T01:20:17.000000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
