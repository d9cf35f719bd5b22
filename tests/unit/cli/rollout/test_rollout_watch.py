"""`kubectl scheduler rollout watch`: one line per change, and a reliable exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.rollout import follow_rollout
from kube_scheduler_operator.cli.rollout.follow_rollout import (
    End,
    RolloutState,
    awaited,
    read_state,
    report_changes,
)
from kube_scheduler_operator.kube.errors import ApiRequest, Unavailable
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS, SCHEDULER_EXTENDERS
from kube_scheduler_operator.operator.controlplane.rollout.node_statuses import on_node
from kube_scheduler_operator.operator.controlplane.status import merge_generations

from ..conftest import Cluster

AT_LATEST = "AllNodesAtLatestRevision"


def condition(type_: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def progressing(message: str) -> dict[str, str]:
    return condition(names.NODE_INSTALLER_PROGRESSING, "True", "RollingOut", message)


def calm(message: str = "1 node is at revision 2", reason: str = AT_LATEST) -> dict[str, str]:
    return condition(names.NODE_INSTALLER_PROGRESSING, "False", reason, message)


def kubescheduler(
    *conditions: dict[str, str],
    latest: int = 2,
    nodes: dict[str, Any] | None = None,
    generation: int = 1,
    management: str = "Managed",
) -> dict[str, Any]:
    entries = {"a": {"currentRevision": 1}} if nodes is None else nodes
    return {
        "metadata": {"name": "cluster", "generation": generation},
        "spec": {"managementState": management},
        "status": {
            "observedGeneration": 1,
            "latestAvailableRevision": latest,
            "nodeStatuses": [{"nodeName": name, **entry} for name, entry in entries.items()],
            "conditions": list(conditions),
        },
    }


def state(*conditions: dict[str, str], **fields: Any) -> RolloutState:
    return read_state(kubescheduler(*conditions, **fields))


MOVING = progressing(
    "moving to revision 2; 1 node is at revision 1; a: the installer pod is starting; or not; b: x"
)
FAILED = condition(names.NODE_INSTALLER_DEGRADED, "True", "RevisionFailed", "it crashed")
REFUSED = condition(names.PREFLIGHT_DEGRADED, "True", "ConfigurationRefused", "no")
STUCK = condition(names.NODE_INSTALLER_DEGRADED, "True", "InstallerFailed", "disk full")
WRONG = condition(names.OVERRIDES_DEGRADED, "True", "Malformed", "spec.x: wrong")
PROFILE = condition(names.SCHEDULER_PROFILES_DEGRADED, "True", "NotInUse", "a: spec.x: wrong")
ADVICE = condition(names.TARGET_CONFIG_DEGRADED, "True", "PolicyRemoved", "remove it")
MISTAKE_TOO = condition(names.TARGET_CONFIG_DEGRADED, "True", "PolicyRemoved", "a\nb")


@pytest.mark.parametrize(
    ("found", "end", "sentence"),
    [
        (state(MOVING), None, ""),
        (state(calm()), End.DONE, "1 node is at revision 2"),
        (state(calm(), generation=2), None, ""),
        (state(calm(), nodes={"a": {"currentRevision": 1, "targetRevision": 2}}), None, ""),
        (state(calm(reason="NodesJoining")), None, ""),
        (state(calm("gone", "Removed")), End.DONE, "gone"),
        (state(calm("refused", "RevisionRejected")), End.FAILED, "refused"),
        (state(MOVING, FAILED), End.FAILED, "NodeInstallerDegraded: it crashed"),
        (state(MOVING, STUCK), None, ""),
        (state(calm(), REFUSED), End.FAILED, "PreflightDegraded: no"),
        (state(calm(), WRONG), End.FAILED, "UnsupportedConfigOverridesDegraded: spec.x: wrong"),
        (state(calm(), WRONG, generation=2), None, ""),
        (state(calm("ok"), ADVICE), End.DONE, "ok"),
        (state(MOVING, PROFILE), None, ""),
        (
            state(calm("ok"), PROFILE),
            End.FAILED,
            "ok, without an object that is refused: SchedulerProfilesDegraded: a: spec.x: wrong",
        ),
        (state(calm(), MISTAKE_TOO), End.FAILED, "TargetConfigControllerDegraded: a\nb"),
        (
            state(calm(), management="Unmanaged"),
            End.FAILED,
            "spec.managementState of KubeScheduler cluster is Unmanaged: no revision is rolled out",
        ),
        (read_state({"metadata": {"name": "cluster"}, "spec": {}}), None, ""),
    ],
)
def test_when_a_rollout_is_over(found: RolloutState, end: End | None, sentence: str) -> None:
    assert (found.end, found.message) == (end, sentence)


def test_a_rollout_is_not_over_before_the_operator_has_observed_the_scheduler() -> None:
    found = kubescheduler(calm())
    edited = {"metadata": {"name": "cluster", "generation": 5}}
    assert read_state(found, edited).end is End.DONE, "an earlier release does not report it"
    found["status"]["generations"] = merge_generations([], {"metadata": {"generation": 4}})
    assert read_state(found, edited).end is None
    found["status"]["generations"] = merge_generations([], edited)
    assert read_state(found, edited).end is End.DONE


def test_every_change_is_one_line() -> None:
    two = {"a": {"currentRevision": 1}, "b": {"currentRevision": 1}}
    first = state(calm(), latest=1, nodes=two)
    assert report_changes(None, first) == ["latest revision: 1", "a: runs 1", "b: runs 1"]
    assert report_changes(first, first) == []
    moving = state(MOVING, nodes=two)
    assert report_changes(first, moving) == [
        "latest revision: 2",
        "a: 1 → 2: the installer pod is starting; or not",
        "b: 1 → 2: x",
    ]
    turn = state(MOVING, nodes={**two, "a": {"currentRevision": 1, "targetRevision": 2}})
    assert report_changes(moving, turn) == ["a: 1 → 2: started"]
    there = state(calm(), nodes={"a": {"currentRevision": 2}, "b": {"currentRevision": 1}})
    assert report_changes(turn, there) == ["a: runs 2, was 1"]
    assert report_changes(there, state(calm(), nodes={"a": {"currentRevision": 2}})) == [
        "b: removed from the cluster"
    ]


CRASHED = 'revision 2 failed on node "a": it crashed; revision 1 runs again'
"""As the operator records it: it names the node and the revision."""


def failed(*conditions: dict[str, str], time: str = "1", error: str = CRASHED) -> RolloutState:
    entry = {
        "currentRevision": 1,
        "lastFailedRevision": 2,
        "lastFailedTime": time,
        "lastFailedRevisionErrors": [error],
    }
    return state(*conditions, nodes={"a": entry})


def reported(message: str, reason: str = "InstallerFailed") -> dict[str, str]:
    return condition(names.NODE_INSTALLER_DEGRADED, "True", reason, message)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CRASHED, CRASHED),
        ("disk full", 'revision 2 failed on node "a": disk full'),
        ("revision 2 is not shown", 'node "a": revision 2 is not shown'),
    ],
)
def test_every_failure_is_reported_with_its_message_once(error: str, line: str) -> None:
    first = failed(reported(on_node("a", error)), error=error)
    second = failed(reported(CRASHED), time="2")
    assert report_changes(state(), first) == [line]
    assert report_changes(first, second) == [CRASHED]
    assert report_changes(second, second) == []
    both = failed(reported(f'node "a": {error}\nnode "b": x'), error=error)
    assert report_changes(state(), both)[1:] == [
        f'NodeInstallerDegraded: node "a": {error}\nnode "b": x'
    ]


def test_a_failure_from_before_the_watch_is_reported_with_its_time_if_it_counts() -> None:
    ended = failed(calm(), reported(CRASHED, "RevisionFailed"), time="2026-01-01T00:00:00Z")
    assert f"earlier, at 2026-01-01T00:00:00Z: {CRASHED}" in report_changes(None, ended)
    assert ended.message == "NodeInstallerDegraded: 1 node is at revision 1"
    reverted = failed(calm("1 node is at revision 1"))
    assert report_changes(None, reverted) == ["latest revision: 2", "a: runs 1"]
    edited_again = failed(calm(), time="2026-01-01T00:00:00Z")
    again = [f"earlier, at 2026-01-01T00:00:00Z: {CRASHED}"]
    assert report_changes(edited_again, ended) == again
    other = failed(MOVING, reported('node "b": x'))
    assert not [line for line in report_changes(None, other) if CRASHED in line]


def test_nodes_move_to_the_revision_that_the_operator_names() -> None:
    back = progressing("moving to revision 2; 1 node is at revision 1; a: x")
    assert "a: 1 → 2: x" in report_changes(None, state(back, latest=3))


def test_the_first_revision_replaces_the_stock_scheduler() -> None:
    before = state(progressing("moving to revision 1; a: x"), latest=1, nodes={"a": {}})
    after = state(calm(), latest=1, nodes={"a": {"currentRevision": 1}})
    assert report_changes(None, before)[-1] == "a: stock → 1: x"
    assert report_changes(before, after) == ["a: runs 1, was stock"]


def looks(*states: RolloutState | Exception) -> Callable[[], Awaitable[RolloutState]]:
    rest: Iterator[RolloutState | Exception] = iter(states)
    last = states[-1]

    async def look() -> RolloutState:
        found = next(rest, last)
        if isinstance(found, Exception):
            raise found
        return found

    return look


def run(runner: asyncio.Runner, patience: float | None, *states: Any) -> tuple[int, list[str]]:
    output: list[str] = []
    return runner.run(
        follow_rollout.watch(looks(*states), output.append, patience, report_changes)
    ), output


def test_it_ends_when_the_end_was_seen_for_a_while(virtual_time: asyncio.Runner) -> None:
    done = state(calm("all there"), nodes={"a": {"currentRevision": 2}})
    # The operator has not seen the edit yet: what looks like the end is the one before.
    early = state(calm("all there"), latest=1)
    code, output = run(virtual_time, None, early, early, state(MOVING), done)
    assert code == 0
    assert output[-2:] == ["a: runs 2, was 1", "done: all there"]
    assert sum(line.startswith("done") for line in output) == 1


def test_a_failure_ends_it_with_its_sentence(virtual_time: asyncio.Runner) -> None:
    code, output = run(virtual_time, None, state(MOVING), state(calm(), REFUSED))
    assert (code, output[-1]) == (1, "failed: PreflightDegraded: no")


def test_time_can_be_up(virtual_time: asyncio.Runner) -> None:
    code, output = run(virtual_time, 30.0, state(MOVING))
    assert code == 1
    assert output[-1] == "not finished after 30 s; a: the installer pod is starting; or not; b: x"


def test_an_api_server_that_is_away_is_waited_for(virtual_time: asyncio.Runner) -> None:
    away = Unavailable(ApiRequest("get", "/x"), status=0, message="refused")
    done = state(calm(), nodes={"a": {"currentRevision": 2}})
    code, output = run(virtual_time, None, away, done)
    assert code == 0
    assert output[0].endswith("retrying")


async def test_as_a_user_types_it(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_rollout, "INTERVAL", 0.01)
    cluster.operator_runs()
    cluster.put(KUBE_SCHEDULERS, kubescheduler(calm(), nodes={"a": {"currentRevision": 2}}))
    done = await cluster.run("rollout", "watch", "--timeout", "10")
    assert (done.code, done.err) == (0, "")
    assert [line[9:] for line in done.out.splitlines()] == [
        "latest revision: 2",
        "a: runs 2",
        "done: 1 node is at revision 2",
    ]


# --- objects that cause another revision -----------------------------------------------------


def extender(available: dict[str, str], *, endpoint: str = "", **status: Any) -> dict[str, Any]:
    reported = {"observedGeneration": 2, "conditions": [available], **status}
    if endpoint:
        reported["endpoint"] = endpoint
    return {"metadata": {"name": "safe", "generation": 2}, "spec": {}, "status": reported}


UNOBSERVED = "the operator has not observed its last edit"
STARTING = condition(names.AVAILABLE, "False", "AgentsNotReady", "1 of 3 agents are Ready")
NOT_CALLED = condition(names.AVAILABLE, "False", "NotCalledYet", "the scheduler calls it later")
RUNS = condition(names.AVAILABLE, "True", "AsExpected")
FOREIGN = condition(names.AVAILABLE, "Unknown", "NotManaged", "it is not the operator's")


@pytest.mark.parametrize(
    ("obj", "wait"),
    [
        (extender(STARTING), "1 of 3 agents are Ready"),
        (extender(NOT_CALLED), "the scheduler calls it later"),
        (extender(STARTING, endpoint="http://127.0.0.1:5401/safe"), ""),
        (extender(RUNS, endpoint="http://127.0.0.1:5401/safe"), ""),
        (extender(FOREIGN, endpoint="http://x"), ""),
        (extender(RUNS, observedGeneration=1), UNOBSERVED),
        (
            {"metadata": {"generation": 1}, "spec": {}},
            UNOBSERVED,
        ),
    ],
)
def test_what_an_object_waits_for_before_it_is_in_a_revision(
    obj: dict[str, Any], wait: str
) -> None:
    assert awaited(obj) == wait


def test_agents_that_fail_are_not_waited_for() -> None:
    obj = extender(STARTING)
    obj["status"]["conditions"].append(condition(names.DEGRADED, "True", "AgentsFailing", "crash"))
    assert awaited(obj) == ""


def test_a_rollout_does_not_end_before_the_revision_of_an_extender() -> None:
    pending = {"SchedulerExtender safe": "1 of 3 agents are Ready"}
    found = read_state(kubescheduler(calm()), None, pending)
    assert found.end is None
    assert "SchedulerExtender safe: 1 of 3 agents are Ready" in report_changes(None, found)
    assert report_changes(found, found) == []
    refused = read_state(kubescheduler(calm(), REFUSED), None, pending)
    assert refused.end is End.FAILED, "an error is not waited for"


async def test_watch_waits_for_the_agents_of_the_control_plane_only(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_rollout, "INTERVAL", 0.01)
    cluster.operator_runs()
    cluster.put(KUBE_SCHEDULERS, kubescheduler(calm()))
    cluster.api.served.add(SCHEDULER_EXTENDERS)
    other = extender(STARTING)
    other["metadata"]["name"] = "other"
    other["spec"]["scheduler"] = "packed"
    cluster.put(SCHEDULER_EXTENDERS, other)
    done = await cluster.run("rollout", "watch", "--timeout", "60", "--platform", "kubeadm")
    assert done.code == 0
    cluster.put(SCHEDULER_EXTENDERS, extender(STARTING))
    waits = await cluster.run("rollout", "watch", "--timeout", "2", "--platform", "kubeadm")
    assert waits.code == 1
    assert "not finished" in waits.out
    assert "SchedulerExtender safe: 1 of 3 agents are Ready" in waits.out


async def test_watch_of_a_removal_waits_for_no_object(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_rollout, "INTERVAL", 0.01)
    cluster.operator_runs()
    cluster.put(KUBE_SCHEDULERS, kubescheduler(calm("gone", "Removed"), management="Removed"))
    cluster.api.served.add(SCHEDULER_EXTENDERS)
    cluster.put(SCHEDULER_EXTENDERS, extender(STARTING, observedGeneration=1))
    done = await cluster.run("rollout", "watch", "--timeout", "10", "--platform", "kubeadm")
    assert (done.code, UNOBSERVED in done.out) == (0, False)


async def test_nothing_is_rolled_out_without_an_operator(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_rollout, "INTERVAL", 0.01)
    cluster.operator_runs()
    cluster.lease(KUBEADM.operator_namespace, KUBEADM.operator.lease, age=60)
    cluster.put(KUBE_SCHEDULERS, kubescheduler(calm()))
    done = await cluster.run("rollout", "watch", "--timeout", "2", "--platform", "kubeadm")
    assert done.code == 1
    assert "has not renewed it since" in done.out
