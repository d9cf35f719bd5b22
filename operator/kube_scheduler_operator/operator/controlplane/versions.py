"""Versions: of schedulers and the API servers beside them, and the next one of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from ...base import names
from ...base.findings import Finding
from ...config.effective.control_plane.compose import Composition, compose
from ...config.language.plugins.in_tree_plugins import NEWEST
from ...config.language.versions import Version
from ..model.operand_pods import Disks, NodeDisk, OperandPod
from ..model.snapshot import Snapshot
from ..status.conditions import AS_EXPECTED, Condition, aggregate, problem_condition

REFUSED: Final = "RefusedByNextVersion"


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


def next_version_condition(current: Composition) -> Condition:
    """Upgradeable, unless the next minor version has errors that the current one does not have."""
    type_ = names.NEXT_VERSION_UPGRADEABLE
    inputs = current.inputs
    version = inputs.facts.version
    following = Version(version.major, version.minor + 1)
    if (following.major, following.minor) > (NEWEST.major, NEWEST.minor):
        return Condition(type_, "True", "NextVersionUnknown")
    known = {_identity(finding) for finding in current.findings}
    errors = [
        finding.text
        for finding in compose(replace(inputs, facts=inputs.facts.of_version(following))).findings
        if finding.blocking and _identity(finding) not in known
    ]
    if not errors:
        return Condition(type_, "True", AS_EXPECTED)
    message = (
        f"kube-scheduler {following.short} would refuse the configuration of {version.short}: "
        f"{aggregate(dict.fromkeys(errors))}"
    )
    return Condition(type_, "False", REFUSED, message)


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.path, finding.reason
