"""Reading the scheduler's own pods: which revision runs where, and is it well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..base import names
from ..base.objects import Object, annotation, label
from ..base.times import timestamp


@dataclass(frozen=True, slots=True)
class Operand:
    """A scheduler pod as its mirror pod shows it.

    Attributes:
        node: where it runs.
        name: of the mirror pod.
        revision: from its label; 0 for a scheduler that is not ours (the platform's own).
        content_hash: from its annotation.
        kubeconfig: fingerprint of the kubeconfig that it was started with, from its annotation.
        kubeconfig_expires: when the certificate in that expires, likewise; None if nobody knows.
        ready: its Ready condition.
        restarts: of the scheduler container.
        crash_looping: the kubelet waits before it starts the container again.
        trouble: what the container status says is wrong, in the reference's words; may be empty.
        last_words: what the scheduler said when it last ended.
        ended: when it last ended (whole seconds); None if it never did.
        created: when the API first showed it.
        started: when its container last started (whole seconds), if it runs.
        ready_since: when it became Ready (whole seconds); None if it is not, or nobody knows.
        image: the image that it was given.
        arguments: command and arguments.
        probe: `httpGet` of its readiness probe; empty if it has none.
    """

    node: str
    name: str
    revision: int
    content_hash: str
    kubeconfig: str
    kubeconfig_expires: datetime | None
    ready: bool
    restarts: int
    crash_looping: bool
    trouble: str
    last_words: str
    ended: datetime | None
    created: datetime | None
    started: datetime | None
    ready_since: datetime | None
    image: str
    arguments: tuple[str, ...]
    probe: Mapping[str, Any]

    @property
    def ours(self) -> bool:
        """Whether one of our revisions made it."""
        return self.revision > 0


def read(pod: Object) -> Operand:
    """Read a mirror pod."""
    spec = pod.get("spec") or {}
    status = pod.get("status") or {}
    container = _named(spec.get("containers"), names.OPERAND)
    # The kubelet sorts statuses by name, so they must be found by name, not by position.
    seen = _named(status.get("containerStatuses"), names.OPERAND)
    waiting: Mapping[str, Any] = (seen.get("state") or {}).get("waiting") or {}
    terminated: Mapping[str, Any] = (seen.get("state") or {}).get("terminated") or {}
    last: Mapping[str, Any] = (seen.get("lastState") or {}).get("terminated") or {}
    ended = terminated or last
    ready = next(
        (
            condition
            for condition in status.get("conditions") or ()
            if condition.get("type") == "Ready" and condition.get("status") == "True"
        ),
        None,
    )
    name = pod["metadata"]["name"]
    digits = label(pod, names.REVISION_LABEL)
    return Operand(
        node=spec.get("nodeName", ""),
        name=name,
        revision=int(digits) if digits.isdecimal() else 0,
        content_hash=annotation(pod, names.CONTENT_HASH_ANNOTATION),
        kubeconfig=annotation(pod, names.KUBECONFIG_ANNOTATION),
        kubeconfig_expires=timestamp(annotation(pod, names.KUBECONFIG_EXPIRES_ANNOTATION)),
        ready=ready is not None,
        restarts=int(seen.get("restartCount") or 0),
        crash_looping=waiting.get("reason") == "CrashLoopBackOff",
        trouble=_trouble(name, waiting, terminated),
        last_words=str(ended.get("message") or "").strip(),
        ended=timestamp(ended.get("finishedAt")),
        created=timestamp(pod["metadata"].get("creationTimestamp")),
        started=timestamp(((seen.get("state") or {}).get("running") or {}).get("startedAt")),
        ready_since=timestamp((ready or {}).get("lastTransitionTime")),
        image=str(container.get("image", "")),
        arguments=(*container.get("command", ()), *container.get("args", ())),
        probe=(container.get("readinessProbe") or {}).get("httpGet") or {},
    )


def _trouble(pod: str, waiting: Mapping[str, Any], terminated: Mapping[str, Any]) -> str:
    who = f'pod/{pod} container "{names.OPERAND}"'
    if waiting and waiting.get("reason") not in ("PodInitializing", "ContainerCreating"):
        return f"{who} is waiting: {waiting.get('reason', '')}: {waiting.get('message', '')}"
    if terminated and terminated.get("exitCode"):
        reason, message = terminated.get("reason", ""), terminated.get("message", "")
        return f"{who} is terminated: {reason}: {str(message).strip()}"
    return ""


def _named(items: Any, name: str) -> Mapping[str, Any]:
    return next((item for item in items or () if item.get("name") == name), {})
