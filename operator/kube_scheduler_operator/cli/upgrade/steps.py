"""Makes the report of an upgrade, one minor version after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...config.effective.upgrades import Upgrade, UpgradedContent
from ...config.language.validation.upgrades import UpgradeStep
from ...config.language.versions import Version
from ...simulate.process import SimulationError
from ..simulation.run import Simulation
from .placements import placements_of
from .programs import Program, Programs, gates_of, how_to_get, refusal, without_impossible_gates
from .report import Placements, SchedulerStep, UpgradeReport

_PODS: Final = "which Pods it places differently"


@dataclass(frozen=True, slots=True)
class Pods:
    """The Pods of a cluster or of files."""

    simulation: Simulation | None
    missing: str = ""  # why they are not known


async def upgrade_report(
    upgrades: Sequence[Upgrade], pods: Pods, programs: Programs, target: Version
) -> UpgradeReport:
    """Check all schedulers in every minor version up to `target`."""
    steps = []
    for upgrade in upgrades:
        walk = _Walk(upgrade, pods, programs)
        steps += [await walk.step(step) for step in upgrade.steps(target)]
    notes = list(pods.simulation.notes) if pods.simulation is not None else []
    current = {upgrade.title: upgrade.version for upgrade in upgrades}
    return UpgradeReport(target, current, steps, notes)


class _Walk:
    """One scheduler, from version to version."""

    def __init__(self, upgrade: Upgrade, pods: Pods, programs: Programs) -> None:
        self._upgrade = upgrade
        self._pods = pods
        self._programs = programs
        self._before = self._program(upgrade.version)  # the newest that was compared
        self._contents = upgrade.contents(upgrade.version)  # what that runs
        self._broken = False  # whether the version before does not start

    def _program(self, version: Version) -> Program | None:
        """Return the kube-scheduler of a version that decides as the scheduler does."""
        program = self._programs.of(version)
        return program if program is not None and (program.named or self._upgrade.stock) else None

    async def step(self, step: UpgradeStep) -> SchedulerStep:
        """Check the next version."""
        found = _Found(list(step.refused))
        program = self._program(step.version)
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
        if self._upgrade.stock or self._programs.of(version) is None:
            return how_to_get(version)
        return f"name the kube-scheduler of its {version.short} image with --kube-scheduler PATH"

    async def _try(self, program: Program, step: UpgradeStep, found: _Found) -> None:
        """Give what the version would run to its kube-scheduler."""
        contents = self._upgrade.contents(step.version)
        possible = [without_impossible_gates(content, step.version) for content in contents]
        problems = list(_refusals(program, possible))
        given = possible
        if step.refused:  # what an older version refuses is its own error
            older = Version(step.version.major, step.version.minor - 1)
            given = [without_impossible_gates(content, older) for content in contents]
            found.answer = next(iter(_refusals(program, given)), "")
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
        simulation = self._pods.simulation
        if simulation is None:
            found.unknown.append(f"{_PODS}: {self._pods.missing}")
        elif before is None:
            found.unknown.append(f"{_PODS}: {self._why_none(self._upgrade.version)}")
        else:
            for was, now in zip(old, contents, strict=False):
                compared = await placements_of(simulation, (before, was), (program, now))
                found.placements.append(compared)


def _gates(contents: Sequence[UpgradedContent]) -> set[str]:
    return {name for content in contents for name in gates_of(content)}


def _refusals(program: Program, contents: Sequence[UpgradedContent]) -> Iterator[str]:
    for content in contents:
        problem = refusal(program, content)
        if problem is not None:
            yield f"{content.title}: {problem}" if content.title else problem


@dataclass(slots=True)
class _Found:
    errors: list[str]
    answer: str = ""  # the error with which the kube-scheduler ends; empty: it starts
    without: Sequence[str] = ()  # the feature gates that it was not given
    unknown: list[str] = field(default_factory=list)
    placements: list[Placements] = field(default_factory=list)
