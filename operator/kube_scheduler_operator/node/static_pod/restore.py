"""Restores the scheduler that predates the operator, and removes the operator's files.

Without an adopted manifest the operator's scheduler stays: a cluster without a scheduler cannot
recover by itself.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ...base.files import Disk
from ..protocol.result import STOCK, InstallerOutcome, Result
from . import program
from .activate import Activator
from .host import NodeHost
from .layout import Journal, Layout, Phase
from .manifest import Manifest

log = logging.getLogger(__name__)


class UpgradeRunningError(OSError):
    """kubeadm waits for the manifest that it wrote; the restore is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions(program.NodeProgramOptions):
    """The flags of `kube-scheduler-operator restore`, under their names."""

    static_pod_namespace: str


def main(options: RestoreOptions) -> int:
    return program.run(lambda: restore(options), options.termination_log)


def restore(
    options: RestoreOptions, disk: Disk | None = None, host: NodeHost | None = None
) -> Result:
    """Restore the adopted manifest under the lock; every exit leaves a manifest in place.

    Tests replace the disk and the host.

    Raises:
        OSError: reading or writing files failed.
    """
    layout = options.layout(disk or Disk())
    with program.alone(layout):
        pod = f"{options.static_pod_namespace}_{options.static_pod_name}-{options.node}_"
        return Restore(options, layout, host or NodeHost(options, pod)).run()


class Restore:
    """The steps of a restore; their state is on disk."""

    def __init__(self, options: RestoreOptions, layout: Layout, host: NodeHost) -> None:
        self._options = options
        self._layout = layout
        self._host = host
        self._activator = Activator(layout, host, options)

    def run(self) -> Result:
        """Restore the adopted manifest; if it does not become healthy, roll back."""
        layout = self._layout
        current = layout.current()
        work = layout.kubeadm().work
        if work and current is not None:
            raise UpgradeRunningError(
                f"`kubeadm upgrade` may be running on this node: {work} exists"
            )
        ours = current is None or current.revision is not None or current.mounts_revision
        target = layout.adopted() if ours else current
        if target is None:
            layout.leave_running()
            return self._result(
                InstallerOutcome.KEPT,
                "the node has no manifest from before the operator; write one to "
                f"{layout.manifest_path}, and the next attempt removes the operator's files",
            )
        journal = self._journal()
        reason, journal = self._activator.activate(target, journal, "")
        if not reason:
            strangers = layout.clear()
            return self._result(InstallerOutcome.RESTORED, strangers=tuple(strangers))
        last_error = self._host.last_error(journal.placed_at)
        log.error("%s failed: %s: %s", target.name, reason, last_error)
        return self._roll_back(target, journal, reason, last_error)

    def _journal(self) -> Journal:
        saved = self._layout.journal()
        if saved is not None and (saved.phase, saved.retry) == (
            Phase.RESTORE,
            self._options.retry,
        ):
            log.info("Resuming an interrupted restore")
            return saved
        return Journal(STOCK, self._options.retry, Phase.RESTORE)

    def _roll_back(self, target: Manifest, journal: Journal, reason: str, error: str) -> Result:
        layout = self._layout
        good = layout.last_good()
        outcome = InstallerOutcome.UNHEALTHY
        if good is not None and good.data != target.data:
            failure, _ = self._activator.activate(good, journal, "rollback.")
            outcome = InstallerOutcome.UNHEALTHY if failure else InstallerOutcome.ROLLED_BACK
            reason += f"; rollback to {good.name} failed: {failure}" if failure else ""
        layout.clear_journal()
        return self._result(outcome, reason, error)

    def _result(
        self,
        outcome: InstallerOutcome,
        reason: str = "",
        last_error: str = "",
        strangers: tuple[str, ...] = (),
    ) -> Result:
        return Result(
            result=outcome,
            revision=STOCK,
            node=self._options.node,
            last_good_revision=self._layout.last_good_revision(),
            retry=self._options.retry,
            reason=reason,
            last_error=last_error,
            steps=dict(self._activator.steps),
            strangers=strangers,
        )
