"""Errors of commands, and the messages that are printed for them.

Every function of a command may raise CommandError: it ends the command, and its lines say why. The
docstrings of functions that several commands share name it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TypeAlias

from ...base.foreign_text import foreign_lines
from ...base.limits import MESSAGE_LENGTH
from ...kube.errors import Conflict, Forbidden, KubeError
from .visible_stream import write_for_people

Run: TypeAlias = Callable[[argparse.Namespace], int]
"""Runs a command; returns the exit code."""


class CommandError(Exception):
    """A command cannot be completed; each line states a reason and the remedy.

    What a line quotes may have line breaks, which are written out: only these are lines.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(foreign_lines(lines, MESSAGE_LENGTH))


class UsageError(CommandError):
    """A flag or an input file cannot be used; one line for each problem. The exit code is 2."""


@contextmanager
def named(what: str) -> Iterator[None]:
    """Name the flag or the file with an invalid value, or that cannot be read or written.

    Raises:
        UsageError: there was a ValueError or an OSError.
    """
    try:
        yield
    except OSError as error:
        raise UsageError(f"{what}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from None


def error_message(error: KubeError | CommandError) -> str:
    """Return the message to print; for a missing permission, the rule that grants it."""
    if isinstance(error, Forbidden) and error.rule:
        request = error.request
        what = f"{request.resource.name}" if request.resource else request.path
        what += f"/{request.subresource}" if request.subresource else ""
        where = f" in namespace {request.namespace}" if request.namespace else ""
        return (
            f"no permission to {request.verb} {what}{where}; ask a cluster administrator for "
            f"{error.rule}"
        )
    if isinstance(error, Conflict):
        return f"{error}; the object changed in the meantime: run the command again"
    return str(error)


def error_lines(error: KubeError | CommandError) -> list[str]:
    return f"error: {error_message(error)}".split("\n")


def print_error(error: KubeError | CommandError) -> None:
    """Print the message on standard error; only a CommandError has several lines."""
    for line in error_lines(error):
        write_for_people(sys.stderr, f"{line}\n")


def prints_errors(failure: int = 1) -> Callable[[Run], Run]:
    """Print the CommandError of a command; the exit code is 2 for invalid usage, else `failure`."""

    def decorated(run: Run) -> Run:
        @wraps(run)
        def guarded(args: argparse.Namespace) -> int:
            try:
                return run(args)
            except CommandError as error:
                print_error(error)
                return 2 if isinstance(error, UsageError) else failure

        return guarded

    return decorated
