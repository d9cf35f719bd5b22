"""What an edit would change for the pods of a cluster: the answer of `diff --placements`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from ...base.platform import Platform
from ...kube.client import ApiClient
from ...simulate.configuration import default_configuration, profiles_of
from ...simulate.decided_by import DecidedBy, framed
from ...simulate.edit_effect import EditEffect, edit_effect
from ...simulate.placements import Spread, distribution, placements
from ...simulate.run_options import RunOptions, simulated_names
from ...simulate.scenario import Prepared, Scenario, prepare
from ..cluster.compare import ParsedRevision
from ..console.errors import CommandError
from .answer import left_in_place
from .answer_text import shown_spread
from .deciding import titles
from .run import Simulation, from_cluster
from .running_scheduler import gate_flags

_REPEAT: Final = 3
_MOST_PODS: Final = 3000
"""Pods of a cluster that is placed again as a whole; each run takes some ten seconds then."""
_FIGURES: Final = {
    "nodesUsed": ("nodes used", ""),
    "fullestNodePercent": ("the fullest node", " %"),
    "pending": ("pods Pending", ""),
}


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure if all pods were placed again, with both configurations."""

    before: Spread
    after: Spread


@dataclass(frozen=True, slots=True)
class EditAnswer:
    """What an edit changes for the pods of a cluster, which text and JSON are made from."""

    effect: EditEffect
    placed_again: dict[str, FigureChange]  # by the figure; empty: that was not tried
    too_large: bool  # whether it was not tried because there are too many pods
    decided_by: DecidedBy | None
    notes: list[str]

    def lines(self) -> Iterator[str]:
        effect = self.effect
        body = [*effect.sentences(), *effect.omissions(), *self._placed_again()]
        return framed(self.decided_by, body, self.notes, with_configurations=False)

    def _placed_again(self) -> Iterator[str]:
        if self.too_large:
            yield (
                "the cluster is too large to place all pods again here: use `kubectl scheduler "
                "simulate --replay --config FILE`"
            )
        for key, change in self.placed_again.items():
            name, unit = _FIGURES[key]
            first, second = shown_spread(change.before, unit), shown_spread(change.after, unit)
            if first != second:
                yield f"if all pods were placed again: {name} {first} → {second}"


async def placements_of_edit(
    api: ApiClient,
    platform: Platform,
    args: argparse.Namespace,
    before: ParsedRevision,
    after: ParsedRevision,
) -> EditAnswer:
    """Try running and waiting pods with the configuration before an edit and after it.

    Raises:
        KubeError: the cluster cannot be read.
        CommandError: the simulation cannot be run.
    """
    # The edit may be that of a SecondaryScheduler; then the others are its surroundings.
    name = str(profiles_of(before.config)[0]["schedulerName"])
    async with aclosing(await from_cluster(api, platform, args, name)) as simulation:
        try:
            old, new = _options(simulation, before), _options(simulation, after)
            effect = await simulation.ask(
                edit_effect,
                options=old,
                config=new.config,
                flags=new.flags,
                extenders=new.extenders,
            )
            replay = prepare(simulation.world, Scenario(replay=True), simulated_names(old))
            too_large = len(replay.pods) > _MOST_PODS
            again = {} if too_large else await _placed_again(simulation, replay, old, new)
        except CommandError as error:
            raise CommandError(f"--placements: {error}") from None
    notes = [*left_in_place(replay), *simulation.notes]
    decided_by = _decided_by(simulation.decided_by.of(name), (before, old), (after, new))
    return EditAnswer(effect, again, too_large and bool(replay.subject), decided_by, notes)


def _decided_by(decided_by: DecidedBy, *used: tuple[ParsedRevision, RunOptions]) -> DecidedBy:
    """Return it with the configurations before and after the edit."""
    configurations = tuple(
        replace(
            known,
            origin=f"{when} the edit",
            configuration=content.config,
            left_out=titles(options.left_out),
        )
        for known in decided_by.configurations
        for when, (content, options) in zip(("before", "after"), used, strict=True)
    )
    return replace(decided_by, configurations=configurations)


def _options(simulation: Simulation, content: ParsedRevision) -> RunOptions:
    options = simulation.with_configuration(content.config or default_configuration())
    return replace(options, flags=gate_flags(content))


async def _placed_again(
    simulation: Simulation, prepared: Prepared, old: RunOptions, new: RunOptions
) -> dict[str, FigureChange]:
    """Return the figures if all pods are placed again."""
    if not prepared.subject:
        return {}
    then, now = [
        distribution(
            await simulation.ask(
                placements,
                world=prepared.world,
                options=options,
                pods=prepared.pods,
                subject=prepared.subject,
                repeat=_REPEAT,
                in_order=prepared.in_order,
            )
        )
        for options in (old, new)
    ]
    return {key: FigureChange(then[key], now[key]) for key in _FIGURES}
