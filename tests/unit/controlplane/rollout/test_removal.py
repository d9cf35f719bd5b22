"""When the next attempt to bring back a node's old scheduler begins."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.controlplane.rollout.removal import Removal, remove
from kube_scheduler_operator.manifests.pods import restore_pod_name
from kube_scheduler_operator.model.snapshot import Snapshot
from kube_scheduler_operator.programs.node.result import Result, Verdict

from .test_step import EVICTED, NOW, created, installer, node, operand

KEPT = Result(Verdict.KEPT, 0, "a", 0, reason="nothing was there")


def attempt(status: Any, retry: int = 0, **fields: Any) -> dict[str, Any]:
    """A restore pod that has ended."""
    pod = installer("a", 0, status, **fields)
    del pod["metadata"]["labels"]["kube-scheduler-operator.dev/revision"]
    pod["metadata"]["name"] = restore_pod_name("a", retry)
    pod["spec"]["containers"] = [{"name": "installer", "args": [f"--retry={retry}"]}]
    return pod


def take(*attempts: dict[str, Any], runs: int = 2) -> Removal:
    """One step on the way out of a cluster with the node "a", which runs revision `runs`."""
    entry = {"nodeName": "a", "nodeUID": "node-a", "currentRevision": 2}
    kubescheduler = {
        "metadata": {"name": "cluster"},
        "spec": {"managementState": "Removed"},
        "status": {"nodeStatuses": [entry]},
    }
    return remove(
        Snapshot(
            now=NOW,
            platform=KUBEADM,
            settings=Settings(),
            kubescheduler=kubescheduler,
            nodes={"a": node("a")},
            operand_pods={"a": operand("a", runs)},
            installer_pods={pod["metadata"]["name"]: pod for pod in attempts},
        )
    )


def test_the_first_attempt_begins_at_once() -> None:
    assert created(take().stepped) == ["restore-a"]


def test_a_pod_that_was_lost_is_made_again_but_not_at_once() -> None:
    removal = take(attempt(EVICTED, age=3))
    assert created(removal.stepped) == []
    assert removal.stepped.waiting["a"].startswith("attempt 2 begins at ")
    assert "OOM" in removal.progress
    assert created(take(attempt(EVICTED, age=60)).stepped) == ["restore-retry-1-a"]


def test_a_lost_pod_is_no_reason_to_hurry_even_if_the_node_runs_what_it_should() -> None:
    assert created(take(attempt(EVICTED, age=3), runs=0).stepped) == []


def test_what_a_person_was_asked_for_is_looked_at_as_soon_as_it_is_there() -> None:
    assert created(take(attempt(KEPT)).stepped) == []
    assert created(take(attempt(KEPT), runs=0).stepped) == ["restore-retry-1-a"]


def test_later_attempts_wait_longer() -> None:
    attempts = [attempt(EVICTED, retry=retry, age=20) for retry in range(4)]
    assert created(take(*attempts).stepped) == []
    assert created(take(attempts[0]).stepped) == ["restore-retry-1-a"]
