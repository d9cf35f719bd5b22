"""What the check and kube-scheduler differ in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kube_scheduler_operator.base.findings import Problem
from kube_scheduler_operator.config.lint.reports.report import FileFinding


def only_when_it_elects(found: Sequence[Problem | FileFinding]) -> bool:
    """Whether kube-scheduler only rejects it at leader election, which --write-config-to skips."""
    return bool(found) and all("1.2 times retryPeriod" in one.message for one in found)


def different(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where two documents differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            absent = "(not there)"
            yield from different(ours.get(key, absent), theirs.get(key, absent), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from different(one, other, f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path}: the operator completes {ours!r}, kube-scheduler {theirs!r}"
