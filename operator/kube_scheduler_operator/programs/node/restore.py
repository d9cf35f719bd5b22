"""The way out: what was there before the operator runs again, and what the operator kept here goes.

Without the adopted manifest the operator's own scheduler stays, for a cluster without a scheduler
cannot heal itself.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...base.files import Disk
from . import program
from .activate import Activator, Patience
from .layout import Journal, Phase
from .result import STOCK, Result, Verdict

if TYPE_CHECKING:
    from .health_watch import Host
    from .layout import Layout
    from .manifest import Manifest

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(program.Options):
    """The flags of `kube-scheduler-operator restore`, under their names."""

    static_pod_namespace: str


def main(options: Options) -> int:
    """Run the program to its end; its exit code."""
    return program.run(lambda: restore(options), options.termination_log)


def restore(options: Options, disk: Disk | None = None, host: Host | None = None) -> Result:
    """Bring back what was there, under the lock; on every way out a manifest is in its place.

    Args:
        options: where.
        disk: what writes; the real one if None.
        host: what sees the node; the real one if None.

    Raises:
        OSError: the disk does not do what it must.
    """
    layout = options.layout(disk or Disk())
    with program.alone(layout):
        return Restore(options, layout, host or options.host(_log_prefix(options))).run()


class Restore:
    """The steps; their state is on the disk."""

    def __init__(self, options: Options, layout: Layout, host: Host) -> None:
        self._options = options
        self._layout = layout
        self._host = host
        patience = Patience(options.health_timeout, options.settling_time)
        self._activator = Activator(layout, host, patience)

    def run(self) -> Result:
        """Go back to what was there, or stay with what runs if that does not work."""
        layout = self._layout
        current = layout.current()
        ours = current is None or current.revision is not None
        target = layout.adopted() if ours else current
        if target is None:
            layout.leave_running()
            return self._result(
                Verdict.KEPT,
                f"no manifest from before the operator is on this node; put one into "
                f"{layout.manifest_path} yourself, and what the operator left behind goes",
            )
        journal = self._journal()
        reason, journal = self._activator.activate(target, journal, "")
        if not reason:
            strangers = layout.clear()
            return self._result(Verdict.RESTORED, strangers=tuple(strangers))
        words = self._host.last_words(journal.placed_at)
        log.error("%s does not run: %s: %s", target.name, reason, words)
        return self._go_back(target, journal, reason, words)

    def _journal(self) -> Journal:
        found = self._layout.journal()
        if found is not None and (found.phase, found.retry) == (Phase.RESTORE, self._options.retry):
            log.info("Going on where another one was interrupted")
            return found
        return Journal(STOCK, self._options.retry, Phase.RESTORE)

    def _go_back(self, target: Manifest, journal: Journal, reason: str, words: str) -> Result:
        layout = self._layout
        good = layout.last_good()
        verdict = Verdict.UNHEALTHY
        if good is not None and good.data != target.data:
            again, _ = self._activator.activate(good, journal, "rollback.")
            verdict = Verdict.UNHEALTHY if again else Verdict.ROLLED_BACK
            reason += f"; then {good.name} did not work either: {again}" if again else ""
        layout.clear_journal()
        return self._result(verdict, reason, words)

    def _result(
        self,
        verdict: Verdict,
        reason: str = "",
        last_words: str = "",
        strangers: tuple[str, ...] = (),
    ) -> Result:
        return Result(
            result=verdict,
            revision=STOCK,
            node=self._options.node,
            last_good_revision=self._layout.last_good_revision(),
            retry=self._options.retry,
            reason=reason,
            last_words=last_words,
            steps=dict(self._activator.steps),
            strangers=strangers,
        )


def _log_prefix(options: Options) -> str:
    return f"{options.static_pod_namespace}_{options.static_pod_name}-{options.node}_"
