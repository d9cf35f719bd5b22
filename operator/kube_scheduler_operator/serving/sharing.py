"""How clients of different addresses share a server: who makes room, and who has to wait.

Connections that a client waits for go last: one in its handshake, over which an API server may be
about to ask about a Pod, is worth more than one that a stranger opened and never uses.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Final, TypeAlias

MANY: Final = 8
"""Connections with which an API server may start all at once, before the first answer."""


class Use(IntEnum):
    """What a connection is used for, the least useful first."""

    UNUSED = 0
    """Never used as intended, and nothing has arrived for a moment."""
    RESTS = 1
    """Used as intended, and no request is in progress."""
    NEW = 2
    """Its handshake has just ended; the first request follows."""
    OPENS = 3
    """Waits for its handshake, or is in it."""
    ASKS = 4
    """Its first request is in progress."""
    WORKS = 5
    """A request is in progress on a connection that was used as intended."""


Standing: TypeAlias = tuple[str, Use]
"""The address of a connection, and its use."""


def makes_room(standings: Sequence[Standing]) -> Iterator[int]:
    """Yield the indices of the connections that make room, in this order.

    `standings` are in the order in which their last bytes arrived. First go unused connections, and
    any of an address with more than MANY of which none was ever used as intended; of those, the
    address with most loses one. Then the address with most connections loses the least useful one.
    """
    numbers = Counter(address for address, _ in standings)
    unused = Counter(address for address, use in standings if use is Use.UNUSED)
    proven = {address for address, use in standings if use in (Use.RESTS, Use.WORKS)}
    useless = unused | Counter(
        {address: n for address, n in numbers.items() if n > MANY and address not in proven}
    )

    def order(at: int) -> tuple[bool, int, Use]:
        address, use = standings[at]
        if use is Use.UNUSED or (useless[address] > MANY and address not in proven):
            return False, -useless[address], use
        return True, -numbers[address], use

    yield from sorted(range(len(standings)), key=order)


# --- how often ----------------------------------------------------------------------------------


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
    """Limits how often each address causes work that costs the server much more than a packet.

    A TLS handshake is such work; a client that keeps its connections never reaches the limit. A
    client at the limit waits for a moment, so that an API server's burst is delayed and not lost. A
    client that would wait longer is refused before it costs anything.

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
