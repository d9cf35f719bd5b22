"""Times as the API writes them (RFC 3339, UTC)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
"""A start time for a state whose start is unknown."""


def timestamp(text: str | None) -> datetime | None:
    """An API time (RFC 3339, `2026-01-02T03:04:05Z`) as a datetime; None if absent or malformed."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None


def rfc3339(moment: datetime) -> str:
    """A datetime as the API writes times, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
