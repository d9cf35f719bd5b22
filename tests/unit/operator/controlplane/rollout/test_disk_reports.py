"""What guards and installers report of a node's disk, which reports count, and which is newest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.node.protocol.disk_report import DiskReport
from kube_scheduler_operator.node.protocol.message import UNKNOWN, BootTime
from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result
from kube_scheduler_operator.operator.controlplane.conditions import unmanaged_conditions
from kube_scheduler_operator.operator.controlplane.rollout.observe import guard_report, observe
from kube_scheduler_operator.operator.model.operand_pods import NodeDisk
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .....builders import (
    CREATED,
    by_name,
    installer_pod,
    installer_status,
    kubescheduler,
    node,
    snapshot,
    terminated,
)

FIRST, SECOND, THIRD = (f"2026-01-01T00:00:0{n}Z" for n in (1, 2, 3))
REPORT = DiskReport(revision=2, content="h", newest=3, edits=("/m",), edit="e", labelled=2)
SAME = DiskReport(revision=2, content="h", newest=2, labelled=2)


def guard(
    *,
    look: Any = None,
    ended: Any = None,
    runs: bool = False,
    uid: str = "uid-cluster",
    on: str = "a",
) -> dict[str, Any]:
    """A guard pod: the state of its init container, and the states of its container."""
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}} if runs else {}
    return {
        "metadata": {
            "name": "kube-scheduler-guard-a",
            "ownerReferences": [{"uid": uid}],
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": on},
        "status": {
            "initContainerStatuses": [{"name": "look", "state": look or {}}],
            "containerStatuses": [{"name": "guard", "state": state, "lastState": ended or {}}],
        },
    }


def cluster(
    *pods: dict[str, Any], installers: Mapping[str, Any] | None = None, boot: str = ""
) -> Snapshot:
    machine = node("a")
    machine["status"]["nodeInfo"] = {"bootID": boot}
    return snapshot(
        now=datetime.fromisoformat(THIRD),
        kubescheduler=kubescheduler(),
        nodes={"a": machine},
        config_maps={f"revision-status-{n}": {"metadata": {"uid": f"uid-{n}"}} for n in (2, 3)},
        guard_pods=by_name(pods),
        installer_pods=installers or {},
    )


def disk(
    *pods: dict[str, Any], installers: Mapping[str, Any] | None = None, boot: str = ""
) -> NodeDisk | None:
    return observe(cluster(*pods, installers=installers, boot=boot)).disks.get("a")


def looked(
    report: DiskReport = REPORT, when: str = FIRST, code: int = 0, read: BootTime = UNKNOWN
) -> dict[str, Any]:
    return terminated(code, replace(report, read=read).serialise(), when)


def test_a_guard_reports_before_it_starts() -> None:
    assert disk(guard(look=looked())) == NodeDisk(
        2, "h", newest=3, edits=("/m",), edit="e", labelled=2, by_guard=True, begun=CREATED
    )


def test_the_newest_report_of_a_guard_counts() -> None:
    ended = looked(DiskReport(revision=2, newest=1), SECOND, code=3)
    found = disk(guard(look=looked(), ended=ended))
    expected = NodeDisk(2, newest=3, by_guard=True, reported=True, begun=CREATED)
    assert found == expected, "and the highest number"


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


def installer(
    outcome: InstallerOutcome = InstallerOutcome.INSTALLED,
    *,
    when: str = SECOND,
    revision: int = 2,
    **fields: Any,
) -> dict[str, Any]:
    result = Result(outcome, revision, "a", fields.pop("last_good", 1), **fields)
    ended = terminated(0, result.serialise(), when)
    name = f"installer-{revision}-a"
    pod = installer_pod("a", revision, installer_status("Succeeded", None, ended))
    return {name: pod}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        (
            installer(InstallerOutcome.INSTALLED, newest=2, kubeconfig="k"),
            NodeDisk(2, newest=2, labelled=2, kubeconfig="k", begun=CREATED),
        ),
        (
            installer(InstallerOutcome.ROLLED_BACK, newest=2),
            NodeDisk(1, newest=2, labelled=1, begun=CREATED),
        ),
        (installer(InstallerOutcome.SUPERSEDED, newest=5), NodeDisk(newest=5, begun=CREATED)),
        (
            installer(InstallerOutcome.SUPERSEDED, newest=2),
            NodeDisk(newest=2, taken=2, begun=CREATED),
        ),
    ],
    ids=["installed", "rolled back", "a newer one", "other content"],
)
def test_the_result_of_an_installer_is_a_report(
    pods: Mapping[str, Any], expected: NodeDisk
) -> None:
    assert disk(installers=pods) == expected


def test_an_installer_that_ended_later_replaces_the_report_of_a_guard() -> None:
    found = disk(guard(look=looked()), installers=installer(newest=2))
    assert found == NodeDisk(2, newest=3, labelled=2, begun=CREATED)


# --- which report is the newest ---------------------------------------------------------------

BOOT, BEFORE = "the current boot", "an earlier boot"
CLOCKS = {"back": (THIRD, FIRST), "forth": (FIRST, THIRD), "right": (FIRST, SECOND)}
"""The node's wall clock at the older and at the newer report."""


def edited(found: NodeDisk | None) -> bool:
    assert found is not None
    return bool(found.edits)


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (BootTime(BOOT, 5.0), BootTime(BOOT, 5.001)),
        (BootTime(BEFORE, 5000.0), BootTime(BOOT, 5.0)),
    ],
    ids=["in one boot", "after a reboot"],
)
def test_no_wall_clock_orders_reports(
    older: BootTime, newer: BootTime, clock: tuple[str, str]
) -> None:
    before, after = clock
    installed = installer(when=before, read=older)
    hand_edit = guard(look=looked(SAME, before, 0, older), ended=looked(REPORT, after, 3, newer))
    assert edited(disk(hand_edit, installers=installed, boot=BOOT)), "edited after that"

    put_back = installer(when=after, read=newer)
    reported = guard(look=looked(SAME, before, 0, older), ended=looked(REPORT, before, 3, older))
    assert not edited(disk(reported, installers=put_back, boot=BOOT)), "and put back"

    looks = guard(look=looked(SAME, after, 0, newer), ended=looked(REPORT, before, 3, older))
    assert not edited(guard_report(cluster(looks, boot=BOOT), "a")), "looked at again"
    assert not edited(guard_report(cluster(looks), "a")), "also if the Node does not show its boot"


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_the_newest_result_of_installers_counts(clock: tuple[str, str]) -> None:
    before, after = clock
    pods = {
        **installer(revision=3, when=before, read=BootTime(BOOT, 5.0), newest=3),
        **installer(revision=2, when=after, read=BootTime(BOOT, 6.0), newest=3),
    }
    found = disk(installers=pods, boot=BOOT)
    assert found is not None
    assert found.revision == 2


def test_a_node_that_was_restored_from_a_backup_is_known_by_its_guard() -> None:
    """Its disk is older than the result of the installer; its boot is not."""
    old = DiskReport(revision=1, newest=1, labelled=1)
    look = guard(look=looked(old, FIRST, 0, BootTime(BOOT, 30.0)))
    pods = installer(when=THIRD, read=BootTime(BEFORE, 9000.0))
    found = disk(look, installers=pods, boot=BOOT)
    assert found is not None
    assert (found.revision, found.by_guard) == (1, True)


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_a_guard_counts_after_the_installers_of_an_older_operator(clock: tuple[str, str]) -> None:
    before, after = clock
    old = installer(when=before)
    new = guard(ended=looked(REPORT, after, 3, BootTime(BOOT, 6.0)))
    assert edited(disk(new, installers=old, boot=BOOT))
    # One that was replacing the scheduler when the guard looked.
    stale = guard(look=looked(DiskReport(revision=1), before, 0, BootTime(BOOT, 5.0)))
    found = disk(stale, installers=installer(when=after), boot=BOOT)
    assert found is not None
    assert (found.revision, found.by_guard) == (2, False)


def test_the_guard_of_an_older_operator_is_ordered_by_the_wall_clock() -> None:
    """And so an installer ends its report, or it would be repaired again and again."""
    new = installer(when=SECOND, read=BootTime(BOOT, 6.0))
    assert edited(disk(guard(ended=looked(REPORT, THIRD, 3)), installers=new, boot=BOOT))
    assert not edited(disk(guard(ended=looked(REPORT, FIRST, 3)), installers=new, boot=BOOT))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"boot": "", "uptime": 5.0},
        {"boot": "b", "uptime": float("nan")},
        {"boot": "b", "uptime": True},
        {"boot": "b", "uptime": "5"},
        {"boot": "b" * 65, "uptime": 5.0},
        {"boot": 7, "uptime": 5.0},
    ],
)
def test_an_invalid_time_since_boot_is_unknown(fields: dict[str, Any]) -> None:
    assert BootTime.parse(fields) == UNKNOWN


@pytest.mark.parametrize(
    ("report", "runs", "status", "message"),
    [
        (REPORT, False, "True", "/m changed since revision 2 was installed, and will be put back"),
        (SAME, True, "False", ""),
        (SAME, False, "Unknown", 'node "a": no guard runs; whether its files were edited'),
        (None, True, "Unknown", "no guard has reported yet"),
    ],
    ids=["edited", "as installed", "the guard waits", "not read"],
)
def test_hand_edits_are_reported_while_unmanaged(
    report: DiskReport | None, runs: bool, status: str, message: str
) -> None:
    ours = kubescheduler(
        managementState="Unmanaged",
        status={"nodeStatuses": [{"nodeName": "a", "currentRevision": 2}]},
    )
    pods = [guard(look=looked(report), runs=runs)] if report else []
    conditions = unmanaged_conditions(replace(cluster(*pods), kubescheduler=ours))
    (found,) = (one for one in conditions if one.type == names.HAND_EDITS)
    assert found.status == status
    assert message in found.message
    assert ("is Unmanaged" in found.message) is (status == "True")
