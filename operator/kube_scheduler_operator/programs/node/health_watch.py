"""Whether the scheduler of a manifest becomes healthy: what is seen of a node, and judged.

Healthy is: exactly one scheduler runs, it is that of the manifest, it answers that it is ready, and
it goes on doing so as the same process for the settling time. One that keeps ending is given up
long before its time is over, because meanwhile nothing schedules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from .manifest import Manifest, Probe
    from .processes import Operand

EXITS: Final = 3
"""A scheduler that has ended so often is given up; the kubelet's back-off makes that about 13 s."""

ABSENCE: Final = 1.0
"""Seconds without a process after which it counts as ended, not as being started."""


BACK_OFF: Final = 10.0
"""Seconds that the kubelet waits before it starts a container again, doubled each time.

So it never waits longer than this and the time for which it has been starting it in vain.
"""

BACK_OFF_LIMIT: Final = 300.0
"""The longest such wait (MaxContainerBackOff)."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What the kubelet did with the static pod since some moment.

    Attributes:
        started: whether it began to start it.
        runs: names of the containers that it started, as far as it still has their logs: it removes
            those of all but the last that ended, and so there are never more than two.
    """

    started: bool
    runs: frozenset[str] = frozenset()


class Host(Protocol):
    """What the swap must see of a node."""

    def now(self) -> float:
        """Seconds since boot."""

    def wall(self) -> float:
        """Seconds since 1970, on the clock of the files' times."""

    def boot_id(self) -> str:
        """A name for the time since boot."""

    def sleep(self, seconds: float) -> None:
        """Wait."""

    def operands(self) -> tuple[Operand, ...]:
        """The static pod's schedulers that run now."""

    def is_ready(self, probe: Probe) -> bool:
        """Whether a scheduler answers that it is ready."""

    def has_api_server(self) -> bool:
        """Whether the scheduler's API server answers."""

    def is_port_free(self, probe: Probe) -> bool:
        """Whether nobody listens there."""

    def kept_pods(self) -> frozenset[str]:
        """UIDs of the static pod, past and present, of which the kubelet still has a directory."""

    def has_worker(self) -> bool | None:
        """Whether the kubelet still works on the static pod, past or present; None: not known."""

    def activity(self, since: float) -> Activity:
        """What happened to the static pod since `since` (of `wall`)."""

    def last_words(self, since: float) -> str:
        """The last error of the scheduler that was started since `since` (of `wall`)."""


class Watch:
    """What was seen of one scheduler since its manifest was placed."""

    def __init__(self, target: Manifest, settling_time: float) -> None:
        self._target = target
        self._settling_time = settling_time
        self._process: tuple[int, int] | None = None
        self._absent_since: float | None = None
        self._others = 0
        self._runs: set[str] = set()
        self._excused: frozenset[str] = frozenset()
        self.ready_since: float | None = None
        self.started = False
        self.exits = 0

    def look(self, now: float, host: Host, placed_at: float) -> None:
        """Take one look at the node."""
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

    def _count_exits(self, now: float, host: Host, placed_at: float) -> None:
        activity = host.activity(placed_at)
        self._runs |= activity.runs
        self.started = self.started or activity.started
        self._absent_since = now if self._absent_since is None else self._absent_since
        if now - self._absent_since >= ABSENCE:
            self.exits = len(self._runs - self._excused)

    def excuse(self) -> None:
        """However often it has ended, something else is to blame."""
        self.exits, self._excused = 0, frozenset(self._runs)

    def is_settled(self, now: float) -> bool:
        """Whether it is ready without a restart for the settling time."""
        return self.ready_since is not None and now - self.ready_since >= self._settling_time

    def complaint(self, timeout: float) -> str:
        """Why it is not healthy, for a human."""
        within = f"within {timeout:g} s"
        if self._others:
            return f"another kube-scheduler still ran on this node {within}"
        if self._process is not None:
            return f"kube-scheduler ran, but was not ready {within}"
        if self.exits:
            return f"kube-scheduler ended after its start and was not ready {within}"
        if self.started:
            return f"the kubelet began to start the pod, but no kube-scheduler was ready {within}"
        return f"the kubelet did not start the pod {within}"
