"""Which connection makes room for a new one when clients of different addresses share a server.

What a client waits for goes last: a connection in its handshake, with which an API server may ask
about a Pod right now, is worth more than one that a stranger opened and never uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Use(IntEnum):
    """What a connection is used for, the least useful first."""

    UNUSED = 0
    """It was never used as intended, and nothing has arrived for a moment."""
    RESTS = 1
    """It was used as intended, and no request is in progress."""
    NEW = 2
    """Its handshake has just ended; the first request follows."""
    OPENS = 3
    """It waits for its handshake, or is in it."""
    ASKS = 4
    """Its first request is in progress."""
    WORKS = 5
    """A request is in progress on a connection that was used as intended."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A connection among the others.

    Attributes:
        address: of its client.
        use: what it is used for.
    """

    address: str
    use: Use


def makes_room(standings: Sequence[Standing]) -> Iterator[int]:
    """The indices of the connections that make room, in this order.

    `standings` are in the order in which their last bytes arrived. An unused connection goes first,
    of the address that has most of them. Then the address with most connections loses the least
    useful one; a connection with nothing in progress goes before all others of such addresses.
    """
    unused = Counter(one.address for one in standings if one.use is Use.UNUSED)
    yield from sorted(
        (at for at, one in enumerate(standings) if one.use is Use.UNUSED),
        key=lambda at: -unused[standings[at].address],
    )
    numbers = Counter(one.address for one in standings)
    yield from sorted(
        (at for at, one in enumerate(standings) if one.use is not Use.UNUSED),
        key=lambda at: (-numbers[standings[at].address], standings[at].use),
    )
