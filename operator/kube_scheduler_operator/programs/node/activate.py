"""One manifest into its place, and what becomes of it; installing, going back and leaving share it.

The kubelet starts a static pod only when its worker for the predecessor has ended, which a pass
every 2 s lets it do. A manifest that arrives earlier waits for a back-off of 10 s, so overwriting
takes 14-17 s. Here the old manifest is removed, and the new one written as soon as the old process
has ended and the kubelet has removed the old pod's cgroup, the last thing that its worker does.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from .health_watch import BACK_OFF, BACK_OFF_LIMIT, EXITS, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .health_watch import Host
    from .layout import Journal, Layout
    from .manifest import Manifest

log = logging.getLogger(__name__)

POLL: Final = 0.1
"""Seconds between looks at the node."""

RELEASE_TIMEOUT: Final = 45.0
"""Seconds that the old scheduler has to end: kubeadm's grace period of 30, and some."""

HOUSEKEEPING: Final = 2.0
"""Seconds between the kubelet's passes (housekeepingPeriod)."""

UNMOUNTING: Final = 1.0
"""Seconds from the end of a pod's process within which the kubelet's worker ends.

Of 28 swaps that wrote the new manifest as soon as the directory was gone, two met the back-off,
both among the 5 where it was gone within 0.8 s of the end of the process. With the cgroup it was 4
of 35, all among those where it was gone within 0.5 s: housekeeping (cleanupOrphanedPodCgroups) had
taken it away, and not the worker.
"""

MARGIN: Final = 0.3
"""Seconds from what can be seen of the worker's end to the end itself: milliseconds, or a stall."""

RESUMED_WATCH: Final = 5.0
"""Seconds that a resumed watch has at least, however long its predecessor was dead."""


ASK_EVERY: Final = 1.0
"""Seconds between questions to the API server while the scheduler is not ready.

Without one no scheduler is: its time counts from the moment at which the API server answers again.
"""


class NoApiServerError(OSError):
    """Schedulers cannot work for want of an API server: to be tried again."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a scheduler, in seconds.

    Attributes:
        health_timeout: until it must be ready.
        settling_time: that it must then stay ready without a restart.
    """

    health_timeout: float = 60.0
    settling_time: float = 2.0


class Activator:
    """Lets the node run a manifest. Its state is on the disk: the journal says how far it is.

    Attributes:
        steps: seconds that every step took, in the order of the steps.
    """

    def __init__(self, layout: Layout, host: Host, patience: Patience) -> None:
        self._layout = layout
        self._host = host
        self._patience = patience
        self.steps: dict[str, float] = {}

    def activate(self, target: Manifest, journal: Journal, prefix: str) -> tuple[str, Journal]:
        """Let the node run `target`; why it is not healthy ("" if it is) and the journal since."""
        layout, host = self._layout, self._host
        current = layout.current()
        if current is None or current.data != target.data:
            with self.timed(f"{prefix}remove"):
                layout.prepare(target)
                layout.write_journal(replace(journal, placed=None))
                layout.withdraw()
            with self.timed(f"{prefix}release"):
                self._wait_for_release(current, target)
            with self.timed(f"{prefix}write"):
                journal = self._placed(journal)
                layout.place(target)
                layout.write_journal(journal)
        elif journal.placed is None or journal.boot_id != host.boot_id():
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
        """Until the old scheduler has ended, its port is free and the kubelet has forgotten it.

        Its worker ends with the pod's cgroup, unless housekeeping has taken that away before. Where
        cgroups cannot be seen (or stay), the directory of the pod must do, which housekeeping
        removes as well.
        """
        host = self._host
        probe = (old or target).probe
        begin = host.now()
        ended: float | None = None
        tidied: float | None = None
        freed: float | None = None
        while True:
            now = host.now()
            if host.operands() or not host.is_port_free(probe):
                ended = tidied = freed = None
            elif ended is None:
                ended = now
            if ended is not None:
                has_worker = host.has_worker()
                if has_worker is not False:
                    freed = None
                elif freed is None:
                    freed = now
                if freed is not None and now - max(freed, ended + UNMOUNTING) >= MARGIN:
                    return
                if tidied is None and not host.kept_pods():
                    tidied = now
                if tidied is not None:
                    over = has_worker is None and tidied - ended >= UNMOUNTING
                    if now - tidied >= MARGIN + (0.0 if over else HOUSEKEEPING):
                        return
            if now - begin >= RELEASE_TIMEOUT:
                log.warning("The old scheduler is still there after %.0f s", RELEASE_TIMEOUT)
                return
            host.sleep(POLL)

    def _watch(self, target: Manifest, journal: Journal, prefix: str) -> str:
        """Until the scheduler of `target` is healthy: ""; or is not in time: why.

        Raises:
            NoApiServerError: it has no chance to be; nothing was found out about it.
        """
        host = self._host
        begin = host.now()
        placed = begin if journal.placed is None else journal.placed
        watch = Watch(target, self._patience.settling_time)
        timeout = self._patience.health_timeout
        deadline = max(placed + timeout, begin + min(RESUMED_WATCH, timeout))
        asked, since = begin, journal.placed_at
        away_since: float | None = None
        while True:
            now = host.now()
            watch.look(now, host, since)
            if watch.ready_since is None and now - asked >= ASK_EVERY:
                asked = now
                if host.has_api_server():
                    away_since = None
                else:
                    away_since = now if away_since is None else away_since
                    watch.excuse()
                    journal = self._moved_on(journal)
                    deadline = max(deadline, (journal.placed or now) + timeout)
                    if now - away_since >= timeout:
                        raise NoApiServerError(
                            "the API server that the scheduler's kubeconfig names does not answer"
                        )
            if watch.is_settled(now):
                self.steps[f"{prefix}ready"] = round((watch.ready_since or now) - begin, 3)
                self.steps[f"{prefix}settle"] = round(now - (watch.ready_since or now), 3)
                return ""
            if watch.exits >= EXITS:
                self.steps[f"{prefix}ready"] = round(now - begin, 3)
                return f"kube-scheduler ended {watch.exits} times after its start"
            if now >= deadline and watch.ready_since is None:
                self.steps[f"{prefix}ready"] = round(now - begin, 3)
                return watch.complaint(timeout)
            host.sleep(POLL)

    def _moved_on(self, journal: Journal) -> Journal:
        """As if the manifest had been placed now, also for an installer that resumes the watch."""
        now = self._host.now()
        since = now if journal.away_since is None else journal.away_since
        placed = now + min(BACK_OFF + now - since, BACK_OFF_LIMIT)
        journal = replace(journal, placed=placed, placed_at=self._host.wall(), away_since=since)
        self._layout.write_journal(journal)
        return journal

    @contextmanager
    def timed(self, step: str) -> Iterator[Mapping[str, float]]:
        """Note how long something takes, under the name `step`."""
        begin = self._host.now()
        yield self.steps
        self.steps[step] = round(self._host.now() - begin, 3)
        log.info("Step %s took %.2f s", step, self.steps[step])
