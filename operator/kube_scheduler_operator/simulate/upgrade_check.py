"""The check of an upgrade in a Pod with two kube-schedulers: the one in use and the next one.

The report is that of `kubectl scheduler check --upgrade`, of what those two and the rules show.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..config.effective.secondary.scheduler import CONTROL_PLANE
from ..config.effective.upgrades import RecordedUpgrade, Upgrade, UpgradedContent
from ..config.language.versions import Version
from .configuration import without_calls
from .edit_effect import effect_of
from .process import NEXT_ADDRESS, LaunchedProgram, binary_version
from .run_options import RunOptions
from .simulated_extenders import simulated_extenders, version_of
from .upgrade_programs import Program
from .upgrade_report import Placements, UpgradeReport
from .upgrade_steps import upgrade_report
from .world import World

_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class NextProgram:
    """The kube-scheduler of the next version."""

    image: str
    named: bool  # by the user, so it may have the plugins of the control plane's own image


async def check_upgrade(
    world: World,
    options: RunOptions,
    upgrades: list[RecordedUpgrade],
    target: Version,
    next_program: NextProgram,
    extenders: list[dict[str, Any]],
    load_policies: list[dict[str, Any]],
) -> UpgradeReport:
    """Check schedulers up to a version.

    `extenders` and `load_policies` are the objects that agents decide by.
    """
    launched = LaunchedProgram(NEXT_ADDRESS)
    await launched.wait(_START_SECONDS)
    before, after = [
        Program(binary, await asyncio.to_thread(binary_version, binary), named=next_program.named)
        for binary in (options.binary, launched)
    ]
    trials = PodTrials(world, options, before, after, next_program.image, extenders, load_policies)
    return await upgrade_report(upgrades, trials, target)


@dataclass(slots=True)
class PodTrials:
    world: World
    options: RunOptions
    before: Program  # the one in use
    after: Program
    image: str  # of `after`
    extenders: Sequence[Mapping[str, Any]] = ()
    load_policies: Sequence[Mapping[str, Any]] = ()
    missing_pods: str = ""
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.notes += self.world.notes

    def program(self, upgrade: Upgrade, version: Version) -> Program | None:
        if not (upgrade.stock or (self.after.named and upgrade.title == CONTROL_PLANE)):
            return None
        programs = (self.before, self.after)
        return next((one for one in programs if one.version.short == version.short), None)

    def why_none(self, upgrade: Upgrade, version: Version) -> str:
        if not upgrade.stock:
            return (
                "its image may have plugins of its own: name the kube-scheduler of its next image "
                "with kubectl scheduler check --upgrade --kube-scheduler PATH"
            )
        return (
            f"no kube-scheduler {version.short} was run; those in use and in {self.image} are "
            f"{self.before.version} and {self.after.version}"
        )

    async def placements(
        self, before: tuple[Program, UpgradedContent], after: tuple[Program, UpgradedContent]
    ) -> Placements:
        old, new = self._options(*before), self._options(*after)
        effect = await effect_of(self.world, old, new)
        return Placements(before[0].version, after[0].version, effect)

    def _options(self, program: Program, content: UpgradedContent) -> RunOptions:
        extenders = simulated_extenders(
            content.config.get("extenders") or (),
            self.extenders,
            self.load_policies,
            version_of(self.world.version),
        )
        self.notes += [note for note in extenders.notes if note not in self.notes]
        return replace(
            self.options,
            binary=program.binary,
            config=without_calls(content.config),
            flags=content.gate_flags,
            extenders=extenders.simulated,
            left_out=extenders.left_out,
        )
