"""Answers to the questions of pages, each computed once at a time and repeated for a moment.

A request waits for a few seconds only. Reloads and several tabs cost nothing: all who ask the same
question wait for the same computation.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from ...base.defects import contained
from ...base.field_types import document_of
from ...base.foreign_text import json_text
from ...kube.errors import Forbidden, KubeError, Unauthorized
from ..console.errors import CommandError, error_message
from .page import ConsoleCluster, Page, Question

ENTRIES: Final = 64
"""Answers that are kept."""

RUNNING: Final = 4
SIMULATIONS: Final = 2
"""Computations at the same time, without and with a kube-scheduler, which takes all of a processor:
neither kind waits for the other."""

_SIMULATES: Final = 60.0
"""Pages with a longer limit run a kube-scheduler."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What is known about a question now."""

    value: Any = None  # the latest answer; None: not known yet
    problem: str = ""  # why the latest computation has no answer
    made_at: float = 0.0  # Unix time of the answer
    computing: bool = False  # whether a computation is running

    @property
    def version(self) -> str:
        """A hash of what a page shows, which changes with it."""
        shown = json_text([document_of(self.value), self.problem], default=str)
        return hashlib.sha256(shown.encode()).hexdigest()[:16]


@dataclass(slots=True)
class _Entry:
    value: Any = None
    problem: str = ""
    made_at: float = 0.0
    ended: float = 0.0  # of the latest computation, on the monotonic clock
    task: asyncio.Task[None] | None = None
    known: asyncio.Event = field(default_factory=asyncio.Event)  # whether any answer is
    is_first: bool = False  # whether the answer is a first one, and the whole one is computed

    def keep(self, value: Any) -> None:
        self.value, self.problem, self.made_at = value, "", time.time()
        self.known.set()

    async def wait(self, seconds: float, *, whole: bool) -> None:
        """Wait for the end of the computation or, unless `whole`, for a first answer."""
        if self.task is None or (self.is_first and not whole):
            return
        known = asyncio.ensure_future(self.known.wait())
        waits = {self.task} if whole or self.known.is_set() else {self.task, known}
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        known.cancel()

    def answered(self) -> Answered:
        return Answered(self.value, self.problem, self.made_at, self.task is not None)


@dataclass(slots=True)
class Answers:
    """The answers of one server."""

    cluster: ConsoleCluster
    clock: Callable[[], float] = time.monotonic
    _entries: OrderedDict[Any, _Entry] = field(default_factory=OrderedDict)
    _running: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(RUNNING))
    _simulations: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIMULATIONS))

    async def get(
        self, page: Page, question: Question, patience: float, *, whole: bool = False
    ) -> Answered:
        """Return what is known after at most `patience` seconds; with `whole`, no first answer."""
        entry = self._entry(page, question)
        if entry is None:
            return Answered(problem=f"{ENTRIES} other questions are being answered; ask again")
        if entry.task is None and not self._is_fresh(entry, page):
            entry.task = asyncio.create_task(self._compute(entry, page, question))
        await entry.wait(patience, whole=whole)
        return entry.answered()

    async def close(self) -> None:
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _entry(self, page: Page, question: Question) -> _Entry | None:
        key = (page.name, *question.items())
        if key in self._entries:
            self._entries.move_to_end(key)
        else:
            if len(self._entries) >= ENTRIES:
                oldest = next((k for k, e in self._entries.items() if e.task is None), None)
                if oldest is None:
                    return None
                del self._entries[oldest]
            self._entries[key] = _Entry()
        return self._entries[key]

    def _is_fresh(self, entry: _Entry, page: Page) -> bool:
        return entry.ended > 0 and self.clock() - entry.ended < page.fresh

    async def _compute(self, entry: _Entry, page: Page, question: Question) -> None:
        running = self._simulations if page.limit > _SIMULATES else self._running
        try:
            async with asyncio.timeout(page.limit), running:
                if page.first is not None and entry.value is None:
                    entry.keep(await page.first(self.cluster, question))
                    entry.is_first = True
                entry.keep(await page.answer(self.cluster, question))
        except TimeoutError:
            entry.problem = f"not known: no answer within {page.limit:g} seconds"
        except (KubeError, CommandError) as error:
            entry.problem = error_message(error)
            if isinstance(error, Forbidden | Unauthorized):
                entry.value = None  # the permission to read it is gone
                entry.known.clear()
        except Exception as error:  # a defect in one page leaves the others usable
            entry.problem = f"not known: {contained('page', page.name, error)}"
        finally:
            entry.ended, entry.task, entry.is_first = self.clock(), None, False
