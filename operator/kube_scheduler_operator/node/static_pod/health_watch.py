"""Observes a node to decide whether the scheduler of a new manifest becomes healthy.

Healthy means: exactly one scheduler runs, it belongs to the manifest, and it stays ready as the
same process for the settling time. A scheduler that keeps exiting is given up long before the
time-out, because nothing schedules pods in the meantime.
"""

from __future__ import annotations

from typing import Final

from .host import NodeHost
from .manifest import Manifest

EXITS: Final = 3
"""Exits after which a scheduler is given up: about 13 s with the kubelet's back-off."""

ABSENCE: Final = 1.0
"""Seconds without a process after which the scheduler counts as exited, not as starting."""

BACK_OFF: Final = 10.0
"""Seconds before the kubelet restarts a container, doubled with each restart.

The wait is therefore never longer than this plus the time since the first start.
"""

BACK_OFF_LIMIT: Final = 300.0
"""The longest back-off (MaxContainerBackOff)."""


class HealthWatch:
    """The observations of one scheduler since its manifest was placed."""

    def __init__(self, target: Manifest, settling_time: float) -> None:
        self._target = target
        self._settling_time = settling_time
        self._process: tuple[int, int] | None = None
        self._absent_since: float | None = None
        self._others = 0
        self._runs: set[str] = set()
        self._disregarded: frozenset[str] = frozenset()
        self.ready_since: float | None = None
        self.started = False
        self.exits = 0

    def observe(self, now: float, host: NodeHost, placed_at: float) -> None:
        operands = host.operands()
        mine = [o for o in operands if o.revision == self._target.revision]
        self._others = len(operands) - len(mine)
        process = (mine[0].pid, mine[0].started) if len(operands) == len(mine) == 1 else None
        if process is None or process != self._process:
            self.ready_since = None
        self._process = process
        if mine:
            self.started, self._absent_since = True, None
        else:
            self._count_exits(now, host, placed_at)
        if process is None or not host.is_ready(self._target.probe):
            self.ready_since = None
        elif self.ready_since is None:
            self.ready_since = now

    def _count_exits(self, now: float, host: NodeHost, placed_at: float) -> None:
        activity = host.activity(placed_at)
        self._runs |= activity.runs
        self.started = self.started or activity.started
        self._absent_since = now if self._absent_since is None else self._absent_since
        if now - self._absent_since >= ABSENCE:
            self.exits = len(self._runs - self._disregarded)

    def disregard_exits(self) -> None:
        """Do not count the exits so far: the scheduler did not cause them."""
        self.exits, self._disregarded = 0, frozenset(self._runs)

    def is_settled(self, now: float) -> bool:
        """Return whether the scheduler has been ready without a restart for the settling time."""
        return self.ready_since is not None and now - self.ready_since >= self._settling_time

    def failure(self, timeout: float) -> str:
        within = f"within {timeout:g} s"
        if self._others:
            return f"another kube-scheduler on this node did not end {within}"
        if self._process is not None:
            return f"kube-scheduler ran, but did not become ready {within}"
        if self.exits:
            return f"kube-scheduler exited after its start and did not become ready {within}"
        if self.started:
            return f"the kubelet started the pod, but no kube-scheduler became ready {within}"
        return f"the kubelet did not start the pod {within}"
