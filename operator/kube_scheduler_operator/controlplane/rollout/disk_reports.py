"""Reads what guards and installers report of their node's disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...base.objects import Object
from ...base.times import timestamp
from ...model.node_disks import Disks, NodeDisk
from ...model.snapshot import Snapshot
from ...programs.node.disk_report import DiskReport
from ...programs.node.exit_codes import EXIT_CHANGED, EXIT_DEFINITIVE
from ...programs.node.result import InstallerOutcome
from ..node_pods import guard_pod_name
from .installer_pods import Installer


def read_disks(snapshot: Snapshot, installers: Iterable[Installer]) -> Disks:
    """The newest report of every node; the highest numbers of all its reports."""
    found: dict[str, NodeDisk] = {}
    by_node: dict[str, list[NodeDisk]] = {
        node: list(_of_guard(snapshot, node)) for node in snapshot.nodes
    }
    for installer in installers:
        if installer.node in by_node:
            by_node[installer.node].extend(_of_installer(installer))
    for node, disks in by_node.items():
        if disks:
            latest = max(disks, key=lambda disk: disk.at)
            found[node] = replace(
                latest,
                newest=max(disk.newest for disk in disks),
                taken=max(disk.taken for disk in disks),
            )
    return found


def guard_report(snapshot: Snapshot, node: str) -> NodeDisk | None:
    """The newest report of a node's guard."""
    return max(_of_guard(snapshot, node), key=lambda disk: disk.at, default=None)


def _of_guard(snapshot: Snapshot, node: str) -> Iterator[NodeDisk]:
    """The reports of a guard that the operator created for this node."""
    pod = snapshot.guard_pods.get(guard_pod_name(snapshot.platform, node))
    if pod is None or not _is_owned(snapshot, pod) or _node_of(pod) != node:
        return
    status = pod.get("status") or {}
    for key, code in (
        ("initContainerStatuses", EXIT_DEFINITIVE),
        ("containerStatuses", EXIT_CHANGED),
    ):
        for container in status.get(key) or ():
            for state in (container.get("state") or {}, container.get("lastState") or {}):
                ended = state.get("terminated") or {}
                at = timestamp(ended.get("finishedAt"))
                report = DiskReport.parse(str(ended.get("message") or ""))
                if ended.get("exitCode") != code or at is None or report is None:
                    continue
                yield NodeDisk(
                    at=at,
                    revision=report.revision,
                    content=report.content,
                    newest=report.newest,
                    edits=report.edits,
                    edit=report.edit,
                    labelled=report.labelled,
                    reported=code == EXIT_CHANGED,
                )


def _of_installer(installer: Installer) -> Iterator[NodeDisk]:
    result, at = installer.result, installer.ended_at
    if result is None or at is None or not installer.revision:
        return
    match result.result:
        case InstallerOutcome.INSTALLED:
            number = result.revision
            newest = max(number, result.newest)
            yield NodeDisk(at, number, newest=newest, labelled=number)
        case InstallerOutcome.SUPERSEDED:
            taken = result.revision if result.newest <= result.revision else 0
            yield NodeDisk(at, newest=result.newest, taken=taken)
        case _:
            good = result.last_good_revision
            yield NodeDisk(at, good, newest=result.newest, labelled=good)


def _is_owned(snapshot: Snapshot, pod: Object) -> bool:
    """Whether a pod belongs to the KubeScheduler; others can create pods of that name."""
    uid = ((snapshot.kubescheduler or {}).get("metadata") or {}).get("uid")
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid for owner in owners) if uid else False


def _node_of(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")
