"""Versions: of schedulers and the API servers beside them, and the next one of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ...base import names
from ...config.effective.control_plane.compose import Composition
from ...config.effective.upgrades import ControlPlaneUpgrade
from ...config.language.versions import Version
from ..model.operand_pods import Disks, NodeDisk, OperandPod
from ..model.snapshot import Snapshot
from ..status.conditions import AS_EXPECTED, Condition, aggregate, problem_condition

REFUSED: Final = "RefusedByNextVersion"
UNKNOWN: Final = "NextVersionUnknown"


@dataclass(frozen=True, slots=True)
class NodeVersions:
    node: str
    scheduler: Version
    api_server: Version | None  # None: not known beside this scheduler

    @property
    def skew(self) -> int | None:
        """Minor versions by which the scheduler is older than its API server; None: not known."""
        if self.api_server is None:
            return None
        major = self.api_server.major - self.scheduler.major
        return 100 * major + self.api_server.minor - self.scheduler.minor

    @property
    def problem(self) -> str:
        """Why Kubernetes does not support them together; empty if it does, or is not known to."""
        both, skew = f'node "{self.node}": kube-scheduler {self.scheduler} ', self.skew or 0
        if skew < 0:
            return f"{both}is newer than its API server {self.api_server}"
        if skew > 1:
            return f"{both}is {skew} minor versions older than its API server"
        return ""


def versions(
    snapshot: Snapshot, operands: Mapping[str, OperandPod], disks: Disks
) -> tuple[NodeVersions, ...]:
    """The versions of every node whose scheduler has an image with a version.

    Where no program has read the API server's manifest, any API server stands for it.
    """
    known = []
    for node in sorted(operands.keys() & snapshot.nodes.keys()):
        pod = operands[node]
        with suppress(ValueError):
            scheduler = Version.of_image(pod.image)
            api_server = _api_server(snapshot, pod, disks.get(node))
            known.append(NodeVersions(node, scheduler, api_server))
    return tuple(known)


def _api_server(snapshot: Snapshot, pod: OperandPod, disk: NodeDisk | None) -> Version | None:
    """The version of the API server beside a scheduler; None if it is not known.

    kubeadm replaces the API server before the scheduler, so a report from before its scheduler is
    about another API server. While API servers have several versions, none stands for another.
    """
    if disk is not None and disk.api_server:
        is_current = pod.ours or disk.image == pod.image
        with suppress(ValueError):
            return Version.of_image(disk.api_server) if is_current else None
    return None if snapshot.newer_version else Version.parse(snapshot.server_version)


def skew_condition(nodes: tuple[NodeVersions, ...]) -> Condition:
    problems = [("NotSupported", node.problem) for node in nodes if node.problem]
    if problems:
        return problem_condition(names.VERSION_SKEW, problems)
    schedulers: dict[Version, list[str]] = {}
    for node in nodes:
        schedulers.setdefault(node.scheduler, []).append(node.node)
    unknown = ", ".join(node.node for node in nodes if node.api_server is None)
    note = f"; the version of the API server is not known on {unknown}" if unknown else ""
    if len(schedulers) > 1:
        listed = "; ".join(
            f"{version} on {', '.join(having)}" for version, having in sorted(schedulers.items())
        )
        message = f"kube-scheduler {listed}{note}"
        return Condition(names.VERSION_SKEW, "False", "Upgrading", message)
    message = f"kube-scheduler is {next(iter(schedulers))} on every node" if schedulers else ""
    return Condition(names.VERSION_SKEW, "False", AS_EXPECTED, message + note)


def next_version_condition(current: Composition) -> Condition:
    """Upgradeable, unless the next minor version has errors that the current one does not have."""
    upgrade = ControlPlaneUpgrade(current)
    version = upgrade.version
    following = Version(version.major, version.minor + 1)
    (step,) = upgrade.steps(following)
    type_ = names.NEXT_VERSION_UPGRADEABLE
    if step.refused:
        message = (
            f"kube-scheduler {following.short} would refuse the configuration of {version.short}: "
            f"{aggregate(step.refused)}"
        )
        rules = (step.pre_release,) if step.pre_release else ()
        return Condition(type_, "False", REFUSED, "; ".join((message, *rules)))
    if unknown := step.unknown or step.pre_release:
        message = (
            f"whether kube-scheduler {following.short} accepts the configuration of "
            f"{version.short} is not known: {unknown}"
        )
        return Condition(type_, "Unknown", UNKNOWN, "; ".join((message, *step.duties)))
    return Condition(type_, "True", AS_EXPECTED, "; ".join(step.duties))
