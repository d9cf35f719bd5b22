"""One revision onto one node: remove, wait, write, watch; and back again if it does not work.

The kubelet starts a static pod only when its worker for the predecessor has ended, which a pass
every 2 s lets it do. A manifest that arrives earlier waits for a back-off of 10 s, so overwriting
takes 14-17 s. Here the old manifest is removed, and the new one written as soon as the old process
has ended and the kubelet has removed the old pod's cgroup, the last thing that its worker does.

Every step can be the last one before a power cut. The journal is written before the first step
that matters and removed after the last; whoever comes next looks at what is on the disk and goes
on. The manifest directory never stays empty: `leave_running` is what every way out goes through.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from .layout import Journal, Layout, Phase
from .result import Result, Verdict
from .watch import EXITS, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .manifest import Manifest
    from .watch import Host

log = logging.getLogger(__name__)

POLL: Final = 0.1
"""Seconds between looks at the node."""

RELEASE_TIMEOUT: Final = 45.0
"""Seconds that the old scheduler has to end: kubeadm's grace period of 30, and some."""

HOUSEKEEPING: Final = 2.0
"""Seconds between the kubelet's passes (housekeepingPeriod)."""

UNMOUNTING: Final = 1.0
"""Seconds from the end of a pod's process within which the kubelet's worker ends.

Only asked where cgroups cannot be seen. Of 28 swaps that wrote the new manifest as soon as the
directory was gone, two met the back-off. Both are among the 5 where it was gone within 0.8 s of the
end of the process; the others took 1.1 s and more, and none of them met it.
"""

MARGIN: Final = 0.3
"""Seconds from what can be seen of the worker's end to the end itself: milliseconds, or a stall."""

RESUMED_WATCH: Final = 5.0
"""Seconds that a resumed watch has at least, however long its predecessor was dead."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be installed.

    Attributes:
        revision: its number.
        retry: which attempt.
        node: the node's name.
        target: the manifest of this revision.
        config: the scheduler's configuration.
        effective: what the preflight made of it; may be empty.
        health_timeout: seconds until the scheduler must be ready.
        settling_time: seconds that it must stay ready without a restart.
        rollback: whether a newer revision may be replaced.
        keep: older revisions whose directories stay; None: all of them.
    """

    revision: int
    retry: int
    node: str
    target: Manifest
    config: bytes
    effective: bytes = b""
    health_timeout: float = 60.0
    settling_time: float = 2.0
    rollback: bool = False
    keep: frozenset[int] | None = None


class Swap:
    """The state machine; its state is on the disk."""

    def __init__(self, request: Request, layout: Layout, host: Host) -> None:
        self._request = request
        self._layout = layout
        self._host = host
        self._steps: dict[str, float] = {}

    # --- the whole -----------------------------------------------------------------------------
    def run(self) -> Result:
        """Install the revision, or go on with it, or put the last good one back.

        Returns:
            The definitive result; the manifest that it speaks of is in its place.
        """
        request, layout = self._request, self._layout
        current = layout.current()
        journal = layout.journal()
        newest = max(
            (current.revision if current else None) or 0, journal.revision if journal else 0
        )
        if newest > request.revision and not request.rollback:
            self.leave_running()
            return self._result(
                Verdict.SUPERSEDED,
                f"revision {newest} is on this node and newer than {request.revision}",
            )
        if current is not None and current.revision is None:
            layout.adopt(current)
        with self._timed("stage"):
            layout.stage(request.target, request.revision, request.config, request.effective)
        known = layout.outcome(request.revision)
        if known is not None and known.failed and request.retry <= known.retry:
            log.info("Revision %d failed here before, not tried again", request.revision)
            self.leave_running()
            self._clear_own_journal(journal)
            return replace(known, node=request.node)
        return self._go_on(self._resumed(journal))

    def leave_running(self) -> None:
        """Make sure that a manifest is in its place: what every end of an installer owes the node.

        It is the last good one if there is one: who leaves now watches no longer, and an unproven
        scheduler that nobody watches is worse than an old one.
        """
        layout = self._layout
        if layout.current() is not None:
            return
        journal = layout.journal()
        target = (
            layout.last_good()
            or (layout.staged(journal.revision) if journal else None)
            or layout.newest_staged()
        )
        if target is None:
            log.error("No manifest to put back: neither a stock one nor a revision is on this node")
            return
        layout.place(target)
        log.info("Put a manifest back before leaving: %s", _name(target))

    # --- forward and back ----------------------------------------------------------------------
    def _go_on(self, journal: Journal) -> Result:
        request, layout = self._request, self._layout
        if journal.phase is Phase.INSTALL:
            reason, journal = self._activate(request.target, journal, "")
            if not reason:
                layout.make_last_good(request.revision)
                return replace(
                    self._finish(self._result(Verdict.INSTALLED)), strangers=self._prune()
                )
            last_words = self._host.last_words(journal.placed_at)
            log.error("Revision %d failed: %s: %s", request.revision, reason, last_words)
            journal = Journal(
                revision=request.revision,
                retry=request.retry,
                phase=Phase.ROLLBACK,
                reason=reason,
                last_words=last_words,
                steps=dict(self._steps),
            )
            layout.write_journal(journal)
        return self._finish(self._roll_back(journal))

    def _roll_back(self, journal: Journal) -> Result:
        good = self._layout.last_good()
        failure = {"last_words": journal.last_words}
        if good is None or good.data == self._request.target.data:
            self._place_if_absent(self._request.target)
            return self._result(
                Verdict.UNHEALTHY,
                f"{journal.reason}; there is no other manifest to go back to",
                **failure,
            )
        log.info("Putting the last good manifest back: %s", _name(good))
        reason, _ = self._activate(good, journal, "rollback.")
        if not reason:
            return self._result(Verdict.ROLLED_BACK, journal.reason, **failure)
        reason = f"{journal.reason}; then {_name(good)} did not work either: {reason}"
        return self._result(Verdict.UNHEALTHY, reason, **failure)

    def _resumed(self, journal: Journal | None) -> Journal:
        """The journal to go on with: that of the same attempt, or a new one."""
        request = self._request
        if journal and journal.revision == request.revision and journal.retry >= request.retry:
            log.info("Going on with a swap that was interrupted: phase %s", journal.phase)
            self._steps.update(journal.steps)
            return journal
        return Journal(request.revision, request.retry, steps=dict(self._steps))

    def _finish(self, result: Result) -> Result:
        self._layout.write_outcome(result)
        self._layout.clear_journal()
        return result

    def _prune(self) -> tuple[str, ...]:
        """Remove old revisions from the disk, which is nobody's success or failure."""
        if self._request.keep is None:
            return ()
        try:
            return tuple(self._layout.prune(self._request.keep, self._request.revision))
        except OSError as error:
            log.warning("Cannot remove old revisions: %s", error)
            return ()

    def _clear_own_journal(self, journal: Journal | None) -> None:
        if journal is not None and journal.revision == self._request.revision:
            self._layout.clear_journal()

    # --- one manifest into its place -----------------------------------------------------------
    def _activate(self, target: Manifest, journal: Journal, prefix: str) -> tuple[str, Journal]:
        """Let the node run `target`; why it is not healthy ("" if it is) and the journal since."""
        layout, host = self._layout, self._host
        current = layout.current()
        if current is None or current.data != target.data:
            with self._timed(f"{prefix}remove"):
                layout.prepare(target)
                layout.write_journal(replace(journal, placed=None))
                layout.withdraw()
            with self._timed(f"{prefix}release"):
                self._wait_for_release(current)
            with self._timed(f"{prefix}write"):
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
            steps=dict(self._steps),
        )

    def _place_if_absent(self, target: Manifest) -> None:
        if self._layout.current() is None:
            self._layout.place(target)

    def _wait_for_release(self, old: Manifest | None) -> None:
        """Until the old scheduler has ended, its port is free and the kubelet has forgotten it.

        Its worker ends with the pod's cgroup. Where that cannot be seen (or stays), the directory
        of the pod must do: a pass of housekeeping removes it and in most cases lets the worker go
        on to its end. If the process had ended only just before, the next pass does.
        """
        host = self._host
        probe = old.probe if old else self._request.target.probe
        begin = host.now()
        ended: float | None = None
        tidied: float | None = None
        while True:
            now = host.now()
            if host.operands() or not host.is_port_free(probe):
                ended = tidied = None
            elif ended is None:
                ended = now
            if ended is not None:
                has_worker = host.has_worker()
                if has_worker is False:
                    host.sleep(MARGIN)
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
        """Until the scheduler of `target` is healthy: ""; or is not in time: why."""
        host, request = self._host, self._request
        begin = host.now()
        placed = begin if journal.placed is None else journal.placed
        watch = Watch(target, request.settling_time)
        deadline = max(
            placed + request.health_timeout, begin + min(RESUMED_WATCH, request.health_timeout)
        )
        while True:
            now = host.now()
            watch.look(now, host, journal.placed_at)
            if watch.is_settled(now):
                self._steps[f"{prefix}ready"] = round((watch.ready_since or now) - begin, 3)
                self._steps[f"{prefix}settle"] = round(now - (watch.ready_since or now), 3)
                return ""
            if watch.exits >= EXITS:
                self._steps[f"{prefix}ready"] = round(now - begin, 3)
                return f"kube-scheduler ended {watch.exits} times after its start"
            if now >= deadline and watch.ready_since is None:
                self._steps[f"{prefix}ready"] = round(now - begin, 3)
                return watch.complaint(request.health_timeout)
            host.sleep(POLL)

    # --- saying it -----------------------------------------------------------------------------
    def _result(self, verdict: Verdict, reason: str = "", last_words: str = "") -> Result:
        return Result(
            result=verdict,
            revision=self._request.revision,
            node=self._request.node,
            last_good_revision=self._layout.last_good_revision(),
            retry=self._request.retry,
            reason=reason,
            last_words=last_words,
            steps=dict(self._steps),
        )

    @contextmanager
    def _timed(self, step: str) -> Iterator[Mapping[str, float]]:
        begin = self._host.now()
        yield self._steps
        self._steps[step] = round(self._host.now() - begin, 3)
        log.info("Step %s took %.2f s", step, self._steps[step])


def _name(found: Manifest) -> str:
    return "the stock manifest" if found.revision is None else f"revision {found.revision}"
