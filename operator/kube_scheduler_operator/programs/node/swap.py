"""One revision onto one node: remove, wait, write, watch; and back again if it does not work.

Every step can be the last one before a power cut. The journal is written before the first step
that matters and removed after the last; whoever comes next looks at what is on the disk and goes
on. The manifest directory never stays empty: every way out goes through `Layout.leave_running`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .activate import Activator, Patience
from .layout import Journal, Layout, Phase
from .result import Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .health_watch import Host
    from .manifest import Manifest

log = logging.getLogger(__name__)


class PortTakenError(OSError):
    """Another program listens where the new scheduler would."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be installed.

    Attributes:
        revision: its number.
        retry: which attempt.
        node: the node's name.
        target: the manifest of this revision.
        content: what the scheduler reads: paths in the revision's directory and their content.
        effective: what the preflight made of it; may be empty.
        kubeconfig: fingerprint of the node's kubeconfig, with which its scheduler starts.
        health_timeout: seconds until the scheduler must be ready.
        settling_time: seconds that it must stay ready without a restart.
        rollback: whether a newer revision may be replaced.
        keep: older revisions whose directories stay; None: all of them.
    """

    revision: int
    retry: int
    node: str
    target: Manifest
    content: Mapping[str, bytes]
    effective: bytes = b""
    kubeconfig: str = ""
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
        patience = Patience(request.health_timeout, request.settling_time)
        self._activator = Activator(layout, host, patience)
        self._steps = self._activator.steps

    # --- the whole -----------------------------------------------------------------------------
    def stage(self) -> None:
        """Put the revision's files on the disk; the scheduler does not notice.

        Raises:
            PortTakenError: the revision could not run here.
            OSError: the disk does not take it.
        """
        request = self._request
        self._see_that_the_port_is_free()
        with self._activator.timed("stage"):
            self._layout.stage(request.target, request.revision, request.content, request.effective)

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
            layout.leave_running()
            return self._result(
                Verdict.SUPERSEDED,
                f"revision {newest} is on this node and newer than {request.revision}",
            )
        if current is not None and current.revision is None:
            layout.adopt(current)
        self.stage()
        known = layout.outcome(request.revision)
        if known is not None and known.failed and request.retry <= known.retry:
            log.info("Revision %d failed here before, not tried again", request.revision)
            layout.leave_running()
            self._clear_own_journal(journal)
            return replace(known, node=request.node)
        return self._go_on(self._resumed(journal))

    def _see_that_the_port_is_free(self) -> None:
        """A new scheduler may need another port than the old one, and a stranger may have it."""
        current, probe = self._layout.current(), self._request.target.probe
        if current is None or self._layout.journal() is not None:
            return  # the swap has begun
        if current.probe.port == probe.port or self._host.is_port_free(probe):
            return
        raise PortTakenError(
            f"port {probe.port} of {probe.host}, where revision {self._request.revision} would "
            "listen, is taken by another program"
        )

    # --- forward and back ----------------------------------------------------------------------
    def _go_on(self, journal: Journal) -> Result:
        request, layout = self._request, self._layout
        if journal.phase is Phase.INSTALL:
            reason, journal = self._activator.activate(request.target, journal, "")
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
        log.info("Putting the last good manifest back: %s", good.name)
        reason, _ = self._activator.activate(good, journal, "rollback.")
        if not reason:
            return self._result(Verdict.ROLLED_BACK, journal.reason, **failure)
        reason = f"{journal.reason}; then {good.name} did not work either: {reason}"
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

    def _place_if_absent(self, target: Manifest) -> None:
        if self._layout.current() is None:
            self._layout.place(target)

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
            kubeconfig=self._request.kubeconfig if verdict is Verdict.INSTALLED else "",
        )
