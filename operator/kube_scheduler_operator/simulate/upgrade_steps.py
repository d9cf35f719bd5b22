"""Makes the report of an upgrade, one minor version after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from ..base import progress
from ..config.effective.upgrades import Upgrade, UpgradedContent
from ..config.language.validation.upgrades import UpgradeStep
from ..config.language.versions import Version
from .process import SimulationError
from .upgrade_programs import Program, gates_of, refusal, without_impossible_gates
from .upgrade_report import Placements, SchedulerStep, UpgradeReport

_PODS: Final = "which Pods it places differently"


class Trials(Protocol):
    """The kube-schedulers that can be run, and the Pods that they try."""

    @property
    def missing_pods(self) -> str:
        """Why no Pods are tried; empty if they are."""

    @property
    def notes(self) -> Sequence[str]:
        """What is not considered, a sentence each."""

    def program(self, upgrade: Upgrade, version: Version) -> Program | None:
        """Return the kube-scheduler of a version that decides as the scheduler does."""

    def why_none(self, upgrade: Upgrade, version: Version) -> str:
        """Say why it is missing."""

    async def placements(
        self, before: tuple[Program, UpgradedContent], after: tuple[Program, UpgradedContent]
    ) -> Placements:
        """Try the Pods that a content serves with both.

        Raises:
            SimulationError: a kube-scheduler could not be run.
        """


@dataclass(frozen=True, slots=True)
class NoTrials:
    """Only the rules are known."""

    why: str
    notes: Sequence[str] = ()

    @property
    def missing_pods(self) -> str:
        return self.why

    def program(self, _upgrade: Upgrade, _version: Version) -> Program | None:
        return None

    def why_none(self, _upgrade: Upgrade, _version: Version) -> str:
        return self.why

    async def placements(
        self, _before: tuple[Program, UpgradedContent], _after: tuple[Program, UpgradedContent]
    ) -> Placements:
        raise SimulationError(self.why)


async def upgrade_report(
    upgrades: Sequence[Upgrade], trials: Trials, target: Version
) -> UpgradeReport:
    """Check all schedulers in every minor version up to `target`."""
    steps = []
    for upgrade in upgrades:
        walk = _Walk(upgrade, trials)
        for step in upgrade.steps(target):
            with progress.step(f"{upgrade.title}, Kubernetes {step.version.short}"):
                steps.append(await walk.step(step))
    current = {upgrade.title: upgrade.version for upgrade in upgrades}
    return UpgradeReport(target, current, steps, list(trials.notes))


class _Walk:
    """One scheduler, from version to version."""

    def __init__(self, upgrade: Upgrade, trials: Trials) -> None:
        self._upgrade = upgrade
        self._trials = trials
        self._before = trials.program(upgrade, upgrade.version)  # the newest that was compared
        self._contents = upgrade.contents(upgrade.version)  # what that runs
        self._broken = False  # whether the version before does not start

    async def step(self, step: UpgradeStep) -> SchedulerStep:
        """Check the next version."""
        found = _Found(list(step.refused))
        program = self._trials.program(self._upgrade, step.version)
        if program is None:
            found.unknown += filter(None, (step.unknown, step.pre_release))
            found.unknown.append(f"{_PODS}: {self._why_none(step.version)}")
        else:
            try:
                await self._try(program, step, found)
            except SimulationError as error:
                found.unknown.append(str(error))
            if program.version.pre:
                found.unknown.append(f"{program.version} is a pre-release; its release may differ")
        return SchedulerStep(
            self._upgrade.title,
            step.version,
            tuple(found.errors),
            step.duties,
            program.version if program is not None else None,
            found.answer,
            tuple(found.without),
            tuple(found.placements),
            tuple(found.unknown),
        )

    def _why_none(self, version: Version) -> str:
        return self._trials.why_none(self._upgrade, version)

    async def _try(self, program: Program, step: UpgradeStep, found: _Found) -> None:
        """Give what the version would run to its kube-scheduler."""
        contents = self._upgrade.contents(step.version)
        possible = [without_impossible_gates(content, step.version) for content in contents]
        problems = await _refusals(program, possible)
        given = possible
        if step.refused:  # what an older version refuses is its own error
            older = Version(step.version.major, step.version.minor - 1)
            given = [without_impossible_gates(content, older) for content in contents]
            found.answer = next(iter(await _refusals(program, given)), "")
        elif problems and not self._broken:
            found.answer = problems[0]
            found.errors += (f"kube-scheduler {program.version} ends: {each}" for each in problems)
        found.without = sorted(_gates(contents) - _gates(given))
        if problems or not contents:
            self._broken = True
            found.unknown.append(f"{_PODS}: it does not start until what it refuses is corrected")
            return
        self._broken = False
        await self._compare(program, possible, found)

    async def _compare(
        self, program: Program, contents: Sequence[UpgradedContent], found: _Found
    ) -> None:
        before, old = self._before, self._contents
        self._before, self._contents = program, contents
        if missing := self._trials.missing_pods:
            found.unknown.append(f"{_PODS}: {missing}")
        elif before is None:
            found.unknown.append(f"{_PODS}: {self._why_none(self._upgrade.version)}")
        else:
            for was, now in zip(old, contents, strict=False):
                compared = await self._trials.placements((before, was), (program, now))
                found.placements.append(compared)


def _gates(contents: Sequence[UpgradedContent]) -> set[str]:
    return {name for content in contents for name in gates_of(content)}


async def _refusals(program: Program, contents: Sequence[UpgradedContent]) -> list[str]:
    problems = []
    for content in contents:
        problem = await refusal(program, content)
        if problem is not None:
            problems.append(f"{content.title}: {problem}" if content.title else problem)
    return problems


@dataclass(slots=True)
class _Found:
    errors: list[str]
    answer: str = ""  # the error with which the kube-scheduler ends; empty: it starts
    without: Sequence[str] = ()  # the feature gates that it was not given
    unknown: list[str] = field(default_factory=list)
    placements: list[Placements] = field(default_factory=list)
