"""Activates a manifest on the node and watches its scheduler; for install, rollback and restore.

The kubelet starts a static pod only after its worker for the predecessor has ended; a housekeeping
loop every 2 s triggers that. A manifest that arrives earlier waits for a back-off of 10 s, so
overwriting takes 14-17 s. Therefore the old manifest is removed first, and the new one is written
as soon as the old process has ended and the kubelet has removed the old pod's cgroup, the last
action of its worker.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from .host import NodeHost
from .layout import Journal, Layout
from .manifest import Manifest, Probe
from .program import NodeProgramOptions

log = logging.getLogger(__name__)

POLL: Final = 0.1
"""Seconds between observations of the node."""

RELEASE_TIMEOUT: Final = 45.0
"""Seconds for the old scheduler to end: kubeadm's grace period of 30 s plus a margin."""

HOUSEKEEPING: Final = 2.0
"""Seconds between the kubelet's housekeeping loops (housekeepingPeriod)."""

UNMOUNTING: Final = 1.0
"""Seconds from the end of a pod's process within which the kubelet's worker ends.

Of 28 swaps that wrote the new manifest as soon as the directory was gone, two met the back-off,
both among the 5 where it was gone within 0.8 s of the end of the process. With the cgroup it was 4
of 35, all among those where it was gone within 0.5 s: housekeeping (cleanupOrphanedPodCgroups) had
removed it instead of the worker.
"""

MARGIN: Final = 0.3
"""Seconds between the visible end of the worker and its actual end: milliseconds, or a stall."""

RESUMED_WATCH: Final = 5.0
"""Minimum duration of a resumed watch in seconds, however long the installer was down."""

API_PROBE_INTERVAL: Final = 1.0
"""Seconds between probes of the API server while the scheduler is not ready.

No scheduler becomes ready without an API server; the time-out restarts when one answers again.
"""

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


class NoApiServerError(OSError):
    """No API server answers, so no scheduler can become ready; a retry may succeed."""


class ManifestAppearedError(OSError):
    """Another program wrote a manifest during a swap; the retry decides what it means."""


@dataclass(slots=True)
class _Release:
    """Since when the parts of the old scheduler are gone; None: they are not."""

    ended: float | None = None  # its processes, with its port
    freed: float | None = None  # its kubelet worker
    tidied: float | None = None  # its pod's directory

    def is_complete(self, now: float, host: NodeHost, probe: Probe) -> bool:
        """Note what is gone; return whether enough is, for long enough."""
        if host.operands() or not host.is_port_free(probe):
            self.ended = self.tidied = self.freed = None
            return False
        ended = self.ended = now if self.ended is None else self.ended
        has_worker = host.has_worker()
        if has_worker is not False:
            self.freed = None
        elif self.freed is None:
            self.freed = now
        if self.freed is not None and now - max(self.freed, ended + UNMOUNTING) >= MARGIN:
            return True
        if self.tidied is None and not host.kept_pods():
            self.tidied = now
        if self.tidied is None:
            return False
        over = has_worker is None and self.tidied - ended >= UNMOUNTING
        return now - self.tidied >= MARGIN + (0.0 if over else HOUSEKEEPING)


class Activator:
    """Makes the node run a manifest. Its state is the journal on disk."""

    def __init__(self, layout: Layout, host: NodeHost, options: NodeProgramOptions) -> None:
        self._layout = layout
        self._host = host
        self._options = options
        self.steps: dict[str, float] = {}  # duration of each step in seconds, in order

    def activate(
        self, target: Manifest, journal: Journal, prefix: str, *, restart: bool = False
    ) -> tuple[str, Journal]:
        """Run `target`; return why it is not healthy ("" if it is) and the updated journal.

        With `restart`, the scheduler is replaced even if its manifest is in place.
        """
        layout, host = self._layout, self._host
        current = layout.current()
        if current is None or current.data != target.data or restart:
            with self.timed(f"{prefix}remove"):
                layout.prepare(target)
                if restart:
                    layout.withdraw()  # a journal beside this manifest means that it is new
                layout.write_journal(replace(journal, placed=None))
                layout.withdraw()
            with self.timed(f"{prefix}release"):
                self._wait_for_release(current, target)
            if layout.current() is not None:
                raise ManifestAppearedError(
                    f"another program wrote {layout.manifest_path} while the scheduler was replaced"
                )
            with self.timed(f"{prefix}write"):
                journal = self._placed(journal)
                layout.place(target)
                layout.write_journal(journal)
        elif journal.placed is None or journal.boot_id != host.boot_id():
            layout.confirm_placed()
            journal = self._placed(journal)
            layout.write_journal(journal)
        return self._watch(target, journal, prefix), journal

    def _placed(self, journal: Journal) -> Journal:
        host = self._host
        return replace(
            journal,
            boot_id=host.boot_id(),
            placed=host.now(),
            placed_at=host.wall(),
            away_since=None,
            steps=dict(self.steps),
        )

    def _wait_for_release(self, old: Manifest | None, target: Manifest) -> None:
        """Wait until the old scheduler has ended, its port is free and its kubelet worker is gone.

        The worker ends with the pod's cgroup, unless housekeeping has removed the cgroup earlier.
        Where cgroups are not visible (or stay), the pod's directory is the signal instead, which
        housekeeping removes as well.
        """
        host = self._host
        probe = (old or target).probe
        begin = host.now()
        release = _Release()
        while True:
            now = host.now()
            if release.is_complete(now, host, probe):
                return
            if now - begin >= RELEASE_TIMEOUT:
                log.warning("The old scheduler is still running after %.0f s", RELEASE_TIMEOUT)
                return
            host.sleep(POLL)

    def _watch(self, target: Manifest, journal: Journal, prefix: str) -> str:
        """Wait until the scheduler of `target` is healthy or has failed; return why, or "".

        Raises:
            NoApiServerError: the API server does not answer, so the result is unknown.
        """
        host = self._host
        begin = host.now()
        placed = begin if journal.placed is None else journal.placed
        watch = HealthWatch(target, self._options.settling_time)
        timeout = self._options.health_timeout
        deadline = max(placed + timeout, begin + min(RESUMED_WATCH, timeout))
        probed, since = begin, journal.placed_at
        away_since: float | None = None
        while True:
            now = host.now()
            watch.observe(now, host, since)
            if watch.ready_since is None and now - probed >= API_PROBE_INTERVAL:
                probed = now
                if host.has_api_server():
                    away_since = None
                else:
                    away_since = now if away_since is None else away_since
                    watch.disregard_exits()
                    journal = self._postponed(journal)
                    deadline = max(deadline, (journal.placed or now) + timeout)
                    if now - away_since >= timeout:
                        raise NoApiServerError(
                            "the API server in the scheduler's kubeconfig does not answer"
                        )
            if watch.is_settled(now):
                self.steps[f"{prefix}ready"] = round((watch.ready_since or now) - begin, 3)
                self.steps[f"{prefix}settle"] = round(now - (watch.ready_since or now), 3)
                return ""
            if watch.exits >= EXITS:
                self.steps[f"{prefix}ready"] = round(now - begin, 3)
                return f"kube-scheduler exited {watch.exits} times after its start"
            if now >= deadline and watch.ready_since is None:
                self.steps[f"{prefix}ready"] = round(now - begin, 3)
                return watch.failure(timeout)
            host.sleep(POLL)

    def _postponed(self, journal: Journal) -> Journal:
        """Restart the time-out as if the manifest were placed now; a resumed watch sees it too."""
        now = self._host.now()
        since = now if journal.away_since is None else journal.away_since
        placed = now + min(BACK_OFF + now - since, BACK_OFF_LIMIT)
        journal = replace(journal, placed=placed, placed_at=self._host.wall(), away_since=since)
        self._layout.write_journal(journal)
        return journal

    @contextmanager
    def timed(self, step: str) -> Iterator[Mapping[str, float]]:
        begin = self._host.now()
        yield self.steps
        self.steps[step] = round(self._host.now() - begin, 3)
        log.info("Step %s took %.2f s", step, self.steps[step])


class HealthWatch:
    """Observes a node to decide whether the scheduler of a new manifest becomes healthy.

    Healthy means: exactly one scheduler runs, it belongs to the manifest, and it stays ready as the
    same process for the settling time. A scheduler that keeps exiting is given up long before the
    time-out, because nothing schedules pods in the meantime.
    """

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
        mine = [o for o in operands if o.revision == (self._target.directory or None)]
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
