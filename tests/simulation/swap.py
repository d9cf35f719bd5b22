"""What an installer does to its node: the promises of the real one, without its files."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result
from kube_scheduler_operator.node.protocol.upgrade_request import is_upgrade

from .scheduler import STOCK, Manifest, back_off

if TYPE_CHECKING:
    from .machine import Machine


@dataclass(slots=True)
class Journal:
    """What the installer writes down before it touches anything."""

    revision: int
    retry: int
    rolling_back: bool = False
    reason: str = ""
    placed_at: float | None = None
    excused: int = 0
    from_kubeadm: bool = False


class Swap:
    """One attempt to bring a machine to a revision."""

    def __init__(
        self,
        machine: Machine,
        target: Manifest,
        retry: int,
        patience: float,
        *,
        follows: bool = False,
    ) -> None:
        self._follows = follows
        self._machine = machine
        self._target = target
        self._retry = retry
        self._patience = patience
        self._restarted = False

    def run(self) -> Generator[float, None, Result]:
        """Go to the target, or back; the result."""
        machine, target, retry = self._machine, self._target, self._retry
        newest = max(machine.active, machine.journal.revision if machine.journal else 0)
        if newest > target.revision:
            return self._result(InstallerOutcome.SUPERSEDED, f"revision {newest} is here")
        overtaken = self._overtaken()
        if overtaken:
            return self._result(InstallerOutcome.OVERTAKEN, overtaken)
        from_kubeadm = self._adopt()
        known = machine.outcomes.get(target.revision)
        if known is not None and known.failed and retry <= known.retry:
            return replace(known, read=machine.since_boot())
        repaired = bool(machine.edited_file) and machine.active == target.revision
        if repaired:
            machine.edited_file = ""
        journal = machine.journal
        if journal is None or journal.revision != target.revision or journal.retry < retry:
            journal = Journal(target.revision, retry, from_kubeadm=from_kubeadm)
        machine.journal = journal
        machine.swapping = True
        try:
            return (yield from self._swap(journal, restart=repaired))
        finally:
            if machine.up:
                machine.swapping = False
                if machine.manifest is None:
                    machine.place(self._fallback(journal) or target)

    def _adopt(self) -> bool:
        """Keep a manifest that is not the operator's; whether it has another image."""
        machine = self._machine
        if machine.manifest is None or machine.manifest.revision != 0:
            return False
        before, former = machine.last_good, machine.adopted
        image, server = machine.manifest.image, machine.api_server
        if former and image != former.image and not is_upgrade(image, former.image, server):
            return False  # it is only replaced
        machine.adopted = machine.manifest
        machine.last_good = before or machine.adopted
        return before is not None and before.image != machine.manifest.image

    def _swap(self, journal: Journal, *, restart: bool) -> Generator[float, None, Result]:
        """Go to the target, or back if the journal has the reason; the result."""
        machine, target = self._machine, self._target
        if not journal.rolling_back:
            journal.reason = yield from self._activate(target, journal, restart=restart)
            if not journal.reason:
                machine.last_good, machine.edited_file = target, ""
                machine.proven.add(target.revision)
                return self._finish(self._result(InstallerOutcome.INSTALLED))
            journal.rolling_back, journal.placed_at = True, None
        good = self._fallback(journal)
        if good is None or good.revision == target.revision:
            if machine.manifest is None:
                machine.place(target)
            reason = f"{journal.reason}; no other manifest to roll back to"
            return self._finish(self._result(InstallerOutcome.UNHEALTHY, reason))
        reason = yield from self._activate(good, journal)
        outcome = InstallerOutcome.UNHEALTHY if reason else InstallerOutcome.ROLLED_BACK
        result = replace(self._result(outcome, journal.reason), last_good_revision=good.revision)
        return self._finish(result)

    def _overtaken(self) -> str:
        """Why nothing may be replaced now."""
        machine, found = self._machine, self._machine.manifest
        if found is None:
            return ""
        proven = machine.journal is not None or self._target.revision in machine.outcomes
        if machine.work and not (found == self._target and proven):
            return "an upgrade is running"
        image = machine.stock_image
        if self._follows and is_upgrade(image, self._target.image, machine.api_server):
            return f"kubeadm wrote {image}"
        return ""

    def _fallback(self, journal: Journal) -> Manifest | None:
        machine = self._machine
        return machine.adopted if journal.from_kubeadm else machine.last_good

    def _activate(
        self, target: Manifest, journal: Journal, *, restart: bool = False
    ) -> Generator[float, None, str]:
        machine, patience = self._machine, self._patience
        self._restarted = self._restarted or journal.placed_at is not None
        if machine.manifest is None or machine.manifest != target or restart:
            self._restarted = True
            machine.withdraw()
            while machine.process is not None:
                yield 0.1
            while machine.manifest is not None:
                yield 10.0  # another program wrote one: the installer ends, and begins again
            machine.place(target)
            journal.placed_at, journal.excused = machine.clock.now, 0
        begin = machine.clock.now if journal.placed_at is None else journal.placed_at
        deadline = max(begin + patience, machine.clock.now + 5.0)
        while True:
            process = machine.process
            if process is not None and process.manifest == target:
                since = process.ready_since
                if since is not None and machine.clock.now - since >= 2.0:
                    return ""
                if not machine.has_api_server:
                    journal.excused = process.run
                    journal.placed_at = machine.clock.now + back_off(process.run)
                    deadline = max(deadline, journal.placed_at + patience)
                if process.run - journal.excused >= 2:
                    return "kube-scheduler exited 2 times after its start"
            if machine.clock.now >= deadline:
                return f"kube-scheduler ran, but did not become ready within {patience:g} s"
            yield 0.25

    def _finish(self, result: Result) -> Result:
        machine = self._machine
        machine.outcomes[result.revision] = result
        machine.journal = None
        machine.look_again()
        return result

    def _result(self, outcome: InstallerOutcome, reason: str = "") -> Result:
        machine = self._machine
        return Result(
            result=outcome,
            revision=self._target.revision,
            node=machine.name,
            last_good_revision=machine.last_good.revision if machine.last_good else 0,
            retry=self._retry,
            reason=reason,
            last_error="boom" if reason else "",
            steps={"ready": 1.5, "settle": 2.0},
            kubeconfig=self._target.kubeconfig if outcome is InstallerOutcome.INSTALLED else "",
            newest=machine.newest,
            restarted=self._restarted,
            image=machine.stock_image,
            api_server=machine.api_server,
            work=machine.work,
            read=machine.since_boot(),
        )


class Restore(Swap):
    """One attempt to bring back what was there before the operator."""

    def __init__(self, machine: Machine, retry: int, patience: float) -> None:
        current = machine.manifest
        target = machine.adopted if current is None or current.revision else current
        super().__init__(machine, target or STOCK, retry, patience)
        self._possible = target is not None

    def run(self) -> Generator[float, None, Result]:
        """Go back to the stock manifest, or stay with the last good one; the result."""
        machine = self._machine
        if not self._possible:
            return self._result(InstallerOutcome.KEPT, "there was nothing before")
        journal = Journal(0, self._retry)
        machine.journal, machine.swapping = journal, True
        try:
            reason = yield from self._activate(self._target, journal)
            if not reason:
                machine.adopted = machine.last_good = None
                machine.outcomes.clear()
                machine.directories.clear()
                return self._result(InstallerOutcome.RESTORED)
            good, outcome = machine.last_good, InstallerOutcome.UNHEALTHY
            if good is not None and good != self._target:
                journal.placed_at = None
                again = yield from self._activate(good, journal)
                outcome = InstallerOutcome.UNHEALTHY if again else InstallerOutcome.ROLLED_BACK
            return self._result(outcome, reason)
        finally:
            if machine.up:
                machine.swapping, machine.journal = False, None
                if machine.manifest is None:
                    machine.place(machine.last_good or self._target)
