"""Where the Pods of a world are placed by two versions of kube-scheduler."""

from __future__ import annotations

from dataclasses import replace

from ...config.effective.upgrades import UpgradedContent
from ...config.language.feature_gates import FLAG_PREFIX
from ...simulate.edit_effect import effect_of
from ...simulate.run import RunOptions
from ..simulation.run import Simulation
from .programs import Program
from .report import Placements


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
    flags = [flag for flag in content.arguments if flag.startswith(FLAG_PREFIX)]
    return replace(options, binary=program.path, flags=flags)
