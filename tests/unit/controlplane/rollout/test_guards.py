"""When a guard's report means that its scheduler must be restarted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.controlplane.rollout.guards import changed_kubeconfig
from kube_scheduler_operator.model import operand_pods
from kube_scheduler_operator.model.snapshot import Snapshot
from kube_scheduler_operator.programs.node.disk_report import DiskReport
from kube_scheduler_operator.programs.node.exit_codes import EXIT_CHANGED

from ....builders import operand_pod

STARTED, BEFORE, AFTER = (f"2026-11-21T10:00:{s}Z" for s in ("30", "29", "31"))


def reported(kubeconfig="new", when=AFTER, code=EXIT_CHANGED):
    message = DiskReport(kubeconfig=kubeconfig).serialise()
    return {"terminated": {"exitCode": code, "message": message, "finishedAt": when}}


def running(when=STARTED):
    return {"running": {"startedAt": when}}


def scheduler(state, kubeconfig="old"):
    annotations = {names.KUBECONFIG_ANNOTATION: kubeconfig}
    return operand_pods.read(operand_pod("a", 3, annotations=annotations, state=state))


def snapshot(state, last):
    guard = {
        "metadata": {"name": "kube-scheduler-guard-a"},
        "status": {"containerStatuses": [{"name": "guard", "state": state, "lastState": last}]},
    }
    return Snapshot(
        now=datetime(2026, 11, 21, 10, 1, tzinfo=UTC),
        platform=KUBEADM,
        settings=Settings(),
        guard_pods={"kube-scheduler-guard-a": guard},
    )


CASES = {
    "nothing reported": (running(), {}, running(), False),
    "just reported": (reported(), {}, running(), True),
    "reported before the guard was restarted": (running(), reported(), running(), True),
    "the scheduler was restarted since": (running(), reported(when=BEFORE), running(), False),
    "in the same second": (running(), reported(when=STARTED), running(), False),
    "the scheduler already has it": (running(), reported("old"), running(), False),
    "the guard ended for another reason": (running(), reported(code=137), running(), False),
    "the guard crashed and its log became the message": (
        running(),
        reported("new\nTraceback", code=1),
        running(),
        False,
    ),
    "no fingerprint in the message": (running(), reported(""), running(), False),
    "no time": (running(), reported(when=""), running(), False),
    "the scheduler is not running": (
        reported(),
        {},
        {"waiting": {"reason": "CrashLoopBackOff"}},
        False,
    ),
}


@pytest.mark.parametrize(("state", "last", "scheduler_state", "changed"), CASES.values(), ids=CASES)
def test_changed_kubeconfig(state, last, scheduler_state, changed):
    assert changed_kubeconfig(snapshot(state, last), scheduler(scheduler_state)) is changed


def test_without_a_guard_no_kubeconfig_change_is_reported():
    bare = Snapshot(now=datetime.now(UTC), platform=KUBEADM, settings=Settings())
    assert not changed_kubeconfig(bare, scheduler(running()))
