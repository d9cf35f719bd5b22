"""What tests with generated inputs try: always the same in `make test-all`, others in `make soak`.

KSO_SOAK=1 draws a seed, which the session prints. KSO_SEED=S repeats what a failure names.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

SOAK: Final = "KSO_SOAK" in os.environ
"""Whether this is a part of `make soak`."""

_DRAWN: Final = "KSO_DRAWN_SEED"  # all worker processes inherit it and agree on the tests
if SOAK:
    os.environ.setdefault(_DRAWN, str(random.SystemRandom().randrange(1, 1_000_000)))

SEED: Final = int(os.environ.get("KSO_SEED") or os.environ.get(_DRAWN) or 1)
"""Where generated inputs begin: a change alone decides whether `make test` passes."""

_EACH: Final = 1_000_000
"""Histories or files of one seed, so that another one has others."""


def number(variable: str, usual: int, soak: int) -> int:
    """How many inputs to try; the variable decides, if it is set."""
    return int(os.environ.get(variable) or (soak if SOAK else usual))


def chunks(count: int, size: int, variable: str = "KSO_SEED") -> list[range]:
    """Ranges of seeds, one for each input; the variable selects a single one."""
    if single := os.environ.get(variable):
        return [range(int(single), int(single) + 1)]
    first = SEED * _EACH if SOAK else 0
    return [range(at, min(at + size, first + count)) for at in range(first, first + count, size)]


def some_in_presubmit(values: Sequence[Any], count: int) -> list[Any | ParameterSet]:
    """Parameters of a test of which `make test` runs the first `count`."""
    marked = [
        pytest.param(*(value if isinstance(value, tuple) else [value]), marks=pytest.mark.presubmit)
        for value in values[:count]
    ]
    return [*marked, *values[count:]]
