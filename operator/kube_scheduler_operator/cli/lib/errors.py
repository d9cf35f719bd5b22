"""Errors of commands, and the messages that are printed for them."""

from __future__ import annotations

from ...kube.errors import Conflict, Forbidden, KubeError


class CommandError(Exception):
    """A command cannot be completed; the message states the reason and the remedy."""


class UsageError(CommandError):
    """A flag or an input file cannot be used; one line for each problem. The exit code is 2."""


def error_message(error: KubeError | CommandError) -> str:
    """The message to print; for a missing permission, the rule that grants it."""
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
