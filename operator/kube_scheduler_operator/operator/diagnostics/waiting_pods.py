"""Pods without a node, counted by why they wait, from what the API server shows of them.

It needs no metrics of a scheduler, so it also works where the provider runs the scheduler. A
scheduler that fails to place a Pod writes the Pod's condition PodScheduled. Without it, no
scheduler has attempted the Pod, unless a plugin held it before the queue: the Pod waits for its
PodGroup or its ResourceClaims, which kube-scheduler writes nowhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ...base.times import timestamp
from ...kube.protobuf import Message, begin_of_text, date, part, parts, present, text

GATED: Final = "gated"
UNSCHEDULABLE: Final = "unschedulable"
NOT_ATTEMPTED: Final = "not_attempted"
UNKNOWN: Final = "unknown"
CAUSES: Final = (GATED, NOT_ATTEMPTED, UNKNOWN, UNSCHEDULABLE)
"""Values of the label `cause`; UNKNOWN: not attempted, or held before the queue."""

MOST_READ: Final = 10_000
"""Pods that one poll reads; the next one continues, and the counts change with the last one."""

PAGE: Final = 500
"""Pods in one response at most."""

FIELD_SELECTOR: Final = "spec.nodeName=,status.phase=Pending"

_LONGEST: Final = 253 + 1  # bytes; no scheduler serves a longer name
_SPEC: Final = Message(
    begin_of_text(19, "schedulerName", _LONGEST),
    present(38, "schedulingGates"),
    present(39, "resourceClaims"),
    present(42, "workloadRef"),  # of Kubernetes 1.35
    present(43, "schedulingGroup"),  # since 1.36
)
FIELDS: Final = Message(
    part(1, "metadata", Message(date(8, "creationTimestamp"), present(9, "deletionTimestamp"))),
    part(2, "spec", _SPEC),
    part(3, "status", Message(parts(2, "conditions", Message(text(1, "type"))))),
)
"""The fields of a Pod that `cause` and `Tally` read."""

_HOLDING: Final = ("resourceClaims", "workloadRef", "schedulingGroup")

Key = tuple[str, ...]
"""Cause, and the schedulerName if a scheduler serves it, else ""."""


def cause(pod: Mapping[str, Any]) -> str:
    """Return why a Pod without a node waits."""
    spec = pod.get("spec") or {}
    if spec.get("schedulingGates"):
        return GATED
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(condition.get("type") == "PodScheduled" for condition in conditions):
        return UNSCHEDULABLE
    return UNKNOWN if any(spec.get(field) for field in _HOLDING) else NOT_ATTEMPTED


class Tally:
    """Counts the Pods of a list while they arrive, and keeps none of them."""

    def __init__(self, served: Collection[str]) -> None:
        self._served = served
        self.pods: dict[Key, float] = {(why, name): 0 for why in CAUSES for name in (*served, "")}
        self.oldest: dict[Key, float] = {}  # creation in seconds since 1970

    @property
    def samples(self) -> dict[str, dict[Key, float]]:
        """The metrics, by their keys in GAUGES of telemetry."""
        return {"waiting_pods": self.pods, "waiting_pods_oldest_timestamp_seconds": self.oldest}

    def __call__(self, pod: Mapping[str, Any]) -> bool:
        """Count a listed Pod; False, because the reader of the list need not keep it."""
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata:
            return False
        name = str((pod.get("spec") or {}).get("schedulerName") or "default-scheduler")
        key = cause(pod), name if name in self._served else ""
        self.pods[key] += 1
        if created := timestamp(metadata.get("creationTimestamp")):
            seconds = created.timestamp()
            self.oldest[key] = min(seconds, self.oldest.get(key, seconds))
        return False
