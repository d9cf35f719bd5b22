"""What guards and installers report of a node's disk, and which reports count."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.controlplane.rollout.observe import observe
from kube_scheduler_operator.model.node_disks import NodeDisk
from kube_scheduler_operator.model.snapshot import Snapshot
from kube_scheduler_operator.programs.node.disk_report import DiskReport
from kube_scheduler_operator.programs.node.result import InstallerOutcome, Result

from ....builders import installer_pod, installer_status, kubescheduler, node, terminated

FIRST, SECOND, THIRD = (f"2026-01-01T00:00:0{n}Z" for n in (1, 2, 3))
REPORT = DiskReport(revision=2, content="h", newest=3, edits=("/m",), edit="e", labelled=2)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def guard(
    *, look: Any = None, ended: Any = None, uid: str = "uid-cluster", on: str = "a"
) -> dict[str, Any]:
    """A guard pod: the state of its init container, and the last state of its container."""
    return {
        "metadata": {"name": "kube-scheduler-guard-a", "ownerReferences": [{"uid": uid}]},
        "spec": {"nodeName": on},
        "status": {
            "initContainerStatuses": [{"name": "look", "state": look or {}}],
            "containerStatuses": [{"name": "guard", "state": {}, "lastState": ended or {}}],
        },
    }


def disk(*pods: dict[str, Any], installers: Mapping[str, Any] | None = None) -> NodeDisk | None:
    snapshot = Snapshot(
        now=at(THIRD),
        platform=KUBEADM,
        settings=Settings(),
        kubescheduler=kubescheduler(),
        nodes={"a": node("a")},
        config_maps={"revision-status-2": {"metadata": {"uid": "uid-2"}}},
        guard_pods={pod["metadata"]["name"]: pod for pod in pods},
        installer_pods=installers or {},
    )
    return observe(snapshot).disks.get("a")


def looked(report: DiskReport = REPORT, when: str = FIRST, code: int = 0) -> dict[str, Any]:
    return terminated(code, report.serialise(), when)


def test_a_guard_reports_before_it_starts() -> None:
    assert disk(guard(look=looked())) == NodeDisk(
        at(FIRST), 2, "h", newest=3, edits=("/m",), edit="e", labelled=2
    )


def test_the_newest_report_of_a_guard_counts() -> None:
    ended = looked(DiskReport(revision=2, newest=1), SECOND, code=3)
    found = disk(guard(look=looked(), ended=ended))
    assert found == NodeDisk(at(SECOND), 2, newest=3, reported=True), "and the highest number"


REFUSED: Mapping[str, dict[str, Any]] = {
    "another owner": guard(look=looked(), uid="another"),
    "another node": guard(look=looked(), on="b"),
    "a look that failed": guard(look=looked(code=1)),
    "a guard that was killed": guard(ended=looked(code=137)),
    "no time": guard(look=looked(when="")),
    "other text": guard(look=terminated(0, "x")),
}


@pytest.mark.parametrize("pod", REFUSED.values(), ids=REFUSED)
def test_other_reports_do_not_count(pod: dict[str, Any]) -> None:
    assert disk(pod) is None


def installer(outcome: InstallerOutcome, **fields: Any) -> dict[str, Any]:
    result = Result(outcome, 2, "a", fields.pop("last_good", 1), **fields)
    ended = terminated(0, result.serialise(), SECOND)
    return {"installer-2-a": installer_pod("a", 2, installer_status("Succeeded", None, ended))}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        (
            installer(InstallerOutcome.INSTALLED, newest=2),
            NodeDisk(at(SECOND), 2, newest=2, labelled=2),
        ),
        (
            installer(InstallerOutcome.ROLLED_BACK, newest=2),
            NodeDisk(at(SECOND), 1, newest=2, labelled=1),
        ),
        (installer(InstallerOutcome.SUPERSEDED, newest=5), NodeDisk(at(SECOND), newest=5)),
        (
            installer(InstallerOutcome.SUPERSEDED, newest=2),
            NodeDisk(at(SECOND), newest=2, taken=2),
        ),
    ],
    ids=["installed", "rolled back", "a newer one", "other content"],
)
def test_the_result_of_an_installer_is_a_report(
    pods: Mapping[str, Any], expected: NodeDisk
) -> None:
    assert disk(installers=pods) == expected


def test_an_installer_that_ended_later_replaces_the_report_of_a_guard() -> None:
    found = disk(guard(look=looked()), installers=installer(InstallerOutcome.INSTALLED, newest=2))
    assert found == NodeDisk(at(SECOND), 2, newest=3, labelled=2)
