"""Installs one revision on one node: remove, wait, write, watch; and roll back if it fails.

A power cut may follow any step. The journal is written before the first relevant step and removed
after the last; the next installer resumes from the state on disk. The manifest directory never
stays empty: every exit goes through `Layout.leave_running`.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from ..protocol.message import BootTime
from ..protocol.result import STOCK, InstallerOutcome, Result
from ..protocol.upgrade_request import is_upgrade, version_of
from .activate import Activator
from .host import NodeHost
from .layout import Journal, Layout, OtherContentError, Phase, RevisionFiles
from .manifest import Manifest
from .program import InstallerOptions
from .revision_directory import newest_verified

log = logging.getLogger(__name__)


class PortTakenError(OSError):
    """Another program listens on the new scheduler's port."""


class Swap:
    """The state machine of an installation; its state is on disk."""

    def __init__(
        self, options: InstallerOptions, files: RevisionFiles, layout: Layout, host: NodeHost
    ) -> None:
        self._options = options
        self._files = files
        self._layout = layout
        self._host = host
        self._activator = Activator(layout, host, options)
        self._steps = self._activator.steps
        self._restart = False
        self._from_kubeadm = False

    def stage(self) -> Result | None:
        """Write the revision's files to disk without affecting the running scheduler.

        Returns:
            The definitive result if the node has a newer revision, or other content under this
            number; nothing was written then.

        Raises:
            PortTakenError: another program uses the revision's port.
            OSError: writing failed.
        """
        options = self._options
        newest = self._layout.active_revision()
        if newest > options.revision and not options.rollback:
            return self._superseded(
                f"the node already has revision {newest}, which is newer than {options.revision}"
            )
        self._check_port()
        try:
            with self._activator.timed("stage"):
                self._layout.stage(options.revision, self._files, options.content_hash)
        except OtherContentError as error:
            return self._superseded(f"{error}; a higher number is needed")
        return None

    def _superseded(self, reason: str) -> Result:
        self._layout.leave_running()
        return self._result(InstallerOutcome.SUPERSEDED, reason)

    def run(self) -> Result:
        """Install the revision or resume its installation; roll back if it fails.

        Returns:
            The definitive result; its manifest is in place.
        """
        options, layout = self._options, self._layout
        current = layout.current()
        journal = layout.journal()
        overtaken = self._overtaken(current, journal)
        if overtaken:
            self._clear_own_journal(journal)
            return self._result(InstallerOutcome.OVERTAKEN, overtaken)
        if current is not None and not layout.is_ours(current):
            self._from_kubeadm = layout.adopt(current) and self._is_other_version()
        superseded = self.stage()
        if superseded is not None:
            return superseded
        known = layout.outcome(options.revision)
        # A revision that is in place and has no outcome was repaired: its scheduler must restart.
        in_place = current is not None and current.data == self._files.target.data
        self._restart = in_place and known is None and journal is None
        if known is not None and known.failed and options.retry <= known.retry:
            log.info("Revision %d has already failed on this node", options.revision)
            layout.leave_running()
            self._clear_own_journal(journal)
            return replace(known, node=options.node, read=self._now())
        return self._proceed(self._resumed(journal))

    def _overtaken(self, current: Manifest | None, journal: Journal | None) -> str:
        """Return why nothing may be replaced now: `kubeadm upgrade` runs, or wrote another version.

        kubeadm fails if the manifest is missing when it moves it, or changes while it waits. A swap
        that has removed the manifest continues.
        """
        options, kubeadm = self._options, self._layout.kubeadm()
        if current is None:
            return ""
        in_place = current.data == self._files.target.data
        proven = journal is not None or self._layout.outcome(options.revision) is not None
        if kubeadm.work and not (in_place and proven):
            return f"`kubeadm upgrade` may be running on this node: {kubeadm.work} exists"
        if not options.follow_kubeadm or current.revision is not None or current.mounts_revision:
            return ""
        if is_upgrade(kubeadm.image, self._files.target.image, kubeadm.api_server):
            return f"kubeadm wrote a manifest with {kubeadm.image}"
        return ""

    def _is_other_version(self) -> bool:
        """Return whether kubeadm's manifest has a version other than the last good revision's."""
        good, kubeadm = self._layout.last_good(), self._layout.kubeadm()
        if good is None or good.revision is None or not kubeadm.image:
            return False
        return version_of(kubeadm.image) != version_of(good.image)

    def _check_port(self) -> None:
        """Check a changed port before the swap: another program may use it."""
        current, probe = self._layout.current(), self._files.target.probe
        if current is None or self._layout.journal() is not None:
            return  # the swap has already begun
        if current.probe.port == probe.port or self._host.is_port_free(probe):
            return
        raise PortTakenError(
            f"port {probe.port} of {probe.host}, needed by revision {self._options.revision}, "
            "is already in use by another program"
        )

    def _proceed(self, journal: Journal) -> Result:
        options, layout = self._options, self._layout
        if journal.phase is Phase.INSTALL:
            reason, journal = self._activator.activate(
                self._files.target, journal, "", restart=self._restart
            )
            if not reason:
                layout.make_last_good(options.revision)
                return replace(
                    self._finish(self._result(InstallerOutcome.INSTALLED)), strangers=self._prune()
                )
            last_error = self._host.last_error(journal.placed_at)
            log.error("Revision %d failed: %s: %s", options.revision, reason, last_error)
            journal = Journal(
                revision=options.revision,
                retry=options.retry,
                phase=Phase.ROLLBACK,
                reason=reason,
                last_error=last_error,
                from_kubeadm=journal.from_kubeadm,
                steps=dict(self._steps),
            )
            layout.write_journal(journal)
        return self._finish(self._roll_back(journal))

    def _roll_back(self, journal: Journal) -> Result:
        good = self._layout.fallback(journal)
        failure = {"last_error": journal.last_error}
        if good is None or good.data == self._files.target.data:
            if self._layout.current() is None:
                self._layout.place(self._files.target)
            return self._result(
                InstallerOutcome.UNHEALTHY,
                f"{journal.reason}; no other manifest to roll back to",
                **failure,
            )
        log.info("Rolling back to %s", good.name)
        reason, _ = self._activator.activate(good, journal, "rollback.")
        if not reason:
            rolled_back = self._result(InstallerOutcome.ROLLED_BACK, journal.reason, **failure)
            return replace(rolled_back, last_good_revision=good.revision or STOCK)
        reason = f"{journal.reason}; rollback to {good.name} failed: {reason}"
        return self._result(InstallerOutcome.UNHEALTHY, reason, **failure)

    def _resumed(self, journal: Journal | None) -> Journal:
        """Return the journal of the same attempt, or a new one."""
        options = self._options
        if journal and journal.revision == options.revision and journal.retry >= options.retry:
            log.info("Resuming an interrupted swap in phase %s", journal.phase)
            self._steps.update(journal.steps)
            return journal
        return Journal(
            options.revision,
            options.retry,
            from_kubeadm=self._from_kubeadm,
            steps=dict(self._steps),
        )

    def _finish(self, result: Result) -> Result:
        self._layout.write_outcome(result)
        self._layout.clear_journal()
        return result

    def _prune(self) -> tuple[str, ...]:
        """Remove old revisions from disk; a failure does not affect the result."""
        if self._options.keep is None:
            return ()
        try:
            return tuple(self._layout.prune(self._options.keep, self._options.revision))
        except OSError as error:
            log.warning("Failed to remove old revisions: %s", error)
            return ()

    def _clear_own_journal(self, journal: Journal | None) -> None:
        if journal is not None and journal.revision == self._options.revision:
            self._layout.clear_journal()

    def _result(self, outcome: InstallerOutcome, reason: str = "", last_error: str = "") -> Result:
        kubeadm = self._layout.kubeadm()
        placed = self._layout.current()
        stock = placed is not None and placed.revision is None and not placed.mounts_revision
        return Result(
            result=outcome,
            revision=self._options.revision,
            node=self._options.node,
            last_good_revision=self._layout.last_good_revision(),
            retry=self._options.retry,
            reason=reason,
            last_error=last_error,
            steps=dict(self._steps),
            kubeconfig=self._files.kubeconfig if outcome is InstallerOutcome.INSTALLED else "",
            newest=newest_verified(self._layout.resource_dir),
            restarted="write" in self._steps,
            image=kubeadm.image if stock else "",
            api_server=kubeadm.api_server,
            work=kubeadm.work,
            read=self._now(),
        )

    def _now(self) -> BootTime:
        return BootTime(self._host.boot_id(), self._host.now())
