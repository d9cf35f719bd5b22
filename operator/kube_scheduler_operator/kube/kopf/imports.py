"""kopf without the official client, and the private names of kopf that this package relies on."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


@contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Make imports of a package fail, unless it is loaded already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


with _hidden("kubernetes"):
    import kopf
    from kopf._cogs.clients import api as client_api
    from kopf._cogs.clients import watching

__all__ = [
    "LOGGERS",
    "PARAMETERS",
    "check_private_names",
    "client_api",
    "infinite_watch",
    "kopf",
    "watching",
]

infinite_watch = watching.infinite_watch
"""kopf's generator of one watch stream: lists, watches, and repeats."""

PARAMETERS: Final = frozenset(
    {"settings", "resource", "namespace", "operator_paused", "_iterations"}
)

LOGGERS: Final = {
    # Prints the body of an event of an unknown type.
    "watching": "kopf._cogs.clients.watching",
    # Warns about every handler whose kind the API server does not serve; `Watcher` reports those.
    "kinds": "kopf._core.reactor.observation",
    # Warns at every start that it ignores signals outside of the main thread.
    "running": "kopf._core.reactor.running",
}
"""Loggers of kopf whose warnings are wrong or unwanted here."""


READING: Final = frozenset({"url", "settings", "payload", "headers", "timeout", "logger"})
"""Parameters of kopf's `get`, whose decoding `decoding` replaces."""

_read_parameters: Final = frozenset(inspect.signature(client_api.get).parameters)


def check_private_names() -> None:
    """Check that kopf still has what `streams` and `decoding` replace.

    Raises:
        RuntimeError: kopf has changed; the message describes the remedy.
    """
    parameters = set(inspect.signature(infinite_watch).parameters)
    bookmarks = [mark.name for mark in watching.Bookmark]
    if parameters != PARAMETERS or bookmarks != ["LISTED"]:
        raise RuntimeError(
            f"kopf's watching.infinite_watch has changed (parameters {sorted(parameters)}, "
            f"bookmarks {bookmarks}): pin kopf>=1.45.2,<1.46, or adapt kube/kopf/streams.py"
        )
    if _read_parameters != READING or not hasattr(client_api, "json"):
        raise RuntimeError(
            "kopf reads lists or watches in another way: pin kopf>=1.45.2,<1.46, or adapt "
            "kube/kopf/decoding.py"
        )
