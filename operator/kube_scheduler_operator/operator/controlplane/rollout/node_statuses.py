"""Control-plane nodes and their node statuses in `KubeScheduler.status.nodeStatuses`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from ....base.objects import Object
from ....base.revision_number import LARGEST, revision_number
from ....base.times import timestamp
from ...model.pod_status import condition, is_ready, message_of, reason_of


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One element of `status.nodeStatuses`; zero and empty mean "not set".

    Rules in the CRD guard these fields: a new element has neither revision, the current revision
    only grows, and at most one element has a target.
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

    def attempts(self, revision: int) -> int:
        """How many attempts to install `revision` have failed."""
        if self.failed_revision != revision:
            return 0
        return self.failed_count + self.fallback_count

    def failed(
        self, revision: int, reason: str, error: str, time: str, *, fallback: bool
    ) -> NodeStatus:
        before = self if self.failed_revision == revision else self.without_failures()
        return replace(
            before,
            failed_revision=revision,
            failed_count=before.failed_count + (0 if fallback else 1),
            fallback_count=before.fallback_count + (1 if fallback else 0),
            failed_time=time,
            failed_reason=reason,
            failed_errors=(error,),
        )

    def without_failures(self) -> NodeStatus:
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
    def failure(self) -> str:
        """The last failure as a sentence that names the node and the revision once; empty: none."""
        if not self.failed_revision:
            return ""
        why = "; ".join(self.failed_errors) or self.failed_reason or "no message"
        if f"revision {self.failed_revision} " in why:
            return on_node(self.node, why)
        return f'revision {self.failed_revision} failed on node "{self.node}": {why}'

    @property
    def failed_at(self) -> datetime | None:
        return timestamp(self.failed_time)


def on_node(node: str, message: str) -> str:
    """A message that names its node: most of a failed installer do already."""
    named = f'node "{node}"'
    return message if named in message else f"{named}: {message}"


NODE_UID: Final = "nodeUID"
_FIELDS = {
    NODE_UID: "uid",
    "currentRevision": "current",
    "targetRevision": "target",
    "lastFailedRevision": "failed_revision",
    "lastFailedCount": "failed_count",
    "lastFallbackCount": "fallback_count",
    "lastFailedTime": "failed_time",
    "lastFailedReason": "failed_reason",
    "lastFailedRevisionErrors": "failed_errors",
}


def read_node_status(raw: Mapping[str, Any]) -> NodeStatus:
    known: dict[str, Any] = {name: raw[key] for key, name in _FIELDS.items() if raw.get(key)}
    if "failed_errors" in known:
        known["failed_errors"] = tuple(known["failed_errors"])
    other = {key: value for key, value in raw.items() if key not in _FIELDS and key != "nodeName"}
    for key in ("target", "failed_revision"):
        if key in known and not revision_number(known[key]):
            known.pop(key)
    if raw.get("currentRevision") == 0:
        other["currentRevision"] = 0  # OpenShift writes it, and the API does not let it be unset
    return NodeStatus(node=raw["nodeName"], other=other, **known)


def reported_failures(
    statuses: Iterable[NodeStatus], degraded: Mapping[str, Any]
) -> tuple[NodeStatus, ...]:
    """The statuses whose last failure is in `degraded`, the condition NodeInstallerDegraded.

    A failure stays in the status of its node after the edit was reverted or replaced.
    """
    message = str(degraded.get("message") or "") if degraded.get("status") == "True" else ""
    return tuple(
        status
        for status in statuses
        if any(error and error in message for error in status.failed_errors)
    )


def write_node_status(status: NodeStatus) -> dict[str, Any]:
    """The element for the API. A set `currentRevision` must stay; other fields may be unset."""
    raw: dict[str, Any] = {"nodeName": status.node, **status.other}
    for key, name in _FIELDS.items():
        value = getattr(status, name)
        if value:
            raw[key] = list(value) if name == "failed_errors" else value
    return raw


def describe(statuses: tuple[NodeStatus, ...], latest: int) -> str:
    """How many nodes are at which revision, in the reference's words."""
    counts: dict[int, int] = {}
    for status in statuses:
        counts[status.current] = counts.get(status.current, 0) + 1
    parts = [
        f"1 node is at revision {revision}"
        if count == 1
        else f"{count} nodes are at revision {revision}"
        for revision, count in sorted(counts.items())
    ]
    if statuses and latest and latest not in counts:
        parts.append(f"0 nodes have achieved new revision {latest}")
    return "; ".join(parts)


def readiness(node: Object) -> tuple[bool, str]:
    """Whether the node is Ready; if not, since when and why, in the reference's words."""
    if is_ready(node):
        return True, ""
    what, ready = f'node "{node["metadata"]["name"]}" not ready', condition(node, "Ready")
    if not ready:
        return False, f"{what}, no Ready condition found in status block"
    since = ready.get("lastTransitionTime", "")
    return False, f"{what} since {since} because {reason_of(ready)} ({message_of(ready)})"


def is_cordoned(node: Object) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def not_ready_since(node: Object) -> datetime | None:
    """Since when the node is not Ready; None if it is Ready or the time is unknown."""
    return None if is_ready(node) else timestamp(condition(node, "Ready").get("lastTransitionTime"))


def match_nodes(
    statuses: Sequence[NodeStatus], nodes: Mapping[str, Object]
) -> tuple[NodeStatus, ...]:
    """Statuses for exactly the nodes that exist, known ones first and in their order.

    The API does not let a revision be unset, and a machine that replaces another one under the same
    name has none. So a replaced node loses its status here and gets a new one in the next
    reconcile, and so does a node whose current revision is not plausible.
    """
    uids = {name: str(node["metadata"].get("uid", "")) for name, node in nodes.items()}
    matching = [
        replace(status, uid=status.uid or uids[status.node])
        for status in statuses
        if status.node in uids
        and status.uid in ("", uids[status.node])
        and status.current <= LARGEST
    ]
    known = {status.node for status in statuses}
    added = [NodeStatus(node=name, uid=uids[name]) for name in sorted(uids) if name not in known]
    return (*matching, *added)
