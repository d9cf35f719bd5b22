"""The scheduler's own pods: which revision runs on which node, and whether it is healthy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...base import names
from ...base.objects import Object, annotation, label
from ...base.revision_number import revision_number
from ...base.times import timestamp
from .pod_status import condition, is_ready, message_of, named, reason_of, state, words
from .pod_status import ended as last_end


@dataclass(frozen=True, slots=True)
class OperandPod:
    node: str
    name: str
    # from its label, a hint only (rollout/disk_reports.py); 0 for a scheduler that is not the
    # operator's, e.g. the platform's
    revision: int
    content_hash: str  # from its annotation
    kubeconfig: str  # fingerprint of the kubeconfig that it started with, from its annotation
    kubeconfig_expires: datetime | None  # expiry of the certificate in it; None if unknown
    ready: bool
    restarts: int
    crash_looping: bool  # whether the kubelet backs off before the next restart
    trouble: str  # the problem in the container status, in the reference's words; may be empty
    termination_message: str  # of the last run
    last_error: str  # why the last run ended, as one sentence; empty if no run has ended
    ended: datetime | None  # end of the last run (whole seconds); None if no run has ended
    created: datetime | None  # creation of the mirror pod
    started: datetime | None  # start of the current run (whole seconds); None if it does not run
    ready_since: datetime | None  # whole seconds; None if it is not Ready or this is unknown
    image: str  # in the spec
    arguments: tuple[str, ...]  # command and arguments
    probe: Mapping[str, Any]  # `httpGet` of its readiness probe; empty if it has none

    @property
    def ours(self) -> bool:
        return self.revision > 0


def read(pod: Object) -> OperandPod:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    container = named(spec.get("containers") or (), names.OPERAND)
    # The kubelet sorts statuses by name, so they must be found by name, not by position.
    operand = named(status.get("containerStatuses") or (), names.OPERAND)
    ended, name = last_end(operand), pod["metadata"]["name"]
    ready = condition(pod, "Ready") if is_ready(pod) else {}
    return OperandPod(
        node=spec.get("nodeName", ""),
        name=name,
        revision=revision_number(label(pod, names.REVISION_LABEL)),
        content_hash=annotation(pod, names.CONTENT_HASH_ANNOTATION),
        kubeconfig=annotation(pod, names.KUBECONFIG_ANNOTATION),
        kubeconfig_expires=timestamp(annotation(pod, names.KUBECONFIG_EXPIRES_ANNOTATION)),
        ready=bool(ready),
        restarts=int(operand.get("restartCount") or 0),
        crash_looping=state(operand, "waiting").get("reason") == "CrashLoopBackOff",
        trouble=_trouble(name, operand),
        termination_message=str(ended.get("message") or "").strip(),
        last_error=words(operand) if ended else "",
        ended=timestamp(ended.get("finishedAt")),
        created=created(pod),
        started=timestamp(state(operand, "running").get("startedAt")),
        ready_since=timestamp(ready.get("lastTransitionTime")),
        image=str(container.get("image", "")),
        arguments=(*container.get("command", ()), *container.get("args", ())),
        probe=(container.get("readinessProbe") or {}).get("httpGet") or {},
    )


def created(obj: Object) -> datetime | None:
    return timestamp((obj.get("metadata") or {}).get("creationTimestamp"))


def _trouble(pod: str, operand: Mapping[str, Any]) -> str:
    waiting, terminated = state(operand, "waiting"), state(operand, "terminated")
    who = f'pod/{pod} container "{names.OPERAND}"'
    if waiting and waiting.get("reason") not in ("PodInitializing", "ContainerCreating"):
        return f"{who} is waiting: {reason_of(waiting)}: {message_of(waiting)}"
    if terminated and terminated.get("exitCode"):
        return f"{who} is terminated: {reason_of(terminated)}: {words(operand)}"
    return ""
