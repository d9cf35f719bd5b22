"""The versions of the control plane's schedulers and of the API servers beside them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from ...base import names
from ...config.language.versions import Version
from ..model.node_disks import Disks, NodeDisk
from ..model.operand_pods import OperandPod
from ..model.snapshot import Snapshot
from ..status.conditions import AS_EXPECTED, Condition, problem_condition


@dataclass(frozen=True, slots=True)
class NodeVersions:
    node: str
    scheduler: Version
    api_server: Version

    @property
    def skew(self) -> int:
        """Minor versions by which the scheduler is older than the API server of its node."""
        major = self.api_server.major - self.scheduler.major
        return 100 * major + self.api_server.minor - self.scheduler.minor

    @property
    def problem(self) -> str:
        """Why Kubernetes does not support them together; empty if it does."""
        both = f'node "{self.node}": kube-scheduler {self.scheduler} '
        if self.skew < 0:
            return f"{both}is newer than its API server {self.api_server}"
        if self.skew > 1:
            return f"{both}is {self.skew} minor versions older than its API server"
        return ""


def versions(
    snapshot: Snapshot, operands: Mapping[str, OperandPod], disks: Disks
) -> tuple[NodeVersions, ...]:
    """The versions of every node whose scheduler has an image with a version.

    Where no program has read the API server's manifest, any API server stands for it.
    """
    known = []
    for node in sorted(snapshot.nodes):
        pod, disk = operands.get(node), disks.get(node)
        with suppress(ValueError):
            scheduler = Version.of_image(pod.image if pod is not None else "")
            known.append(NodeVersions(node, scheduler, _api_server(snapshot, disk)))
    return tuple(known)


def _api_server(snapshot: Snapshot, disk: NodeDisk | None) -> Version:
    with suppress(ValueError):
        return Version.of_image(disk.api_server if disk is not None else "")
    return Version.parse(snapshot.server_version)


def skew_condition(nodes: tuple[NodeVersions, ...]) -> Condition:
    problems = [("NotSupported", node.problem) for node in nodes if node.problem]
    if problems:
        return problem_condition(names.VERSION_SKEW, problems)
    schedulers: dict[Version, list[str]] = {}
    for node in nodes:
        schedulers.setdefault(node.scheduler, []).append(node.node)
    if len(schedulers) > 1:
        parts = (
            f"{version} on {', '.join(listed)}" for version, listed in sorted(schedulers.items())
        )
        return Condition(
            names.VERSION_SKEW, "False", "Upgrading", f"kube-scheduler {'; '.join(parts)}"
        )
    message = f"kube-scheduler is {next(iter(schedulers))} on every node" if schedulers else ""
    return Condition(names.VERSION_SKEW, "False", AS_EXPECTED, message)
