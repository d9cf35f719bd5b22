"""What an extender costs kube-scheduler, and which one: none, a plain one in Go, ours.

Everything but the nodes is real. Variants take turns in every round, so that whatever else the
machine does meets all of them; ratios are of trials of the same round.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import extender_profile
from benchmarks.extender_figures import Results
from benchmarks.extender_trial import Bed
from benchmarks.extenders import Variant
from benchmarks.table import REPOSITORY
from cluster import lifecycle, teardown
from cluster.console import say
from cluster.model import Sandbox

NAME = f"bench-x-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
CALLED_PODS = 500


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """A control plane of its own, for as long as the block runs."""
    teardown.down(NAME)
    try:
        yield lifecycle.up(NAME, 0, 0, with_operator=False)
    finally:
        teardown.down(NAME)


@contextmanager
def bed(nodes: int, pods: int) -> Iterator[Bed]:
    """A cluster with so many hollow nodes, for as long as the block runs."""
    with sandbox() as made:
        yield Bed(made, nodes, pods)


def measure(made: Bed, variants: Sequence[Variant], repeat: int, results: Results) -> None:
    """Run all rounds; `results` has what was measured before something failed as well."""
    for number in range(repeat):
        made.load_nodes()
        order = list(variants)
        random.Random(number).shuffle(order)  # nobody always comes after the same one
        for variant in order:
            trial = made.trial(variant)
            results.add(trial)
            say(
                f"  round {number + 1}, {variant.name}: {trial.rate:.0f} pods/s "
                f"(others on {trial.others:.1f} processors)"
            )
    made.load_nodes()
    for variant in variants:
        if variant.program and not variant.full:
            results.calls[variant.name] = made.call(variant, CALLED_PODS)
            say(f"  calls of {variant.name}")


def profile(made: Bed, variants: Sequence[Variant], results: Results, folder: Path) -> None:
    """Tell where the time of all trials went, and take two more of each extender to see more."""
    folder.mkdir(parents=True, exist_ok=True)
    made.load_nodes()
    for variant in variants:
        trials = results.trials.get(variant.name, [])
        lines = [f"{variant.name}:", *extender_profile.by_process(trials)]
        lines += extender_profile.by_phase(trials)
        if variant.program == "ours":
            stacks = folder / f"{variant.name}.stacks"
            made.trial(variant, stacks, python=True)
            lines += ["  our extender, by function:", *extender_profile.by_function(stacks)]
        if variant.program:
            record = folder / f"{variant.name}.perf"
            made.trial(variant, record)
            lines += ["  the extender, by symbol:", *extender_profile.by_symbol(record)]
            record.unlink(missing_ok=True)
        extender_profile.write(folder / f"{variant.name}.txt", lines)
