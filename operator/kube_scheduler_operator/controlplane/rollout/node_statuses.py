"""Control-plane nodes and their entries in `KubeScheduler.status.nodeStatuses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ...base.objects import Object
from ...base.times import timestamp
from ...model.operand_pods import Operand
from ...model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Entry:
    """One element of `status.nodeStatuses`; zero and empty stand for "not set".

    The API guards these fields (rules in the CRD): a new element has neither revision, the
    current one only grows, and at most one element has a target.
    """

    node: str
    uid: str = ""
    current: int = 0
    target: int = 0
    failed_revision: int = 0
    failed_count: int = 0
    fallback_count: int = 0
    failed_time: str = ""
    failed_reason: str = ""
    failed_errors: tuple[str, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attempt(self) -> int:
        """How often the target has been tried and failed before."""
        return self.attempts(self.target)

    def attempts(self, revision: int) -> int:
        """How often `revision` has been tried and failed before."""
        if self.failed_revision != revision:
            return 0
        return self.failed_count + self.fallback_count

    def failed(self, revision: int, reason: str, error: str, time: str, *, fallback: bool) -> Entry:
        """The entry after an attempt to install `revision` failed."""
        again = self if self.failed_revision == revision else self.forgiven()
        return replace(
            again,
            failed_revision=revision,
            failed_count=again.failed_count + (0 if fallback else 1),
            fallback_count=again.fallback_count + (1 if fallback else 0),
            failed_time=time,
            failed_reason=reason,
            failed_errors=(error,),
        )

    def forgiven(self) -> Entry:
        """The entry without its record of failures."""
        return replace(
            self,
            failed_revision=0,
            failed_count=0,
            fallback_count=0,
            failed_time="",
            failed_reason="",
            failed_errors=(),
        )

    @property
    def failed_at(self) -> datetime | None:
        """When the last attempt failed."""
        return timestamp(self.failed_time)


_FIELDS = {
    "nodeUID": "uid",
    "currentRevision": "current",
    "targetRevision": "target",
    "lastFailedRevision": "failed_revision",
    "lastFailedCount": "failed_count",
    "lastFallbackCount": "fallback_count",
    "lastFailedTime": "failed_time",
    "lastFailedReason": "failed_reason",
    "lastFailedRevisionErrors": "failed_errors",
}


def read_entry(raw: Mapping[str, Any]) -> Entry:
    """An element of nodeStatuses as the API has it."""
    known: dict[str, Any] = {
        ours: raw[theirs] for theirs, ours in _FIELDS.items() if raw.get(theirs)
    }
    if "failed_errors" in known:
        known["failed_errors"] = tuple(known["failed_errors"])
    other = {key: value for key, value in raw.items() if key not in _FIELDS and key != "nodeName"}
    if raw.get("currentRevision") == 0:
        other["currentRevision"] = 0  # as OpenShift writes it; the API does not let it be unset
    return Entry(node=raw["nodeName"], other=other, **known)


def write_entry(entry: Entry) -> dict[str, Any]:
    """The element for the API. `currentRevision` once set must stay, the others may vanish."""
    raw: dict[str, Any] = {"nodeName": entry.node, **entry.other}
    for theirs, ours in _FIELDS.items():
        value = getattr(entry, ours)
        if value:
            raw[theirs] = list(value) if ours == "failed_errors" else value
    return raw


def readiness(node: Object) -> tuple[bool, str]:
    """Whether the kubelet reports the node Ready, and if not, since when and why."""
    name = node["metadata"]["name"]
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            if condition.get("status") == "True":
                return True, ""
            since = condition.get("lastTransitionTime", "")
            reason, message = condition.get("reason", ""), condition.get("message", "")
            return False, f'node "{name}" not ready since {since} because {reason} ({message})'
    return False, f'node "{name}" not ready, no Ready condition found in status block'


def not_ready_since(node: Object) -> datetime | None:
    """Since when the node is not Ready; None if it is, or nobody knows."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            return timestamp(condition.get("lastTransitionTime"))
    return None


def reconcile_entries(entries: Sequence[Entry], nodes: Mapping[str, Object]) -> tuple[Entry, ...]:
    """Entries for exactly the nodes that exist, known ones first in their order.

    A node that was replaced under the same name loses its entry here and gets a fresh one in the
    next pass: the API does not let a revision be unset, and the new machine has none.
    """
    uids = {name: str(node["metadata"].get("uid", "")) for name, node in nodes.items()}
    kept = [
        replace(entry, uid=entry.uid or uids[entry.node])
        for entry in entries
        if entry.node in uids and entry.uid in ("", uids[entry.node])
    ]
    known = {entry.node for entry in entries}
    added = [Entry(node=name, uid=uids[name]) for name in sorted(uids) if name not in known]
    return (*kept, *added)


def worth(
    snapshot: Snapshot, seen: Mapping[str, Operand], entry: Entry
) -> tuple[bool, bool, int, str]:
    """How much there is to lose on a node: the worst comes first, the Lease's holder last."""
    pod = seen.get(entry.node)
    holder = str(((snapshot.operand_lease or {}).get("spec") or {}).get("holderIdentity") or "")
    well = pod is not None and pod.ready
    return well, holder.startswith(f"{entry.node}_"), entry.current, entry.node
