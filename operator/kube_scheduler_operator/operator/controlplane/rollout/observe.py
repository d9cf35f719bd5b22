"""What a snapshot shows of schedulers, installer pods and nodes: the input of the rollout step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ....base.times import timestamp
from ....kube.resource import PODS
from ...model import operand_pods as operands
from ...model.node_disks import Disks
from ...model.operand_pods import OperandPod
from ...model.plan import Action, Delete
from ...model.snapshot import Snapshot
from ..node_pods import installer_pod_name, restore_pod_name
from ..revision.history import status_name
from ..revision.revise import RevisionResult
from . import installer_pods as installers
from .disk_reports import read_disks
from .installer_pods import Installer, Stage
from .node_statuses import NodeStatus, readiness


@dataclass(frozen=True, slots=True)
class Observation:
    operands: Mapping[str, OperandPod] = field(default_factory=dict)  # node -> its scheduler pod
    installers: tuple[Installer, ...] = ()  # installer and restore pods of the existing machines
    # node that is not Ready -> since when and why, in the reference's words
    not_ready: Mapping[str, str] = field(default_factory=dict)
    # deletions of installer pods of machines that were replaced under the same name
    cleanup: tuple[Action, ...] = ()
    disks: Disks = field(default_factory=dict)

    @property
    def swapping(self) -> frozenset[int]:
        return frozenset(pod.revision for pod in self.installers if pod.swapping)

    def installer(self, name: str) -> Installer | None:
        """The installer pod of that name, unless it is being deleted."""
        pods = (pod for pod in self.installers if pod.name == name and not pod.deleting)
        return next(pods, None)


@dataclass(frozen=True, slots=True)
class Situation:
    snapshot: Snapshot
    revised: RevisionResult
    observation: Observation

    @property
    def not_ready(self) -> Mapping[str, str]:
        return self.observation.not_ready

    def installer(self, status: NodeStatus, revision: int) -> Installer | None:
        """The installer pod of the node's next or current attempt to install `revision`."""
        name = installer_pod_name(status.node, revision, status.attempts(revision))
        return self.observation.installer(name)


def observe(snapshot: Snapshot) -> Observation:
    pods = tuple(
        _without_foreign_result(snapshot, installers.read(pod))
        for pod in snapshot.installer_pods.values()
    )
    stale = tuple(pod for pod in pods if _is_stale(snapshot, pod))
    current = tuple(pod for pod in pods if pod not in stale)
    states = {name: readiness(node) for name, node in snapshot.nodes.items()}
    return Observation(
        operands={node: operands.read(pod) for node, pod in snapshot.operand_pods.items()},
        installers=current,
        not_ready={name: why for name, (ready, why) in states.items() if not ready},
        cleanup=tuple(
            Delete(PODS, pod.pod) for pod in stale if pod.has_own_name and not pod.deleting
        ),
        disks=read_disks(snapshot, current),
    )


def _without_foreign_result(snapshot: Snapshot, installer: Installer) -> Installer:
    """The pod without its result, unless the operator created it for this revision and node.

    Its name, its owner (the revision that exists now) and the node, number and attempt in its
    result must agree. A pod that may be replacing a scheduler always counts as such.
    """
    result = installer.result
    if result is None:
        return installer
    same = (result.node, result.revision) == (installer.node, installer.revision)
    if installer.revision:
        status = snapshot.config_maps.get(status_name(installer.revision))
        owners = installer.pod["metadata"].get("ownerReferences") or ()
        owned = status is not None and any(
            owner.get("uid") == status["metadata"].get("uid") for owner in owners
        )
        name = installer_pod_name(installer.node, installer.revision, result.retry)
    else:
        owned, name = True, restore_pod_name(installer.node, result.retry)
    if same and owned and installer.name == name:
        return installer
    message = (
        f"the result of pod/{installer.name} does not count: the operator did not create this pod"
    )
    return replace(
        installer,
        stage=Stage.LOST,
        result=None,
        ended_at=None,
        message=f"{message} for its revision",
    )


def _is_stale(snapshot: Snapshot, installer: Installer) -> bool:
    """Whether the pod ran on an earlier machine of the same name: it is older than the node."""
    node = snapshot.nodes.get(installer.node)
    born = timestamp(node["metadata"].get("creationTimestamp")) if node is not None else None
    return born is not None and installer.created is not None and installer.created < born
