"""What a snapshot shows of schedulers, installer pods and nodes: the input of the rollout step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...base.times import timestamp
from ...kube.resource import PODS
from ...model import operand_pods as operands
from ...model.node_disks import Disks
from ...model.operand_pods import OperandPod
from ...model.plan import Action, Delete
from ...model.snapshot import Snapshot
from ..node_pods import installer_pod_name, restore_pod_name
from ..revision.history import status_name
from . import installer_pods as installers
from .disk_reports import read_disks
from .installer_pods import Installer, Stage
from .node_statuses import readiness


@dataclass(frozen=True, slots=True)
class Observation:
    """The pods and nodes of one snapshot."""

    operands: Mapping[str, OperandPod] = field(default_factory=dict)  # node -> its scheduler pod
    installers: tuple[Installer, ...] = ()  # installer and restore pods of the existing machines
    # node that is not Ready -> since when and why, in the reference's words
    not_ready: Mapping[str, str] = field(default_factory=dict)
    # deletions of installer pods of machines that were replaced under the same name
    cleanup: tuple[Action, ...] = ()
    # node -> what programs on it have read from its disk
    disks: Disks = field(default_factory=dict)

    @property
    def swapping(self) -> frozenset[int]:
        """The revisions that are replacing a node's scheduler."""
        return frozenset(pod.revision for pod in self.installers if pod.swapping)

    def installer(self, name: str) -> Installer | None:
        """The installer pod of that name, unless it is being deleted."""
        return next((i for i in self.installers if i.name == name and not i.deleting), None)


def observe(snapshot: Snapshot) -> Observation:
    """Read all pods and nodes."""
    found = tuple(
        _without_foreign_result(snapshot, installers.read(pod))
        for pod in snapshot.installer_pods.values()
    )
    stale = tuple(pod for pod in found if _is_stale(snapshot, pod))
    states = {name: readiness(node) for name, node in snapshot.nodes.items()}
    current = tuple(pod for pod in found if pod not in stale)
    return Observation(
        operands={node: operands.read(pod) for node, pod in snapshot.operand_pods.items()},
        installers=current,
        not_ready={name: why for name, (ready, why) in states.items() if not ready},
        cleanup=tuple(
            Delete(PODS, pod.pod) for pod in stale if pod.has_own_name and not pod.deleting
        ),
        disks=read_disks(snapshot, current),
    )


def _without_foreign_result(snapshot: Snapshot, found: Installer) -> Installer:
    """The pod without its result, unless the operator created it for this revision and node.

    Its name, its owner (the revision that exists now) and the node, number and attempt in its
    result must agree. A pod that may be replacing a scheduler counts as such in any case.
    """
    result = found.result
    if result is None:
        return found
    same = (result.node, result.revision) == (found.node, found.revision)
    if found.revision:
        status = snapshot.config_maps.get(status_name(found.revision))
        owners = found.pod["metadata"].get("ownerReferences") or ()
        owned = status is not None and any(
            owner.get("uid") == status["metadata"].get("uid") for owner in owners
        )
        name = installer_pod_name(found.node, found.revision, result.retry)
    else:
        owned, name = True, restore_pod_name(found.node, result.retry)
    if same and owned and found.name == name:
        return found
    message = f"the result of pod/{found.name} does not count: the operator did not create this pod"
    return replace(
        found, stage=Stage.LOST, result=None, ended_at=None, message=f"{message} for its revision"
    )


def _is_stale(snapshot: Snapshot, found: Installer) -> bool:
    """Whether the pod is older than its node: it ran on an earlier machine of the same name."""
    node = snapshot.nodes.get(found.node)
    born = timestamp(node["metadata"].get("creationTimestamp")) if node is not None else None
    return born is not None and found.created is not None and found.created < born
