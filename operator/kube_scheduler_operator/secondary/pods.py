"""Reading the pods of a further scheduler: is it well, what does it wait for, what did it say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ..base import names
from ..base.objects import Object, label
from ..base.times import timestamp
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
"""Exit codes from here on say that somebody ended the program, and nothing about its verdict."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a further scheduler.

    Attributes:
        name: its name.
        hash: the content that it runs.
        leaving: it is being deleted.
        ready: its Ready condition.
        refused: kube-scheduler's own words if it refused flags or configuration.
        crashing: container and last words, if one starts again and again.
        restarts: of the container that did so most often.
        ended: when a container last ended.
        waiting: what it waits for before it can run; empty if it does not.
        unready_since: since when kube-scheduler runs without being Ready.
        created: when it was made.
    """

    name: str
    hash: str
    leaving: bool
    ready: bool
    refused: str
    crashing: str
    restarts: int
    ended: datetime | None
    waiting: str
    unready_since: datetime | None
    created: datetime | None


def read(obj: Object) -> Pod:
    """Read a pod."""
    found = containers(obj)
    preflight = named(init_containers(obj), names.PREFLIGHT)
    operand = named(found, names.OPERAND)
    running = state(operand, "running")
    return Pod(
        name=obj["metadata"]["name"],
        hash=label(obj, names.CONFIG_HASH_LABEL),
        leaving="deletionTimestamp" in obj["metadata"],
        ready=is_ready(obj),
        refused=_verdict(preflight),
        crashing=crashing(obj),
        restarts=max((int(c.get("restartCount") or 0) for c in found), default=0),
        ended=_latest(timestamp(ended(c).get("finishedAt")) for c in found),
        waiting=waiting(obj, [preflight, *found]),
        unready_since=None if operand.get("ready") else timestamp(running.get("startedAt")),
        created=timestamp(obj["metadata"].get("creationTimestamp")),
    )


def _verdict(preflight: Mapping[str, Any]) -> str:
    """What kube-scheduler said when it refused; empty if it did not."""
    code = int(ended(preflight).get("exitCode") or 0)
    return words(preflight) if 0 < code < KILLED else ""


def _latest(times: Iterator[datetime | None]) -> datetime | None:
    return max((time for time in times if time is not None), default=None)
