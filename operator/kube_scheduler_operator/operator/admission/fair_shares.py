"""Limits of what the clients of one port use at a time, shared by address.

The API server cannot authenticate itself on managed platforms, so only its address distinguishes it
from others. `BodyShares` limits the bodies that are received at a time. `AddressTurns` handles one
request at a time, of each address in turn, so that a flood from k addresses delays a request by k
others.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

SMALL: Final = 256 * 1024
"""Bytes of a body that does not count against ROOM; Pods have 2 to 20 KiB."""

SMALL_AT_ONCE: Final = 16
"""Small bodies of one address that are received at a time."""

ROOM: Final = 16 * 1024 * 1024
"""Bytes of all larger bodies that are received at a time, at most one of each address."""


@dataclass(slots=True, eq=False)
class BodyTicket:
    """A body that is received, or waits to be."""

    address: str
    size: int  # bytes
    stored: int  # the bytes of it that are kept
    go: Callable[[], None] = field(repr=False)  # called when it may be received
    admitted: bool = False

    @property
    def share(self) -> tuple[str, bool]:
        """The share that it counts against: its address, and whether it is large."""
        return self.address, self.size > SMALL


class BodyShares:
    """Admits bodies, of each address in the order of arrival."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[tuple[str, bool], deque[BodyTicket]] = OrderedDict()
        self._received: Counter[tuple[str, bool]] = Counter()
        self._stored = 0

    def enter(self, ticket: BodyTicket) -> None:
        """Wait for permission to receive a body; `leave` must follow."""
        self._waiting.setdefault(ticket.share, deque()).append(ticket)
        self._admit()

    def leave(self, ticket: BodyTicket) -> None:
        """Stop receiving a body, or waiting for it."""
        share = ticket.share
        if ticket.admitted:
            self._received[share] -= 1
            if not self._received[share]:
                del self._received[share]
            self._stored -= ticket.stored if share[1] else 0
        elif share in self._waiting:
            self._waiting[share].remove(ticket)
            if not self._waiting[share]:
                del self._waiting[share]
        self._admit()

    def _admit(self) -> None:
        for share in list(self._waiting):
            queue = self._waiting[share]
            while queue and self._fits(queue[0]):
                ticket = queue.popleft()
                ticket.admitted = True
                self._received[share] += 1
                self._stored += ticket.stored if share[1] else 0
                ticket.go()
                if share[1]:
                    self._waiting.move_to_end(share)
            if not queue:
                del self._waiting[share]

    def _fits(self, ticket: BodyTicket) -> bool:
        address, large = ticket.share
        if not large:
            return self._received[address, False] < SMALL_AT_ONCE
        return not self._received[address, True] and self._stored + ticket.stored <= ROOM


class AddressTurns:
    """Runs one job in each turn of the event loop, of each address in turn."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()

    def add(self, address: str, job: Callable[[], None]) -> None:
        """Run `job` after the earlier jobs of its address, in turn with other addresses."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        self._waiting.setdefault(address, deque()).append(job)

    def _next(self) -> None:
        address, jobs = self._waiting.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            self._waiting[address] = jobs
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        job()
