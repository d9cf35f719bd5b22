"""Asks one cluster or several, once or until Ctrl-C, and prints the answers.

Each context is asked in a task of its own, a bounded number of them at once. One that cannot be
reached takes no place of the others, and every one ends in a bounded time.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...base.backoff import NO_RETRIES
from ...base.defects import contained
from ...base.foreign_text import json_text
from ...base.limits import FOREIGN_NAME
from ...base.progress import Step, collect, step
from ...kube.errors import ApiError, CredentialsError, KubeError, Unauthorized, Unavailable
from ..console.errors import (
    CommandError,
    Run,
    UsageError,
    error_lines,
    error_message,
    print_error,
)
from ..console.output import (
    counted,
    first_names,
    print_document,
    print_lines,
    print_now,
    remarks_about,
    text_of,
)
from .connection import ClusterConnection, client, credentials_of, run_async, run_with_api
from .contexts import chosen_contexts

if TYPE_CHECKING:
    from ...kube.credentials import Credentials

INTERVAL = 2.0
"""Least seconds between two questions of --watch."""
_SHARE: Final = 4.0
"""--watch waits this many times as long as the last answer took: it works a fifth of the time."""
REACH: Final = 10.0
"""Seconds in which one of several contexts must load its credentials and respond."""


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    document: Any  # for -o json
    text: str  # the same as lines, with what is not visible written out
    code: int = 0  # the exit code
    key: Any = None  # what --watch compares; None: the document
    is_error: bool = False  # whether it is the error that took the place of an answer

    @property
    def compared(self) -> Any:
        return self.document if self.key is None else self.key


Ask = Callable[[ClusterConnection], Awaitable[ClusterAnswer]]


@dataclass(frozen=True, slots=True)
class ClusterQuestion:
    """What is asked of each context."""

    ask: Ask
    subject: str = "the answer"  # what has changed, if it has
    failure: int = 1  # the exit code of errors
    at_once: int = 8  # contexts that are asked at the same time
    seconds: Callable[[argparse.Namespace], float] = lambda _args: 60.0  # for one of several
    # the answer of a context that cannot be reached; None: the error
    unreachable: Callable[[argparse.Namespace, KubeError], ClusterAnswer] | None = None

    def failed(self, error: KubeError | CommandError) -> ClusterAnswer:
        code = 2 if isinstance(error, UsageError) else self.failure
        message = error_message(error)
        return ClusterAnswer({"error": message}, text_of(error_lines(error)), code, is_error=True)


def refuse_contexts(args: argparse.Namespace) -> None:
    """Raise UsageError if flags for several clusters are combined with --from-files."""
    if args.watch or args.all_contexts or "," in (args.context or ""):
        raise UsageError(
            "--from-files is one cluster that does not change: remove --watch, --all-contexts and "
            "--context"
        )


def answering(question: ClusterQuestion) -> Run:
    """Return the `run` of a command that prints the answers of one context or several."""

    def run(args: argparse.Namespace) -> int:
        async def ask_several(contexts: Sequence[str]) -> int:
            return await _Several(question, args, contexts).run()

        try:
            contexts = chosen_contexts(args)
        except (KubeError, CommandError) as error:
            print_error(error)
            return 2
        if contexts is None:
            return run_with_api(args, _One(question, args).run, failure=question.failure)
        return run_async(args, partial(ask_several, contexts), failure=question.failure)

    return run


def pause_after(seconds: float) -> float:
    """Return the seconds that --watch waits after an answer that took `seconds`."""
    return max(INTERVAL, _SHARE * seconds)


@dataclass(frozen=True, slots=True)
class _One:
    question: ClusterQuestion
    args: argparse.Namespace

    async def run(self, connection: ClusterConnection) -> int:
        shown: ClusterAnswer | None = None
        while True:
            begun = time.monotonic()
            answer = await self.question.ask(connection)
            took = time.monotonic() - begun
            if shown is None or answer.compared != shown.compared:
                if shown is not None and self.args.output == "text":
                    print_now(f"{self.question.subject} has changed")
                print_document(answer.document, self.args.output, answer.text)
                sys.stdout.flush()
                shown = answer
            if not self.args.watch:
                return answer.code
            await asyncio.sleep(pause_after(took))


@dataclass(slots=True)
class _Context:
    """One of several contexts."""

    name: str
    question: ClusterQuestion
    args: argparse.Namespace
    places: asyncio.Semaphore  # of those that are asked at the same time
    credentials: Credentials
    connection: ClusterConnection | None = None  # the latest one
    answer: ClusterAnswer | None = None  # the latest one

    async def ask(self) -> ClusterAnswer:
        """Return the answer, or the error that takes its place."""
        with collect(None), remarks_about(f"context {self.name}"):
            try:
                await reach(self.credentials)
            except KubeError as error:
                unreachable = self.question.unreachable
                if unreachable is None:
                    return self.question.failed(error)
                return replace(unreachable(self.args, error), is_error=True)
            async with self.places:
                return await self._answer()

    async def _answer(self) -> ClusterAnswer:
        seconds = self.question.seconds(self.args)
        try:
            async with asyncio.timeout(seconds), client(self.credentials) as api:
                known = self.connection or ClusterConnection(api, self.args)
                self.connection = replace(known, api=api)
                return await self.question.ask(self.connection)
        except TimeoutError:
            return self.question.failed(CommandError(f"no answer within {seconds:g} s"))
        except (KubeError, CommandError) as error:
            return self.question.failed(error)
        except Exception as error:  # what one API server sends ends no answer of others
            problem = f"not known: {contained('context', self.name, error)}"
            return self.question.failed(CommandError(problem))


class _Several:
    def __init__(
        self, question: ClusterQuestion, args: argparse.Namespace, contexts: Sequence[str]
    ) -> None:
        self._question, self._args = question, args
        places = asyncio.Semaphore(question.at_once)
        self._contexts = [
            _Context(name, question, args, places, credentials_of(args, name)) for name in contexts
        ]

    async def run(self) -> int:
        with step("") as waiting:
            async with asyncio.TaskGroup() as tasks:
                for context in self._contexts:
                    tasks.create_task(self._first(context, waiting))
        if self._args.output == "text":
            print_lines(self._summary())
        else:
            self._print_document()
        sys.stdout.flush()
        if self._args.watch:
            async with asyncio.TaskGroup() as tasks:
                for context in self._contexts:
                    tasks.create_task(self._follow(context))
        return max(answer.code for answer in self._answers().values())

    async def _first(self, context: _Context, waiting: Step) -> None:
        self._show_waiting(waiting)
        context.answer = await context.ask()
        self._show_waiting(waiting)
        self._print_text(context.name, context.answer)

    async def _follow(self, context: _Context) -> None:
        took = 0.0
        while True:
            await asyncio.sleep(pause_after(took))
            before, begun = context.answer, time.monotonic()
            context.answer = answer = await context.ask()
            took = time.monotonic() - begun
            if before is not None and answer.compared == before.compared:
                continue
            if self._args.output == "text":
                print_now(f"context {context.name}: {self._question.subject} has changed")
                self._print_text(context.name, answer)
            else:
                self._print_document()
            sys.stdout.flush()

    def _show_waiting(self, waiting: Step) -> None:
        names = [context.name for context in self._contexts if context.answer is None]
        waiting.done, waiting.total = len(self._contexts) - len(names), len(self._contexts)
        waiting.what, waiting.noun = f"waiting for {first_names(names)}; answered", "contexts"

    def _answers(self) -> dict[str, ClusterAnswer]:
        return {one.name: one.answer for one in self._contexts if one.answer is not None}

    def _print_text(self, name: str, answer: ClusterAnswer) -> None:
        """Print an answer below the name; what others wrote cannot begin a line like a name."""
        if self._args.output == "text":
            lines = (f"  {line}" if line else "" for line in answer.text.split("\n"))
            print_lines(f"Context {name}", *lines, "")
            sys.stdout.flush()

    def _print_document(self) -> None:
        document = {name: answer.document for name, answer in self._answers().items()}
        print_document(document, self._args.output)

    def _summary(self) -> str:
        """Name the contexts without an answer, and those by their exit codes."""
        by_end: dict[str, list[str]] = {}
        for name, answer in self._answers().items():
            end = "no answer" if answer.is_error else f"exit code {answer.code}"
            by_end.setdefault(end, []).append(_listed(name))
        ends = (f"{end}: {', '.join(names)}" for end, names in sorted(by_end.items()))
        return f"{counted(len(self._contexts), 'context')}; {'; '.join(ends)}"


def _listed(name: str) -> str:
    """Return a name for a list, quoted if it could be taken for several or for an exit code."""
    return name if re.fullmatch(r"[^\s,;]{1,253}", name) else json_text(name[:FOREIGN_NAME])


async def reach(credentials: Credentials) -> None:
    """Load the credentials and get a response of the API server, within `REACH` seconds each.

    Raises:
        CredentialsError: there are no credentials.
        Unauthorized, Unavailable: the API server does not take them, or does not respond.
    """
    from ...kube.client import Patience

    try:
        async with asyncio.timeout(REACH):
            # A plugin that hangs must neither take a thread of others nor be waited for at the end.
            await _in_daemon(credentials.reload)
    except TimeoutError:
        raise CredentialsError(
            f"the credentials were not loaded within {REACH:g} s; does a plugin of the kubeconfig "
            "wait for input or for the network?"
        ) from None
    async with client(credentials, Patience(REACH, NO_RETRIES)) as api:
        try:
            await api.get_path("/version")
        except (Unauthorized, Unavailable):
            raise
        except ApiError:
            pass  # it responds; what may be asked is another question


async def _in_daemon(work: Callable[[], Any]) -> None:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end(error: Exception | None) -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    def run() -> None:
        error: Exception | None = None
        try:
            work()
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end, error)

    threading.Thread(target=run, daemon=True).start()
    await ended
