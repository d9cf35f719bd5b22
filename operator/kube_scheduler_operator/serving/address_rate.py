"""Limits how often each address causes work that costs the server much more than a packet.

A TLS handshake is such work; a client that keeps its connections never reaches the limit. A client
at the limit waits for a moment, so that an API server's burst is delayed and not lost. A client
that would wait longer is refused before it costs anything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

REMEMBERED: Final = 4096
"""Addresses that are remembered."""

LONGEST_CHARGE: Final = 10.0
"""Seconds for which charges refuse an address at most; it may be that of a node or a proxy."""

_MAPPED: Final = "::ffff:"


def source(peer: tuple[str, ...]) -> str:
    """Return the address of a client: without its port and zone, and IPv4 in one form."""
    address = str(peer[0]).partition("%")[0] if peer else ""
    lower = address.lower()
    return address[len(_MAPPED) :] if lower.startswith(_MAPPED) and "." in lower else address


class AddressRate:
    """A token bucket for each address.

    `rate` is how often a second in the long run, `burst` how often at once, `patience` the longest
    wait in seconds.
    """

    def __init__(
        self, rate: float, burst: int, patience: float, clock: Callable[[], float]
    ) -> None:
        self._interval, self._patience, self._clock = 1.0 / rate, patience, clock
        self._allowance = burst * self._interval
        self._full: OrderedDict[str, float] = OrderedDict()  # when each bucket is full again

    def __len__(self) -> int:
        return len(self._full)

    def wait(self, address: str) -> float | None:
        """Return seconds after which `address` may go on; None: refuse it."""
        now = self._clock()
        full = max(self._full.get(address, now), now) + self._interval
        wait = max(full - self._allowance - now, 0.0)
        if wait > self._patience:
            return None
        self._full[address] = full
        self._full.move_to_end(address)
        self._forget(now)
        return wait

    def charge(self, address: str, number: int) -> None:
        """Charge `address` as if it had caused `number` of them."""
        now = self._clock()
        full = max(self._full.get(address, now), now) + number * self._interval
        self._full[address] = min(full, now + self._allowance + self._patience + LONGEST_CHARGE)
        self._full.move_to_end(address)
        self._forget(now)

    def _forget(self, now: float) -> None:
        """Forget the address that came least recently if its bucket is full, or there are many."""
        address, full = next(iter(self._full.items()))
        if full <= now or len(self._full) > REMEMBERED:
            del self._full[address]
