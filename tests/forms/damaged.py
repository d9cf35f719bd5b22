"""Damaged files of the corpus; one seed makes one file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

from ..configurations.damage import DIRECTORY, MISSING, TEXTUAL, WEIGHTS, damaged_file
from .corpus import CASES


@cache
def undamaged() -> Sequence[tuple[str, Sequence[Any]]]:
    """(name, documents) of the undamaged files."""
    parsed = [(case.name, [each.root.data for each in case.documents()]) for case in CASES]
    return [(name, documents) for name, documents in parsed if documents]


def damaged(seed: int) -> tuple[str, bytes]:
    """(description, content): damage of documents in three of four files, else of the text."""
    rng = Random(seed)
    if rng.random() < 0.75:
        file = damaged_file(seed, undamaged())
        special = file.data is MISSING or file.data is DIRECTORY
        return str(file), b"" if special else file.data
    case = rng.choice(CASES)
    data = rng.choice(case.contents)[1].encode()
    names = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        change = rng.choices(TEXTUAL, WEIGHTS)[0]
        data = change(rng, data)
        names.append(change.__name__)
    return f"KSO_SEED={seed}: {case.name}, {', '.join(names)}", data
