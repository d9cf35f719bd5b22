"""Reading the pods of a further scheduler: is it well, what does it wait for, what did it say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from .. import names
from ..node.lastwords import extract
from ..snapshot import Object, label, timestamp

KILLED: Final = 128
"""Exit codes from here on say that somebody ended the program, and nothing about its verdict."""

_PULL: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_STARTING: Final = ("PodInitializing", "ContainerCreating", "CrashLoopBackOff")


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
    status = obj.get("status") or {}
    containers = list(status.get("containerStatuses") or ())
    preflight = _named(status.get("initContainerStatuses") or (), names.PREFLIGHT)
    operand = _named(containers, names.OPERAND)
    conditions = {c.get("type"): c for c in status.get("conditions") or ()}
    looping = [c for c in containers if _waits(c).get("reason") == "CrashLoopBackOff"]
    running = _state(operand, "running")
    return Pod(
        name=obj["metadata"]["name"],
        hash=label(obj, names.CONFIG_HASH_LABEL),
        leaving="deletionTimestamp" in obj["metadata"],
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        refused=_verdict(preflight),
        crashing="; ".join(f'container "{c["name"]}": {_words(c)}' for c in looping),
        restarts=max((int(c.get("restartCount") or 0) for c in containers), default=0),
        ended=_latest(timestamp(_ended(c).get("finishedAt")) for c in containers),
        waiting=_waiting(obj, conditions, [preflight, *containers]),
        unready_since=None if operand.get("ready") else timestamp(running.get("startedAt")),
        created=timestamp(obj["metadata"].get("creationTimestamp")),
    )


def _verdict(preflight: Mapping[str, Any]) -> str:
    """What kube-scheduler said when it refused; empty if it did not."""
    ended = _ended(preflight)
    code = int(ended.get("exitCode") or 0)
    return _words(preflight) if 0 < code < KILLED else ""


def _words(container: Mapping[str, Any]) -> str:
    """The last words of a container, in one sentence."""
    ended = _ended(container)
    text = str(ended.get("message") or "").strip()
    return extract(_as_log(text)) or f"it ended with exit code {ended.get('exitCode', 'unknown')}"


def _as_log(text: str) -> str:
    """A termination message in the form of a container's log."""
    return "\n".join(f"- stderr F {line}" for line in text.splitlines())


def _waiting(
    obj: Object, conditions: Mapping[Any, Mapping[str, Any]], containers: list[Mapping[str, Any]]
) -> str:
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return f"it is not scheduled: {scheduled.get('message') or scheduled.get('reason', '')}"
    for container in containers:
        state = _waits(container)
        reason = state.get("reason")
        if reason in _PULL:
            # The kubelet alternates between two reasons and as many messages.
            image = _image(obj, container)
            return f'image "{image}" cannot be pulled; check its name and imagePullSecrets'
        if reason and reason not in _STARTING:
            return f'container "{container["name"]}": {reason}: {state.get("message", "")}'
    return ""


def _image(obj: Object, container: Mapping[str, Any]) -> str:
    spec = obj.get("spec") or {}
    listed = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return str(_named(listed, str(container.get("name"))).get("image", ""))


def _named(items: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((item for item in items if item.get("name") == name), {})


def _state(container: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return (container.get("state") or {}).get(kind) or {}


def _waits(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return _state(container, "waiting")


def _ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """How it last ended."""
    last: Mapping[str, Any] = (container.get("lastState") or {}).get("terminated") or {}
    return _state(container, "terminated") or last


def _latest(times: Iterator[datetime | None]) -> datetime | None:
    return max((time for time in times if time is not None), default=None)
