"""The scheduler's own pods and the disks of their nodes: what runs where, and how healthy it is.

Labels, annotations and names of Pods are hints. A revision number counts when a program on the node
has read it from the disk: in the termination message of its guard or of an installer.

Other clients can write labels and annotations of a mirror Pod, which then are not settings of the
scheduler. `managedFields` shows which ones the kubelet wrote when it created the Pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from ...base import names
from ...base.objects import Object, annotation, label, mapping
from ...base.platform import Platform
from ...base.revision_number import revision_number
from ...base.times import timestamp
from ...kube.store import MIRROR_ANNOTATION
from ...node.protocol.disk_report import DiskReport
from .pod_status import condition, is_ready, message_of, named, reason_of, state, words
from .pod_status import ended as last_end

Pod = TypeVar("Pod", bound=Object)

_SYNCER: Final = "kube-scheduler-cert-syncer"
"""A container in the Pods of OpenShift's own operator, which have the same names and label."""

_METADATA: Final = ("annotations", "labels")


@dataclass(frozen=True, slots=True)
class OperandPod:
    node: str
    name: str
    # from its label, a hint only (rollout/observe.py); 0 for a scheduler that is not the
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


def schedulers_by_node(pods: Iterable[Pod], platform: Platform) -> Iterator[tuple[str, Pod]]:
    """(node, Pod) of the listed Pods that are named as the mirror Pod of a node's scheduler."""
    for pod in pods:
        node = str((pod.get("spec") or {}).get("nodeName") or "")
        if node and pod["metadata"]["name"] == platform.mirror_pod_name(node):
            yield node, pod


def read(pod: Object) -> OperandPod:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    container = named(spec.get("containers") or (), names.OPERAND)
    # The kubelet sorts statuses by name, so they must be found by name, not by position.
    operand = named(status.get("containerStatuses") or (), names.OPERAND)
    ended, name = last_end(operand), pod["metadata"]["name"]
    ready = condition(pod, "Ready") if is_ready(pod) else {}
    foreign = bool(named(spec.get("containers") or (), _SYNCER))
    return OperandPod(
        node=spec.get("nodeName", ""),
        name=name,
        revision=0 if foreign else revision_number(label(pod, names.REVISION_LABEL)),
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


# --- the metadata of a manifest, without what other clients wrote on its mirror Pod --------------


def of_manifest(pod: Object) -> Object:
    """The Pod with the labels and annotations of its manifest, and without managedFields.

    If managedFields are missing, all labels and annotations count as the manifest's.
    """
    metadata = mapping(pod.get("metadata"))
    foreign = frozenset(foreign_metadata(pod))
    kept = {
        group: {key: value for key, value in pairs.items() if f"{group}.{key}" not in foreign}
        for group in _METADATA
        if isinstance(pairs := metadata.get(group), Mapping)
    }
    others = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**pod, "metadata": {**others, **kept}}


def foreign_by_node(pods: Mapping[str, Object]) -> dict[str, tuple[str, ...]]:
    """Node -> `foreign_metadata` of its mirror Pod, for those that have any."""
    foreign = {node: tuple(foreign_metadata(pod)) for node, pod in pods.items()}
    return {node: keys for node, keys in foreign.items() if keys}


def foreign_metadata(pod: Object) -> Iterator[str]:
    """The labels and annotations that other clients wrote: `labels.KEY`, `annotations.KEY`.

    Without the operator's own on its Pods, even if another client changed their value.
    """
    metadata = mapping(pod.get("metadata"))
    kubelets = _kubelets_fields(metadata.get("managedFields"))
    if kubelets is None:
        return
    written = {group: mapping(kubelets.get(f"f:{group}")) for group in _METADATA}
    ours = any(key.startswith(f"f:{names.PREFIX}/") for key in written["annotations"])
    for group in _METADATA:
        for key in sorted(map(str, mapping(metadata.get(group)))):
            if f"f:{key}" in written[group]:
                continue
            if not (ours and (key == names.REVISION_LABEL or key.startswith(f"{names.PREFIX}/"))):
                yield f"{group}.{key}"


def _kubelets_fields(managed: Any) -> Mapping[str, Any] | None:
    """The metadata that the creator of the mirror Pod wrote; None if unknown."""
    for entry in managed if isinstance(managed, list | tuple) else ():
        fields = mapping(mapping(mapping(entry).get("fieldsV1")).get("f:metadata"))
        if f"f:{MIRROR_ANNOTATION}" in mapping(fields.get("f:annotations")):
            return fields
    return None


# --- the disk of a node ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeDisk(DiskReport):
    """The report of a guard, or what an installer's result shows of it."""

    taken: int = 0  # the revision that the node has with other content than the API; 0: none
    by_guard: bool = False  # whether the node's guard read it; otherwise an installer did
    reported: bool = False  # whether the guard ended to report it
    begun: datetime | None = None  # creation of the Pod that read it; None if unknown

    def is_current(self, pod: OperandPod) -> bool:
        """Whether it was read after the kubelet had the manifest of the scheduler `pod`.

        Creation times are the API server's; the start of a container is by the node's clock.
        """
        return self.begun is not None and pod.created is not None and self.begun >= pod.created


Disks = Mapping[str, NodeDisk]
"""Node -> the newest knowledge of its disk."""
