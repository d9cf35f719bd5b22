"""Nodes that run something else than they were brought to: somebody changed their manifest.

`kubeadm upgrade` does it, and people do. Managed means that the node's revision is put back; the
installer keeps what it finds there, so that it can come back when the operator leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import names
from ..snapshot import timestamp

if TYPE_CHECKING:
    from datetime import datetime

    from ..snapshot import Snapshot
    from .nodes import Entry
    from .operand import Operand
    from .stepped import Stepped


def is_astray(entry: Entry | None, pod: Operand) -> bool:
    """Whether a node runs what nobody asked for (the mirror pod of a failed try may lag behind)."""
    if entry is None or not entry.current:
        return False
    return pod.revision not in (entry.current, entry.failed_revision or entry.current)


def astray(snapshot: Snapshot, out: Stepped) -> frozenset[str]:
    """Nodes whose revision is to be put back; a moment of tolerance, for mirror pods lag behind."""
    found = set()
    for entry in out.entries:
        pod = out.operands.get(entry.node)
        if entry.node in out.not_ready or entry.target or not entry.current:
            continue
        if pod is None:
            since = _missing_since(snapshot)
        elif is_astray(entry, pod):
            since = pod.created
        else:
            continue
        if since is None:
            continue
        left = snapshot.settings.rollout.drift_tolerance - (snapshot.now - since).total_seconds()
        if left > 0:
            out.wake(left)
        else:
            found.add(entry.node)
    return frozenset(found)


def _missing_since(snapshot: Snapshot) -> datetime | None:
    """Since when a scheduler pod is known to be missing; the API itself has no time for that."""
    for condition in snapshot.status.get("conditions") or ():
        if condition["type"] == names.STATIC_PODS_DEGRADED and condition["status"] == "True":
            return timestamp(condition.get("lastTransitionTime"))
    return None
