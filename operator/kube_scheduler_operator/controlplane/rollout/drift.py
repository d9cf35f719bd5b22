"""Nodes whose revision has to be installed again, though it is the one they were brought to.

Somebody changed their manifest: `kubeadm upgrade` does it, and people do. Managed means that the
node's revision is put back; the installer keeps what it finds there, so that it can come back when
the operator leaves. Or their kubeconfig changed, which a scheduler reads only when it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base import names
from ...base.times import timestamp
from .guards import changed_kubeconfig

if TYPE_CHECKING:
    from datetime import datetime

    from ...model.operand_pods import Operand
    from ...model.snapshot import Snapshot
    from .node_statuses import Entry
    from .result import Stepped


def is_astray(entry: Entry | None, pod: Operand) -> bool:
    """Whether a node runs what nobody asked for (the mirror pod of a failed try may lag behind)."""
    if entry is None or not entry.current:
        return False
    return pod.revision not in (entry.current, entry.failed_revision or entry.current)


def astray(snapshot: Snapshot, out: Stepped) -> dict[str, str]:
    """Nodes whose revision is to be installed again, and why.

    A strange manifest is given a moment, for mirror pods lag behind.
    """
    found = {}
    for entry in out.entries:
        pod = out.operands.get(entry.node)
        if entry.node in out.not_ready or entry.target or not entry.current:
            continue
        if pod is None:
            since = _missing_since(snapshot)
        elif is_astray(entry, pod):
            since = pod.created
        else:
            if changed_kubeconfig(snapshot, pod):
                path = snapshot.platform.scheduler_kubeconfig
                found[entry.node] = f"{path} has changed: starting the scheduler again"
            continue
        if since is None:
            continue
        left = snapshot.settings.rollout.drift_tolerance - (snapshot.now - since).total_seconds()
        if left > 0:
            out.wake(left)
        else:
            found[entry.node] = f"it does not run revision {entry.current}: putting it back"
    return found


def _missing_since(snapshot: Snapshot) -> datetime | None:
    """Since when a scheduler pod is known to be missing; the API itself has no time for that."""
    for condition in snapshot.status.get("conditions") or ():
        if condition["type"] == names.STATIC_PODS_DEGRADED and condition["status"] == "True":
            return timestamp(condition.get("lastTransitionTime"))
    return None
