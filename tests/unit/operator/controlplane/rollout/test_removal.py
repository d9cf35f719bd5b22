"""When the next attempt to restore a node's previous scheduler begins."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result
from kube_scheduler_operator.operator.controlplane.node_pods import restore_pod_name
from kube_scheduler_operator.operator.controlplane.rollout.removal import Removal, remove

from .....builders import by_name, node, snapshot
from .test_roll_out import EVICTED, NOW, created, installer, operand

KEPT = Result(InstallerOutcome.KEPT, 0, "a", 0, reason="nothing was there")


def attempt(status: Any, retry: int = 0, **fields: Any) -> dict[str, Any]:
    """A restore pod that has ended."""
    pod = installer("a", 0, status, **fields)
    del pod["metadata"]["labels"]["kube-scheduler-operator.dev/revision"]
    pod["metadata"]["name"] = restore_pod_name("a", retry)
    pod["spec"]["containers"] = [{"name": "installer", "args": [f"--retry={retry}"]}]
    return pod


def take(*attempts: dict[str, Any], runs: int = 2) -> Removal:
    """One step of the removal in a cluster with the node "a", which runs revision `runs`."""
    entry = {"nodeName": "a", "nodeUID": "node-a", "currentRevision": 2}
    kubescheduler = {
        "metadata": {"name": "cluster"},
        "spec": {"managementState": "Removed"},
        "status": {"nodeStatuses": [entry]},
    }
    return remove(
        snapshot(
            now=NOW,
            kubescheduler=kubescheduler,
            nodes={"a": node("a")},
            operand_pods={"a": operand("a", runs)},
            installer_pods=by_name(attempts),
        )
    )


def test_the_first_attempt_begins_at_once() -> None:
    assert created(take().step) == ["restore-a"]


def test_a_lost_restore_pod_is_recreated_after_the_back_off() -> None:
    removal = take(attempt(EVICTED, age=3))
    assert created(removal.step) == []
    assert removal.step.waiting["a"].startswith("attempt 2 begins at ")
    assert "OOM" in removal.progress
    assert created(take(attempt(EVICTED, age=60)).step) == ["restore-retry-1-a"]


def test_a_lost_restore_pod_backs_off_even_if_the_node_runs_another_scheduler() -> None:
    assert created(take(attempt(EVICTED, age=3), runs=0).step) == []


def test_a_lost_restore_pod_from_the_future_delays_no_attempt() -> None:
    assert created(take(attempt(EVICTED, age=-1200)).step) == ["restore-retry-1-a"]


def test_a_scheduler_that_a_user_installed_is_checked_without_back_off() -> None:
    assert created(take(attempt(KEPT)).step) == []
    assert created(take(attempt(KEPT), runs=0).step) == ["restore-retry-1-a"]


def test_the_end_states_what_runs_and_claims_nothing_about_before() -> None:
    """It may be what `kubeadm upgrade` wrote since, or what a person put there."""
    kubescheduler = {"metadata": {"name": "cluster"}, "spec": {"managementState": "Removed"}}
    removal = remove(snapshot(now=NOW, kubescheduler=kubescheduler, nodes={}))
    assert removal.done
    assert "runs a scheduler that is not the operator's" in removal.progress
    assert all("before" not in text for text in (removal.progress, take().progress))


def test_the_back_off_grows_with_every_attempt() -> None:
    attempts = [attempt(EVICTED, retry=retry, age=20) for retry in range(4)]
    assert created(take(*attempts).step) == []
    assert created(take(attempts[0]).step) == ["restore-retry-1-a"]
