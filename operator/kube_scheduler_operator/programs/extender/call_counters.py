"""How often each verb was called, how long that took and what came of it: plain numbers.

Counting is part of every call, so it is a few additions; the names and labels that metrics have are
put on when somebody scrapes (`metrics`).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BUCKETS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
)  # fmt: skip
"""Seconds; a call with node names takes a quarter of a millisecond, with whole nodes some ten."""


class Calls:
    """One verb of one agent.

    Attributes:
        agent, verb: which.
        errors: calls that were answered with an error.
        nodes: that were asked about.
        unknown: of them, those that the cluster's view does not have.
        rejected: of them.
        counts: calls by bucket, the last one being for all that took longer.
        seconds: of all calls.
    """

    __slots__ = ("agent", "counts", "errors", "nodes", "rejected", "seconds", "unknown", "verb")

    def __init__(self, agent: str, verb: str) -> None:
        self.agent = agent
        self.verb = verb
        self.errors = 0
        self.nodes = 0
        self.unknown = 0
        self.rejected = 0
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def ended(self, seconds: float) -> None:
        """A call took so long."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds
