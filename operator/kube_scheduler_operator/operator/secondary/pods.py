from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.objects import Object, is_being_deleted, label
from ...base.times import timestamp
from ..model.pod_status import (
    containers,
    crashing,
    ended,
    init_containers,
    is_ready,
    named,
    state,
    waiting,
    words,
)

KILLED: Final = 128
"""Exit codes from here on mean that a signal ended the program; they are not its result."""


@dataclass(frozen=True, slots=True)
class SchedulerPod:
    name: str
    hash: str  # of the content that it runs
    leaving: bool  # whether it is being deleted
    ready: bool
    refused: str  # kube-scheduler's error if it refused flags or configuration
    crashing: str  # the crash-looping containers with their termination messages
    restarts: int  # the highest restart count of its containers
    ended: datetime | None  # when a container last ended
    waiting: str  # what it waits for before it can run; empty if it waits for nothing
    unready_since: datetime | None  # since when kube-scheduler runs without being Ready
    created: datetime | None


def read(obj: Object) -> SchedulerPod:
    statuses = containers(obj)
    preflight = named(init_containers(obj), names.PREFLIGHT)
    operand = named(statuses, names.OPERAND)
    running = state(operand, "running")
    return SchedulerPod(
        name=obj["metadata"]["name"],
        hash=label(obj, names.CONFIG_HASH_LABEL),
        leaving=is_being_deleted(obj),
        ready=is_ready(obj),
        refused=_refusal(preflight),
        crashing=crashing(obj),
        restarts=max((int(c.get("restartCount") or 0) for c in statuses), default=0),
        ended=max(
            filter(None, (timestamp(ended(c).get("finishedAt")) for c in statuses)), default=None
        ),
        waiting=waiting(obj, [preflight, *statuses]),
        unready_since=None if operand.get("ready") else timestamp(running.get("startedAt")),
        created=timestamp(obj["metadata"].get("creationTimestamp")),
    )


def _refusal(preflight: Mapping[str, Any]) -> str:
    """Return kube-scheduler's error if it refused the configuration; empty otherwise."""
    code = int(ended(preflight).get("exitCode") or 0)
    return words(preflight) if 0 < code < KILLED else ""
