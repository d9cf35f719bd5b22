"""Nodes whose revision must be installed again although they have already reached it.

Their manifest was changed, for example by `kubeadm init phase control-plane scheduler`: the
installer restores the revision, and keeps the manifest that it finds for the removal of the
operator. Or a file of the revision was edited, or their kubeconfig changed, which a scheduler reads
only when it starts. Upgrades by kubeadm are not drift (kubeadm_upgrades.py).

The content on its disk shows what a node runs (disk_reports.py). The label of a mirror pod is only
a reason to look: an installer of the same revision does, and restarts nothing if nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ....base import names
from ....base.times import seconds_left, timestamp
from ...model.snapshot import Snapshot
from .deviations import hand_edits, has_drifted, keeps_hand_edits
from .guards import changed_kubeconfig
from .observe import Situation
from .rollout_result import RolloutResult


def find_drift(
    situation: Situation, result: RolloutResult
) -> tuple[RolloutResult, Mapping[str, str]]:
    """Node -> why its revision is installed again; drift is tolerated for a moment.

    Mirror pods lag behind what a node runs.
    """
    snapshot, observation = situation.snapshot, situation.observation
    drifted = {}
    for status in result.node_statuses:
        pod, disk = observation.operands.get(status.node), observation.disks.get(status.node)
        if status.node in observation.not_ready or status.target or not status.current:
            continue
        if result.is_kubeadms(status.node):
            continue
        edits = hand_edits(status, disk)
        if edits and disk is not None and not keeps_hand_edits(snapshot, status, disk):
            # The guard has read the files twice.
            changed = f"{', '.join(edits)} changed: putting revision {status.current} back"
            drifted[status.node] = changed
            continue
        if pod is None:
            since = _missing_since(snapshot)
        elif has_drifted(status, pod, disk):
            since = pod.created
        else:
            if changed_kubeconfig(disk, pod):
                path = snapshot.platform.scheduler_kubeconfig
                drifted[status.node] = f"{path} changed: restarting the scheduler"
            continue
        if since is None:
            continue
        left = seconds_left(snapshot.now, since, snapshot.settings.rollout.drift_tolerance)
        if left:
            result = result.with_requeue(left)
        else:
            drifted[status.node] = f"does not run revision {status.current}: putting it back"
    return result, drifted


def _missing_since(snapshot: Snapshot) -> datetime | None:
    """Since when a scheduler pod is known to be missing; the API itself has no time for that."""
    for condition in snapshot.status.get("conditions") or ():
        if condition["type"] == names.STATIC_PODS_DEGRADED and condition["status"] == "True":
            return timestamp(condition.get("lastTransitionTime"))
    return None
