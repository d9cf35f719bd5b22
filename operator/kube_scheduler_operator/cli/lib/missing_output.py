"""Shows the pods that a workload wants but that the API server does not let it create."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .output import counted

if TYPE_CHECKING:
    from ...simulate.owners import MissingPods


def missing_lines(missing: MissingPods) -> Iterator[str]:
    """The text output."""
    verb = "does" if missing.count == 1 else "do"
    kind, _, name = missing.owner.partition("/")
    of = f"{kind} {missing.namespace}/{name}"
    yield f"{counted(missing.count, 'pod')} of {of} {verb} not exist: {missing.cause}"
    if missing.fix:
        yield f"  helps   {missing.fix}"


def missing_document(missing: MissingPods) -> dict[str, Any]:
    """The same as JSON."""
    return asdict(missing)
