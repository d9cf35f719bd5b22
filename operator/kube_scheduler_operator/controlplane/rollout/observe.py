"""What a snapshot shows of the schedulers and of the pods that change them, before any decision."""

from __future__ import annotations

from ...base.times import timestamp
from ...kube.resource import PODS
from ...model import operand_pods as operands
from ...model.plan import Delete
from ...model.snapshot import Snapshot
from . import installer_pods as installers
from .installer_pods import Installer
from .node_statuses import readiness
from .result import Stepped


def look(snapshot: Snapshot) -> Stepped:
    """Read every pod and node; pods that speak of machines that have gone are to be deleted."""
    out = Stepped()
    out.operands = {node: operands.read(pod) for node, pod in snapshot.operand_pods.items()}
    found = tuple(installers.read(pod) for pod in snapshot.installer_pods.values())
    strangers = tuple(pod for pod in found if _of_predecessor(snapshot, pod))
    out.installers = tuple(pod for pod in found if pod not in strangers)
    out.afterwards.extend(Delete(PODS, pod.pod) for pod in strangers if not pod.leaving)
    for name, node in snapshot.nodes.items():
        ready, why = readiness(node)
        if not ready:
            out.not_ready[name] = why
    return out


def _of_predecessor(snapshot: Snapshot, found: Installer) -> bool:
    """Whether the pod speaks of a machine that has gone and whose name another one has now."""
    node = snapshot.nodes.get(found.node)
    born = timestamp(node["metadata"].get("creationTimestamp")) if node is not None else None
    return born is not None and found.created is not None and found.created < born
