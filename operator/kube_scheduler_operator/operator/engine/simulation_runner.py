"""Runs the simulations that reconciles request, beside them.

A reconcile requests a simulation in its plan, and a later one finds the answer in its snapshot.
Nothing waits for it: it is a task of its own, with a time limit, and its failure is an answer.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

import aiohttp

from ...base import klog
from ...base.defects import contained
from ...base.tasks import cancel
from ...kube.errors import KubeError
from ...simulate.process import SimulationError
from ..model.snapshot import CheckIdentity

log = logging.getLogger(__name__)

LONGEST_EFFECT: Final = 2000
"""Characters of an effect that are kept for conditions, events and annotations."""


class Question(Protocol):
    """What is simulated."""

    @property
    def identity(self) -> CheckIdentity: ...

    @property
    def seconds(self) -> int: ...

    @property
    def turn(self) -> str: ...


Q = TypeVar("Q", bound=Question)
A = TypeVar("A")


class SimulationRunner(ABC, Generic[Q, A]):
    """Runs simulations; `changed` is called when one has its answer.

    Those of one namespace's SecondarySchedulers have turns, so that one tenant's simulation, which
    may wait for an image that does not exist, delays no other one's.
    """

    SUBJECT: str  # of a simulation, for the log
    LIMIT: str  # the field with its time limit, in parentheses; empty without one

    def __init__(self, simulate: Callable[[Q], Awaitable[A]], changed: Callable[[], None]) -> None:
        # those of the simulations that are still requested
        self.answers: dict[CheckIdentity, A] = {}
        self._simulate = simulate
        self._changed = changed
        self._tasks: dict[CheckIdentity, asyncio.Task[None]] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @abstractmethod
    def _failed(self, question: Q, error: str) -> A:
        """Return the answer of a simulation that could not be run."""

    @abstractmethod
    def _values(self, answer: A) -> Mapping[str, Any]:
        """Return what of an answer is logged."""

    def follow(self, questions: Sequence[Q]) -> None:
        """Run these simulations, and no other ones."""
        asked = {question.identity: question for question in questions}
        for identity in self._tasks.keys() - asked.keys():
            self._tasks.pop(identity).cancel()
            self.answers.pop(identity, None)
        for identity, question in asked.items():
            if identity not in self._tasks:  # else it runs, or has its answer
                task = asyncio.create_task(self._run(question), name=self.SUBJECT)
                self._tasks[identity] = task

    async def close(self) -> None:
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            await cancel(task)

    async def _run(self, question: Q) -> None:
        configuration = question.identity.configuration[:12]
        log.info("Simulating %s", self.SUBJECT, extra=klog.kv(configuration=configuration))
        error, answer = "", None
        turn = self._turns.setdefault(question.turn, asyncio.Lock())
        try:
            async with asyncio.timeout(question.seconds), turn:
                answer = await self._simulate(question)
        except TimeoutError:
            error = f"it did not end within {question.seconds} s{self.LIMIT}"
        except (SimulationError, KubeError, OSError, aiohttp.ClientError) as reason:
            error = " ".join(str(reason).split()) or type(reason).__name__
        except Exception as defect:  # no one must wait for an answer that never comes
            error = contained("simulation", self.SUBJECT, defect)
        known = self._failed(question, error[:LONGEST_EFFECT]) if answer is None else answer
        self.answers = {**self.answers, question.identity: known}
        log.info("Simulated %s", self.SUBJECT, extra=klog.kv(**self._values(known)))
        self._changed()
