"""The annotator's counters, for `/metrics`, its report and the log."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

_PREFIX: Final = "load_annotator"
_HOUR: Final = 60


class Counters:
    """Counters since the start of the process."""

    def __init__(self) -> None:
        self.patches: Counter[str] = Counter()  # reason -> number of successful PATCHes
        # result -> number of polls: written, skipped, no_data, conflict, failed, paused
        self.results: Counter[str] = Counter()
        # duration of the last cycle in seconds, until every responding node was measured and
        # written
        self.cycle = 0.0
        # seconds until every node was polled once; None before that
        self.first_cycle: float | None = None
        self.reloads = 0
        self._cycle = 0.0
        self._minutes: deque[list[int]] = deque(maxlen=_HOUR)

    def patched(self, reason: str, now: float) -> None:
        """Count a successful PATCH."""
        self.patches[reason] += 1
        self.results["written"] += 1
        minute = int(now // 60)
        if not self._minutes or self._minutes[-1][0] != minute:
            self._minutes.append([minute, 0])
        self._minutes[-1][1] += 1

    def last_hour(self, now: float) -> int:
        """Return the number of PATCHes in the last hour."""
        oldest = int(now // 60) - _HOUR
        return sum(count for minute, count in self._minutes if minute > oldest)

    def polled(self, seconds: float) -> None:
        self._cycle = max(self._cycle, seconds)

    def end_cycle(self) -> None:
        self.cycle, self._cycle = self._cycle, 0.0

    def exposition(self, leading: bool, nodes: dict[str, int]) -> str:
        """Return the counters in Prometheus' text format, version 0.0.4."""
        return "\n".join(self._lines(leading, nodes)) + "\n"

    def _lines(self, leading: bool, nodes: dict[str, int]) -> Iterator[str]:
        yield from _family("leader", "gauge", "Whether this process leads.", int(leading))
        yield from _head("nodes", "gauge", "Number of nodes by the state of their load.")
        for state, number in nodes.items():
            yield f'{_PREFIX}_nodes{{state="{state}"}} {number}'
        yield from _head("patches_total", "counter", "Number of node PATCHes by reason.")
        for reason, number in sorted(self.patches.items()):
            yield f'{_PREFIX}_patches_total{{reason="{reason}"}} {number}'
        yield from _head("looks_total", "counter", "Number of node polls by result.")
        for result, number in sorted(self.results.items()):
            yield f'{_PREFIX}_looks_total{{result="{result}"}} {number}'
        yield from _family("cycle_seconds", "gauge", "Duration of the last cycle.", self.cycle)
        if self.first_cycle is not None:
            help_text = "Seconds until every node was polled once."
            yield from _family("first_cycle_seconds", "gauge", help_text, self.first_cycle)
        help_text = "Number of policy changes."
        yield from _family("policy_reloads_total", "counter", help_text, self.reloads)


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {_PREFIX}_{name} {text}"
    yield f"# TYPE {_PREFIX}_{name} {kind}"


def _family(name: str, kind: str, text: str, value: float) -> Iterator[str]:
    yield from _head(name, kind, text)
    yield f"{_PREFIX}_{name} {value:g}"
