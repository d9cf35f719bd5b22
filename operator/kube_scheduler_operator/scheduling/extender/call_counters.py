"""Counters of the calls of each verb.

Plain numbers, because every call updates them; metrics.py adds names and labels at a scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BUCKETS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
)  # fmt: skip
"""Seconds; a call takes about 0.25 ms with node names, and 10 ms with complete nodes."""


class CallCounters:
    """The counters of one verb of one agent."""

    __slots__ = ("agent", "counts", "errors", "nodes", "rejected", "seconds", "unknown", "verb")

    def __init__(self, agent: str, verb: str) -> None:
        self.agent = agent
        self.verb = verb
        self.errors = 0  # calls that failed
        self.nodes = 0  # nodes in requests
        self.unknown = 0  # of these, nodes that are not in the node view
        self.rejected = 0  # of these, rejected nodes
        # calls by bucket; the last bucket has no upper bound
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0  # total duration

    def ended(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds
