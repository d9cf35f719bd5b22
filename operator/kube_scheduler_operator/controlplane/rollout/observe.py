"""What a snapshot shows of schedulers, installer pods and nodes: the input of the rollout step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...base.times import timestamp
from ...kube.resource import PODS
from ...model import operand_pods as operands
from ...model.operand_pods import OperandPod
from ...model.plan import Action, Delete
from ...model.snapshot import Snapshot
from . import installer_pods as installers
from .installer_pods import Installer
from .node_statuses import readiness


@dataclass(frozen=True, slots=True)
class Observation:
    """The pods and nodes of one snapshot.

    Attributes:
        operands: node -> its scheduler pod.
        installers: installer and restore pods of the existing machines.
        not_ready: node that is not Ready -> since when and why, in the reference's words.
        cleanup: deletions of installer pods of machines that were replaced under the same name.
    """

    operands: Mapping[str, OperandPod] = field(default_factory=dict)
    installers: tuple[Installer, ...] = ()
    not_ready: Mapping[str, str] = field(default_factory=dict)
    cleanup: tuple[Action, ...] = ()

    @property
    def swapping(self) -> frozenset[int]:
        """The revisions that are replacing a node's scheduler."""
        return frozenset(pod.revision for pod in self.installers if pod.swapping)

    def installer(self, name: str) -> Installer | None:
        """The installer pod of that name, unless it is being deleted."""
        return next((i for i in self.installers if i.name == name and not i.deleting), None)


def observe(snapshot: Snapshot) -> Observation:
    """Read all pods and nodes."""
    found = tuple(installers.read(pod) for pod in snapshot.installer_pods.values())
    stale = tuple(pod for pod in found if _is_stale(snapshot, pod))
    states = {name: readiness(node) for name, node in snapshot.nodes.items()}
    return Observation(
        operands={node: operands.read(pod) for node, pod in snapshot.operand_pods.items()},
        installers=tuple(pod for pod in found if pod not in stale),
        not_ready={name: why for name, (ready, why) in states.items() if not ready},
        cleanup=tuple(Delete(PODS, pod.pod) for pod in stale if not pod.deleting),
    )


def _is_stale(snapshot: Snapshot, found: Installer) -> bool:
    """Whether the pod is older than its node: it ran on an earlier machine of the same name."""
    node = snapshot.nodes.get(found.node)
    born = timestamp(node["metadata"].get("creationTimestamp")) if node is not None else None
    return born is not None and found.created is not None and found.created < born
