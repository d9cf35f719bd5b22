"""What long work does now, for a program that shows it.

Work begins a step with `step`, at any depth; what shows it collects the steps with `collect`.
Without a collector a step costs a lookup.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(slots=True, eq=False)
class Step:
    """Work in progress; the work changes it."""

    what: str  # "reading Pods"
    done: int = 0  # what is done, or the number of the part that is worked on
    total: int = 0  # 0: not known
    noun: str = ""  # of the parts, in the plural; empty: `what` has it
    about: bool = False  # whether the total is an estimate

    def __str__(self) -> str:
        if not self.done and not self.total:
            return self.what
        of = f" of {'about ' * self.about}{max(self.total, self.done):,}" if self.total else ""
        return f"{self.what} {self.done:,}{of} {self.noun}".rstrip()


Steps = list[Step]
"""The steps that are under way, the outermost first."""

_STEPS: Final[ContextVar[Steps | None]] = ContextVar("steps", default=None)


@contextmanager
def collect(steps: Steps | None) -> Iterator[None]:
    """Collect the steps of the block, and of tasks that begin in it; None: no more."""
    token = _STEPS.set(steps)
    try:
        yield
    finally:
        _STEPS.reset(token)


@contextmanager
def step(
    what: str, total: int = 0, noun: str = "", *, done: int = 0, inner: bool = True
) -> Iterator[Step]:
    """Show a step as long as the block runs; without `inner` only if none is under way."""
    made = Step(what, done, total, noun)
    steps = _STEPS.get()
    if steps is None or (steps and not inner):
        yield made
        return
    steps.append(made)
    try:
        yield made
    finally:
        steps.remove(made)
