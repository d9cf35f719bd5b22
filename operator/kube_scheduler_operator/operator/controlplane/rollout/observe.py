"""What a snapshot shows of schedulers, installer pods, nodes and their disks: the rollout's input.

Guards and installers report what their node's disk has. Which report is the newest needs no wall
clock, which may jump on a node:

* Within a boot, the kernel's clock counts (node/protocol/message.py). The Node has the identifier
  of its current boot, so a report from that boot is newer than one from another: also on a node
  that was restored from a backup.
* A guard's Pod begins every boot with a look at the disk.
* Installers of operators that predate these fields left results without them. Such an installer
  ended before the operator was replaced, and the guard of this version started after that. The
  guards of such operators are replaced; only until then, the node's wall clock counts for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from ....base.objects import Object
from ....base.times import ALWAYS, timestamp
from ....kube.resource import PODS
from ....node.protocol.message import EXIT_CHANGED, EXIT_DEFINITIVE, BootTime
from ....node.protocol.result import InstallerOutcome
from ...model import operand_pods as operands
from ...model.operand_pods import Disks, NodeDisk, OperandPod, created
from ...model.plan import Action, Delete
from ...model.snapshot import Snapshot
from ..node_pods import guard_pod_name, installer_pod_name, restore_pod_name
from ..revision.history import status_name
from . import installer_pods as installers
from .installer_pods import Installer, Stage
from .node_statuses import readiness


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


# --- the newest reports of disks ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Report:
    disk: NodeDisk  # what was read, and when by the kernel's clock
    at: datetime  # when the container ended, by the node's wall clock
    installed: bool = False  # whether it is the result of an installation

    @property
    def read(self) -> BootTime:
        return self.disk.read


def read_disks(snapshot: Snapshot, installers: Iterable[Installer]) -> Disks:
    """The newest report of every node; the highest numbers of all its reports."""
    by_node: dict[str, NodeDisk] = {}
    results: dict[str, list[_Report]] = {}
    for installer in installers:
        results.setdefault(installer.node, []).extend(_of_installer(snapshot, installer))
    for node in snapshot.nodes:
        looks, installations = list(_of_guard(snapshot, node)), results.get(node, [])
        boot = _current_boot(snapshot, node)
        latest = _newer(_latest_look(looks, boot), _latest_result(installations, boot), boot)
        if latest is not None:
            disks = [report.disk for report in (*looks, *installations)]
            by_node[node] = replace(
                latest.disk,
                newest=max(disk.newest for disk in disks),
                taken=max(disk.taken for disk in disks),
                api_server=latest.disk.api_server
                or next((disk.api_server for disk in disks if disk.api_server), ""),
                # It was read after every other one, and so after each of their Pods was created.
                begun=max((disk.begun for disk in disks if disk.begun), default=None),
            )
    return by_node


def guard_report(snapshot: Snapshot, node: str) -> NodeDisk | None:
    report = _latest_look(list(_of_guard(snapshot, node)), _current_boot(snapshot, node))
    return report.disk if report is not None else None


def _current_boot(snapshot: Snapshot, node: str) -> str:
    status = (snapshot.nodes.get(node) or {}).get("status") or {}
    return str((status.get("nodeInfo") or {}).get("bootID") or "")


def _newer(guard: _Report | None, installer: _Report | None, boot: str) -> _Report | None:
    if guard is None or installer is None:
        return guard or installer
    if guard.read.boot and installer.read.boot:
        if guard.read.boot == installer.read.boot:
            is_later = guard.read.seconds >= installer.read.seconds
            return guard if is_later else installer
        if boot in (guard.read.boot, installer.read.boot):
            return guard if guard.read.boot == boot else installer
    elif guard.read.boot:
        # An older installer that was replacing the scheduler when the operator was replaced.
        unseen = installer.installed and installer.disk.revision != guard.disk.revision
        return installer if unseen else guard
    return guard if guard.at >= installer.at else installer


def _latest_look(reports: list[_Report], boot: str) -> _Report | None:
    """The newest report of a guard Pod; its look at the disk, which begins a boot, comes first."""
    began = reports[0].read.boot if reports else ""

    def order(report: _Report) -> tuple[bool, bool, float, datetime]:
        read = report.read
        known = bool(read.boot)
        return known and read.boot == boot, known and read.boot == began, read.seconds, report.at

    return max(reports, key=order, default=None)


def _latest_result(reports: list[_Report], boot: str) -> _Report | None:
    """The newest result of a node's installers: in the current boot, or of the newest Pod."""

    def order(report: _Report) -> tuple[float, datetime, float, datetime]:
        current = report.read.seconds if report.read.boot and report.read.boot == boot else -1.0
        return current, report.disk.begun or ALWAYS, report.read.seconds, report.at

    return max(reports, key=order, default=None)


def is_guarded(snapshot: Snapshot, node: str) -> bool:
    """Whether a guard reads the node's files now; one that exited after an edit waits."""
    containers = (_guard(snapshot, node).get("status") or {}).get("containerStatuses") or ()
    return any((container.get("state") or {}).get("running") for container in containers)


def _guard(snapshot: Snapshot, node: str) -> Object:
    """The guard that the operator created for this node; empty: none exists."""
    pod = snapshot.guard_pods.get(guard_pod_name(snapshot.platform, node))
    if pod is None or not _is_owned(snapshot, pod):
        return {}
    return pod if str((pod.get("spec") or {}).get("nodeName") or "") == node else {}


def _of_guard(snapshot: Snapshot, node: str) -> Iterator[_Report]:
    """The reports of the node's guard: first its last look."""
    pod = _guard(snapshot, node)
    status = pod.get("status") or {}
    for key, code in (
        ("initContainerStatuses", EXIT_DEFINITIVE),
        ("containerStatuses", EXIT_CHANGED),
    ):
        for container in status.get(key) or ():
            for state in (container.get("state") or {}, container.get("lastState") or {}):
                ended = state.get("terminated") or {}
                at = timestamp(ended.get("finishedAt"))
                disk = NodeDisk.parse(str(ended.get("message") or ""))
                if ended.get("exitCode") == code and at is not None and disk is not None:
                    reported, begun = code == EXIT_CHANGED, created(pod)
                    yield _Report(replace(disk, by_guard=True, reported=reported, begun=begun), at)


def _of_installer(snapshot: Snapshot, installer: Installer) -> Iterator[_Report]:
    result, at = installer.result, installer.ended_at
    if result is None or at is None or not installer.revision:
        return
    begun, number = installer.created, result.revision
    match result.result:
        case InstallerOutcome.INSTALLED:
            newest = max(number, result.newest)
            disk = NodeDisk(
                number, newest=newest, labelled=number, kubeconfig=result.kubeconfig, begun=begun
            )
        case InstallerOutcome.SUPERSEDED:
            taken = number if result.newest <= number else 0
            disk = NodeDisk(newest=result.newest, taken=taken, begun=begun)
        case InstallerOutcome.OVERTAKEN:
            good = result.last_good_revision
            edits = (snapshot.platform.manifest_path,) if result.image else ()
            disk = NodeDisk(good, newest=result.newest, edits=edits, begun=begun)
        case _:
            good = result.last_good_revision
            disk = NodeDisk(good, newest=result.newest, labelled=good, begun=begun)
    disk = replace(
        disk,
        image=result.image,
        api_server=result.api_server,
        work=result.work,
        read=result.read,
    )
    yield _Report(disk, at, result.result is InstallerOutcome.INSTALLED)


def _is_owned(snapshot: Snapshot, pod: Object) -> bool:
    """Whether a pod belongs to the KubeScheduler; others can create pods of that name."""
    uid = ((snapshot.kubescheduler or {}).get("metadata") or {}).get("uid")
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid for owner in owners) if uid else False
