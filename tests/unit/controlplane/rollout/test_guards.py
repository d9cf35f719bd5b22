"""When a guard's word means that its scheduler must be started again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.controlplane.rollout.guards import changed_kubeconfig
from kube_scheduler_operator.model import operand_pods
from kube_scheduler_operator.model.snapshot import Snapshot
from kube_scheduler_operator.programs.node.exit_codes import EXIT_CHANGED

STARTED, BEFORE, AFTER = (f"2026-11-21T10:00:{s}Z" for s in ("30", "29", "31"))


def said(message="new", when=AFTER, code=EXIT_CHANGED):
    return {"terminated": {"exitCode": code, "message": message, "finishedAt": when}}


def running(when=STARTED):
    return {"running": {"startedAt": when}}


def scheduler(state, kubeconfig="old"):
    return operand_pods.read(
        {
            "metadata": {
                "name": "kube-scheduler-a",
                "labels": {"revision": "3"},
                "annotations": {names.KUBECONFIG_ANNOTATION: kubeconfig},
            },
            "spec": {"nodeName": "a", "containers": [{"name": "kube-scheduler"}]},
            "status": {"containerStatuses": [{"name": "kube-scheduler", "state": state}]},
        }
    )


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
    "nothing was said": (running(), {}, running(), False),
    "it just said it": (said(), {}, running(), True),
    "it said it before it was started again": (running(), said(), running(), True),
    "the scheduler was started since": (running(), said(when=BEFORE), running(), False),
    "in the same second": (running(), said(when=STARTED), running(), False),
    "the scheduler has it already": (running(), said("old"), running(), False),
    "the guard ended for another reason": (running(), said(code=137), running(), False),
    "it said nothing readable": (running(), said(""), running(), False),
    "no time": (running(), said(when=""), running(), False),
    "the scheduler does not run": (said(), {}, {"waiting": {"reason": "CrashLoopBackOff"}}, False),
}


@pytest.mark.parametrize(("state", "last", "scheduler_state", "changed"), CASES.values(), ids=CASES)
def test_a_changed_kubeconfig(state, last, scheduler_state, changed):
    assert changed_kubeconfig(snapshot(state, last), scheduler(scheduler_state)) is changed


def test_a_node_without_a_guard_has_no_news():
    bare = Snapshot(now=datetime.now(UTC), platform=KUBEADM, settings=Settings())
    assert not changed_kubeconfig(bare, scheduler(running()))
