"""Which connection makes room for a new one when clients of different addresses share a server.

Connections that a client waits for go last: one in its handshake, over which an API server may be
about to ask about a Pod, is worth more than one that a stranger opened and never uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
