"""Damaged files through every command: 500 of them.

`make test-all` has 2,000, `make soak` 100,000. KSO_FILES=N tries N files, KSO_SEED=S the one that
failed.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ...configurations.damage import damaged_file
from ...seeds import chunks, number
from .mutated_files import COMMANDS, corpus, place, prepare, run

CHUNKS = chunks(number("KSO_FILES", 200, soak=100_000), 100)


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_every_command_reports_damaged_files_in_sentences(
    seeds: range, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    prepare(tmp_path)
    files, problems, codes = corpus(), [], dict.fromkeys(range(3), 0)
    for seed in seeds:
        file = damaged_file(seed, files)
        name = place(file, tmp_path)
        for command, arguments in COMMANDS.items():
            outcome = run(arguments(Random(f"{seed} {command}"), name, tmp_path))
            codes[outcome.code] = codes.get(outcome.code, 0) + 1
            if outcome.problem:
                where = traceback.extract_tb(getattr(outcome.exception, "__traceback__", None))
                last = f" at {where[-1].filename}:{where[-1].lineno}" if where else ""
                problems.append(f"{file}: {' '.join(outcome.argv)}: {outcome.problem}{last}")
    record_property("files", len(seeds))
    record_property("exit codes", codes)
    assert not problems, "\n".join(problems)
    if len(seeds) > 1:
        assert min(codes.values()) > 0, f"not every exit code was seen: {codes}"
