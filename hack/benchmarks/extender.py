"""Compares kube-scheduler's throughput without an extender, with a plain one in Go, and with ours.

Everything except the nodes is real. Each round runs all variants, so that other load on the machine
affects all of them; ratios compare trials of the same round.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import extender_profile
from benchmarks.extender_results import Results
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
    """A separate control plane for the duration of the block."""
    teardown.down(NAME)
    try:
        yield lifecycle.up(NAME, 0, 0, with_operator=False)
    finally:
        teardown.down(NAME)


@contextmanager
def bed(nodes: int, pods: int) -> Iterator[Bed]:
    """A cluster with hollow nodes for the duration of the block."""
    with sandbox() as made:
        yield Bed(made, nodes, pods)


def measure(made: Bed, variants: Sequence[Variant], repeat: int, results: Results) -> None:
    """Run all rounds; after a failure, `results` has the measurements until then."""
    for number in range(repeat):
        made.load_nodes()
        order = list(variants)
        random.Random(number).shuffle(order)  # so that no variant always follows the same other one
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
    """Break down the time of all trials, with two more profiled trials for each extender."""
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
