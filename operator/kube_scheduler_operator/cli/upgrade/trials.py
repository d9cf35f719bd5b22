"""The kube-schedulers of this machine, and the Pods of a cluster or of files that they try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...config.effective.upgrades import Upgrade, UpgradedContent
from ...config.language.versions import Version
from ...simulate.edit_effect import effect_of
from ...simulate.run_options import RunOptions
from ...simulate.upgrade_programs import Program
from ...simulate.upgrade_report import Placements
from ..simulation.run import Simulation
from .programs import Programs, how_to_get


@dataclass(frozen=True, slots=True)
class LocalTrials:
    programs: Programs
    simulation: Simulation | None  # of the Pods
    missing_pods: str = ""  # why Pods are not known

    @property
    def notes(self) -> Sequence[str]:
        return self.simulation.notes if self.simulation is not None else ()

    def program(self, upgrade: Upgrade, version: Version) -> Program | None:
        program = self.programs.of(version)
        return program if program is not None and (program.named or upgrade.stock) else None

    def why_none(self, upgrade: Upgrade, version: Version) -> str:
        if upgrade.stock or self.programs.of(version) is None:
            return how_to_get(version)
        return f"name the kube-scheduler of its {version.short} image with --kube-scheduler PATH"

    async def placements(
        self, before: tuple[Program, UpgradedContent], after: tuple[Program, UpgradedContent]
    ) -> Placements:
        if self.simulation is None:
            raise ValueError(self.missing_pods)
        return await placements_of(self.simulation, before, after)


async def placements_of(
    simulation: Simulation,
    before: tuple[Program, UpgradedContent],
    after: tuple[Program, UpgradedContent],
) -> Placements:
    """Try the Pods that a content serves with both.

    Raises:
        SimulationError: a kube-scheduler could not be run.
    """
    old, new = _options(simulation, *before), _options(simulation, *after)
    effect = await effect_of(simulation.world, old, new)
    return Placements(before[0].version, after[0].version, effect)


def _options(simulation: Simulation, program: Program, content: UpgradedContent) -> RunOptions:
    options = simulation.with_configuration(content.config)
    return replace(options, binary=program.binary, flags=content.gate_flags)
