"""When a guard's report means that its scheduler must be restarted."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.operator.controlplane.rollout.drift import changed_kubeconfig
from kube_scheduler_operator.operator.model import operand_pods
from kube_scheduler_operator.operator.model.operand_pods import NodeDisk

from .....builders import operand_pod

REPORTED = NodeDisk(3, kubeconfig="new", by_guard=True, reported=True)
LOOKED = NodeDisk(3, kubeconfig="new", by_guard=True)

CASES = {
    "nothing is known": (None, False),
    "the guard ended to report it": (REPORTED, True),
    "an installer has restarted the scheduler since": (NodeDisk(3, kubeconfig="new"), False),
    "the scheduler already has it": (NodeDisk(3, kubeconfig="old", reported=True), False),
    "no fingerprint in the report": (NodeDisk(3, reported=True), False),
    "the guard will report it if it stays": (LOOKED, False),
}


@pytest.mark.parametrize(("disk", "changed"), CASES.values(), ids=CASES)
def test_changed_kubeconfig(disk: NodeDisk | None, changed: bool) -> None:
    annotations = {names.KUBECONFIG_ANNOTATION: "old"}
    pod = operand_pods.read(operand_pod("a", 3, annotations=annotations))
    assert changed_kubeconfig(disk, pod) is changed
