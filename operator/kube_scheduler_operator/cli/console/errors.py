"""Errors of commands, and the messages that are printed for them."""

from __future__ import annotations

import sys

from ...base.foreign_text import foreign_lines, one_line
from ...base.limits import MESSAGE_LENGTH
from ...kube.errors import Conflict, Forbidden, KubeError


class CommandError(Exception):
    """A command cannot be completed; each line states a reason and the remedy.

    What a line quotes may have line breaks, which are written out: only these are lines.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(foreign_lines(lines, MESSAGE_LENGTH))


class UsageError(CommandError):
    """A flag or an input file cannot be used; one line for each problem. The exit code is 2."""


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


def print_error(error: KubeError | CommandError | ValueError) -> None:
    """Print the message on standard error; only a CommandError has several lines."""
    text = one_line(str(error)) if isinstance(error, ValueError) else error_message(error)
    sys.stderr.write(f"error: {text}\n")
