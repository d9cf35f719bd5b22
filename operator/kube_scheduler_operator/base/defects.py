"""Unexpected errors that stop one object or one step, but not the reconcile.

Each is counted, and logged with its traceback once instead of in every reconcile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from .bounded_cache import Recent

log = logging.getLogger(__name__)

DEFECT: Final = "OperatorError"
"""The reason of conditions that report such an error."""

_REMEMBERED: Final = 1024
_TEXT_LIMIT: Final = 300  # characters; an exception can quote a value of any size

_logged: Recent[str, None] = Recent(_REMEMBERED)
_observers: list[Callable[[str], None]] = []


def observe_defects(observer: Callable[[str], None]) -> None:
    """Call `observer` with the kind or step of every later error."""
    _observers.append(observer)


def contained(scope: str, name: str, error: Exception) -> str:
    """Log and count an error that was contained; return its text for a condition.

    `scope` is the kind or the step; `name` is the object, or empty for a step.
    """
    for observer in _observers:
        observer(scope)
    text = f"{type(error).__name__}: {error}"
    if len(text) > _TEXT_LIMIT:
        text = f"{text[: _TEXT_LIMIT - 1]}…"
    text = text.encode("utf-8", "replace").decode()
    where = f"{scope} {name}".rstrip()
    key = f"{where}: {text}"
    if key not in _logged:
        log.error("Defect in the operator, contained in %s", where, exc_info=error)
    _logged.keep(key, None)
    return text
