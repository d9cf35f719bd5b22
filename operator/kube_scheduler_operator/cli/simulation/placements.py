"""What an edit would change for the pods of a cluster, in sentences for `diff --placements`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from ...base.platform import Platform
from ...kube.client import ApiClient
from ...simulate.configuration import default_configuration, profiles_of
from ...simulate.edit_effect import edit_effect
from ...simulate.placements import distribution, placements
from ...simulate.run import RunOptions, simulated_names
from ...simulate.scenario import Prepared, Scenario, prepare
from ..cluster.compare import ParsedRevision
from ..console.errors import CommandError
from .answer import left_in_place, shown_spread
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


async def placement_sentences(
    api: ApiClient,
    platform: Platform,
    args: argparse.Namespace,
    before: ParsedRevision,
    after: ParsedRevision,
) -> list[str]:
    """Describe the effect of an edit on running and waiting pods.

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
            sentences = [*effect.sentences(), *await _replayed(simulation, replay, old, new)]
        except CommandError as error:
            raise CommandError(f"--placements: {error}") from None
    decided_by = simulation.decided_by
    notes = (decided_by.program(), *left_in_place(replay), *simulation.notes)
    return [*decided_by.first_line(), *sentences, *(f"note: {note}" for note in notes)]


def _options(simulation: Simulation, content: ParsedRevision) -> RunOptions:
    options = simulation.with_configuration(content.config or default_configuration())
    return replace(options, flags=gate_flags(content))


async def _replayed(
    simulation: Simulation, prepared: Prepared, old: RunOptions, new: RunOptions
) -> Sequence[str]:
    """Describe how figures change if all pods are placed again."""
    if not prepared.subject:
        return ()
    if len(prepared.pods) > _MOST_PODS:
        return (
            "the cluster is too large to place all pods again here: use `kubectl scheduler "
            "simulate --replay --config FILE`",
        )
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
    sentences = []
    for key, (name, unit) in _FIGURES.items():
        first, second = shown_spread(then[key], unit), shown_spread(now[key], unit)
        if first != second:
            sentences.append(f"if all pods were placed again: {name} {first} → {second}")
    return sentences
