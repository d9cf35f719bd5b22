"""The API server's time, which all timestamps of its objects and all replicas of a client share.

This machine's clock may be wrong by minutes, or be set while the process runs. So the time comes
from the Date header of responses, and the monotonic clock carries it on. It never jumps: a later
difference, because a clock was set or another API server responded, is corrected by running at most
1 % faster or slower.
"""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

RATE: Final = 0.01
"""The largest correction, as a share of the time that passes."""


class ServerClock:
    """`now` is the API server's time; before the first response, that of this machine."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic = monotonic
        self._offset = wall() - monotonic()
        self._corrected_at: float | None = None
        self._last = ""
        self._known = asyncio.Event()

    def now(self) -> datetime:
        """Return the time, UTC."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def seconds(self) -> float:
        """Return the time in seconds since 1970."""
        return self._offset + self._monotonic()

    async def known(self) -> None:
        """Wait for the first response."""
        await self._known.wait()

    def responded(self, date: str | None, seconds: float) -> None:
        """Note a response with the header Date, `seconds` after its request was sent."""
        self._known.set()
        if not date or date == self._last:
            return
        self._last = date
        try:
            moment = email.utils.parsedate_to_datetime(date).timestamp()
        except ValueError:
            return
        now = self._monotonic()
        # The server wrote whole seconds at some time between request and response.
        uncertainty = 0.5 + seconds / 2
        offset = moment + 0.5 - (now - seconds / 2)
        if self._corrected_at is None:
            self._offset = offset
        elif abs(offset - self._offset) > uncertainty:
            limit = RATE * (now - self._corrected_at)
            self._offset += min(max(offset - self._offset, -limit), limit)
        self._corrected_at = now
