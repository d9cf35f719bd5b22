"""`kubectl scheduler status`: one screen, and all about the schedulers with --verbose."""

from __future__ import annotations

import asyncio
import json

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.checks.operation import INFORMATIONAL
from kube_scheduler_operator.cli.cluster import answers
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    LOAD_POLICIES,
    NODES,
    PODS,
    SCHEDULERS,
)

from ..conftest import IMAGE, Cluster, content, scheduler_pod


def healthy(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 2, "b": 2})
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {"profile": "NoScoring"}})
    conditions = [
        {"type": "Available", "status": "True"},
        {"type": "Degraded", "status": "False"},
    ]
    cluster.put(
        CLUSTER_OPERATORS,
        {"metadata": {"name": names.CLUSTEROPERATOR}, "status": {"conditions": conditions}},
    )
    cluster.operator_runs(leader="b")
    started = {"running": {"startedAt": "2026-01-02T00:00:00Z"}}
    container = {
        "name": names.OPERAND,
        "restartCount": 2,
        "imageID": "sha256:1",
        "state": started,
        "lastState": {"terminated": {"message": "first\nlost the lease"}},
    }
    cluster.put(PODS, scheduler_pod("a", 2, containerStatuses=[container]))


async def test_one_screen(cluster: Cluster) -> None:
    healthy(cluster)
    done = await cluster.run("status")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[1].startswith("Profile    NoScoring")
    assert lines[-2].split() == ["a", "2", "-", "yes", "2", IMAGE]
    assert lines[-1].split() == ["b", "2", "-", "no", "0", "yes"]
    assert "command" not in done.out


@pytest.mark.parametrize(
    ("outcomes", "running", "head"),
    [
        ({}, [1, 1], "1"),
        (
            {2: "failed", 3: "refused"},
            [1, 1],
            "3 was refused, 2 failed; the nodes stay at 1; see kubectl scheduler history",
        ),
        ({2: "withdrawn"}, [1, 1], "2 was withdrawn; the nodes stay at 1"),
        ({2: "failed", 3: ""}, [1, 3], "3 is in progress, 2 failed; the nodes are at 1 and 3"),
        ({}, [2, 1], "2 has no recorded outcome; the nodes are at 1 and 2"),
        (
            dict.fromkeys(range(2, 9), "superseded"),
            [1, 1],
            "8 was superseded, 7 was superseded, 6 was superseded, 5 was superseded, "
            "4 was superseded, and 2 more before; the nodes stay at 1",
        ),
    ],
)
async def test_what_happened_to_the_revisions_after_the_running_one(
    cluster: Cluster, outcomes: dict[int, str], running: list[int], head: str
) -> None:
    healthy(cluster)
    cluster.revision(1, content())
    for number, outcome in outcomes.items():
        reason = "no" if outcome == "refused" else ""
        cluster.revision(number, content("NoScoring"), outcome=outcome, message=reason)
    latest = {"latestAvailableRevision": max([*running, *outcomes])}
    cluster.kubescheduler(dict(zip("ab", running, strict=True)), status=latest)
    text = (await cluster.run("status")).out
    assert f"\nRevision   {head}\n" in text
    shown = json.loads((await cluster.run("status", "-o", "json")).out)["laterRevisions"]
    assert [(each["revision"], each["outcome"]) for each in shown] == [
        (number, outcomes.get(number, "not recorded") or "in progress")
        for number in range(latest["latestAvailableRevision"], 1, -1)
    ]


async def test_one_node_stays_at_its_revision(cluster: Cluster) -> None:
    healthy(cluster)
    cluster.revision(3, content("NoScoring"), outcome="failed")
    cluster.kubescheduler({"a": 2}, status={"latestAvailableRevision": 3})
    assert "\nRevision   3 failed; the node stays at 2\n" in (await cluster.run("status")).out


async def test_what_changes_the_profile_is_named(cluster: Cluster) -> None:
    healthy(cluster)
    cluster.kubescheduler({"a": 2, "b": 2}, observedConfig={"profiles": [{"plugins": {}}]})
    lines = (await cluster.run("status")).out.splitlines()
    change = "changed by spec.observedConfig.profiles of KubeScheduler"
    assert lines[1].startswith(f"Profile    NoScoring, {change}   logLevel")


async def test_verbose_shows_the_scheduler_of_each_node(cluster: Cluster) -> None:
    healthy(cluster)
    text = (await cluster.run("status", "--verbose")).out
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for output in (
        "pod kube-system/kube-scheduler-a, created 2026-01-01T00:00:00Z",
        "started 2026-01-02T00:00:00Z, 2 restarts",
        "revision 2",
        "content cafe",
        "kubeconfig f00",
        f"image {IMAGE} sha256:1",
        "last error lost the lease",
        "command kube-scheduler",
        "--config=/x",
        "-v=2",
        "b: no scheduler pod",
    ):
        assert output in lines, output


async def test_watch_prints_the_status_again_only_when_it_changes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "INTERVAL", 0.01)
    healthy(cluster)

    async def polled(times: int) -> None:
        seen = len(cluster.api.requests("GET", "/kubeschedulers"))
        async with asyncio.timeout(50):
            while len(cluster.api.requests("GET", "/kubeschedulers")) < seen + times:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    running = asyncio.create_task(cluster.run("status", "-w"))
    await polled(3)
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {"profile": ""}})
    await polled(3)
    cluster.api.fail(403, times=None)
    done = await running
    assert done.code == 1
    assert done.out.count("Profile ") == 2
    assert "the status has changed" in done.out


async def test_documents(cluster: Cluster) -> None:
    healthy(cluster)
    shown = json.loads((await cluster.run("status", "--verbose", "-o", "json")).out)
    assert yaml.safe_load((await cluster.run("status", "--verbose", "-o", "yaml")).out) == shown
    assert shown["nodes"][0]["scheduler"]["command"] == ["kube-scheduler", "--config=/x", "-v=2"]
    assert shown["nodes"][1]["scheduler"] is None
    short = json.loads((await cluster.run("status", "-o", "json")).out)
    assert "scheduler" not in short["nodes"][0]


async def test_where_the_provider_runs_the_scheduler_its_name_and_ours_are_shown(
    cluster: Cluster,
) -> None:
    healthy(cluster)
    message = "platform managed: the control plane's scheduler is managed by EKS (so)"
    platform = {"type": names.PLATFORM_CHANGED, "status": "False", "message": message}
    cluster.kubescheduler({}, status={"conditions": [platform]})
    status = {"readyReplicas": 2, "image": IMAGE, "leaseHolder": "x-1"}
    status["conditions"] = [{"type": "Available", "status": "True"}]
    mine = {"metadata": {"name": "managed-scheduler"}, "spec": {"replicas": 2}, "status": status}
    cluster.secondary_runs(mine)
    done = await cluster.run("status", "--platform", "managed")
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert f"Platform {message}" in lines
    assert f"managed-scheduler 2/2 True x-1 {IMAGE}" in lines
    assert not [line for line in lines if line.startswith(("NODE", "Leader", "Revision", "Next"))]


async def test_problems_come_first_and_next_steps_last(cluster: Cluster) -> None:
    cluster.operator_runs()
    bad = {"type": names.PREFLIGHT_DEGRADED, "status": "True", "reason": "R", "message": "no\nyes"}
    cluster.kubescheduler({"a": 1}, status={"conditions": [bad]})
    done = await cluster.run("status")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[:3] == ["PROBLEM  PreflightDegraded (R)", "         no", "         yes"]
    assert "kubectl scheduler rollout undo" in lines[-3]
    assert lines[-1] == (
        "      kubectl -n kube-scheduler-operator get events --sort-by=.lastTimestamp"
    )


@pytest.mark.parametrize(
    ("problems", "output"),
    [
        ([("NodeInstallerDegraded", "RevisionFailed")], ["correct the field"]),
        ([("NodeControllerDegraded", "MasterNodesNotReady")], ["repair the node"]),
        ([("NodeInstallerDegraded", "InstallerFailed")], ["--verbose for the node"]),
        (
            [("NodeControllerDegraded", "R"), ("UnsupportedConfigOverridesDegraded", "R")],
            ["correct the field", "repair the node"],
        ),
        ([("TargetConfigControllerDegraded", "NoOperandImage")], ["set OPERAND_IMAGE"]),
    ],
)
async def test_next_steps_fit_the_problem(
    cluster: Cluster, problems: list[tuple[str, str]], output: list[str]
) -> None:
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": "m"}
        for kind, reason in problems
    ]
    cluster.operator_runs()
    cluster.kubescheduler({"a": 1}, status={"conditions": conditions})
    _, _, steps = (await cluster.run("status")).out.partition("Next: ")
    every = ("correct the field", "set OPERAND_IMAGE", "repair the node", "--verbose for the node")
    assert [words for words in every if words in steps] == output


async def test_enabled_profiling_is_shown_with_its_revision(cluster: Cluster) -> None:
    healthy(cluster)
    on = content(unsupportedConfigOverrides={"enableProfiling": True})
    cluster.revision(1, on)
    cluster.revision(2, on, reason="again")
    done = await cluster.run("status")
    assert "Profiling  on since revision 1" in done.out
    assert json.loads((await cluster.run("status", "-o", "json")).out)["profilingSince"] == 1


async def test_of_how_many_nodes_the_load_is_known(cluster: Cluster) -> None:
    healthy(cluster)
    message = "the load of 2 of 3 nodes is known"
    counts = {"total": 3, "known": 2, "stale": 1, "missing": 0}
    status = {
        "source": "NodeMetrics",
        "nodes": counts,
        "conditions": [{"type": "Available", "status": "True", "message": message}],
    }
    cluster.api.served.add(LOAD_POLICIES)
    cluster.put(LOAD_POLICIES, {"metadata": {"name": "default"}, "spec": {}, "status": status})
    cluster.put(LOAD_POLICIES, {"metadata": {"name": "new"}, "spec": {}})
    done = await cluster.run("status")
    assert f"Load       default (NodeMetrics): {message}" in done.out
    assert "Load       new: not observed by the operator yet" in done.out
    shown = json.loads((await cluster.run("status", "-o", "json")).out)["loadPolicies"]
    assert shown[0] == {
        "name": "default",
        "source": "NodeMetrics",
        "nodes": counts,
        "accepted": "Unknown",
        "available": "True",
        "message": message,
    }


@pytest.mark.parametrize("type_", INFORMATIONAL)
async def test_every_informational_condition_is_a_warning(cluster: Cluster, type_: str) -> None:
    healthy(cluster)
    condition = {"type": type_, "status": "True", "reason": "R", "message": "what is so"}
    cluster.kubescheduler({"a": 2}, status={"conditions": [condition]})
    shown = json.loads((await cluster.run("status", "-o", "json")).out)
    assert {"object": "KubeScheduler", "message": "what is so"} in shown["warnings"]
    assert shown["healthy"], "it is for information"


async def test_an_operator_that_does_not_run_is_a_problem_whatever_the_conditions_say(
    cluster: Cluster,
) -> None:
    healthy(cluster)
    cluster.lease(KUBEADM.operator_namespace, KUBEADM.operator.lease, age=60)
    done = await cluster.run("status")
    assert done.code == 1
    assert done.out.startswith("PROBLEM  operator (Observed)")
    assert "(observed before the operator stopped)" in done.out
    assert "kubectl -n kube-scheduler-operator logs" in done.out.partition("Next: ")[2]


async def test_what_no_operator_has_observed_was_not_observed_before_it_stopped(
    cluster: Cluster,
) -> None:
    cluster.kubescheduler({})
    done = await cluster.run("status")
    assert "(no operator has observed them)" in done.out
    assert "before the operator stopped" not in done.out


async def test_a_scheduler_that_is_gone_while_no_operator_observes_it_is_a_problem(
    cluster: Cluster,
) -> None:
    healthy(cluster)
    cluster.lease(KUBEADM.operator_namespace, KUBEADM.operator.lease, age=60)
    labels = {"node-role.kubernetes.io/control-plane": ""}
    cluster.api.served.add(NODES)
    for name in ("a", "b"):
        cluster.put(NODES, {"metadata": {"name": name, "labels": labels}})
    shown = json.loads((await cluster.run("status", "-o", "json")).out)
    messages = [p["message"] for p in shown["problems"] if p["condition"] == "schedulers"]
    assert [message for message in messages if "node b has no scheduler Pod" in message]
    assert shown["notObserved"] == []


async def test_what_the_operator_does_not_observe_is_not_a_problem(cluster: Cluster) -> None:
    """The ClusterOperator is Unknown then; `check` has a warning."""
    healthy(cluster)
    conditions = [{"type": type_, "status": "Unknown"} for type_ in ("Available", "Degraded")]
    cluster.put(
        CLUSTER_OPERATORS,
        {"metadata": {"name": names.CLUSTEROPERATOR}, "status": {"conditions": conditions}},
    )
    assert (await cluster.run("status")).code == 1
    cluster.kubescheduler({"a": 2}, managementState="Unmanaged")
    assert (await cluster.run("status")).code == 0
    gone = {"type": names.STATIC_PODS_AVAILABLE, "status": "False", "message": "no scheduler"}
    status = {"conditions": [gone]}
    cluster.kubescheduler({"a": 2}, managementState="Unmanaged", status=status)
    assert (await cluster.run("status")).code == 1


async def test_a_problem_counts_before_the_cluster_operator_reports_it(cluster: Cluster) -> None:
    healthy(cluster)
    bad = {"type": names.SECONDARY_DEGRADED, "status": "True", "reason": "R", "message": "m"}
    cluster.kubescheduler({"a": 2}, status={"conditions": [bad]})
    assert (await cluster.run("status")).code == 1


async def test_a_holder_that_does_not_renew_its_lease_does_not_lead(cluster: Cluster) -> None:
    healthy(cluster)
    lease = (KUBEADM.operand_lease_namespace, KUBEADM.operand_lease_name)
    cluster.lease(*lease, holder="b_x", age=60)
    shown = json.loads((await cluster.run("status", "-o", "json")).out)
    assert shown["leaseHolder"] == ""
    assert "has not renewed it since" in shown["leaseProblem"]
    assert [node["leader"] for node in shown["nodes"]] == [False, False]


async def test_what_may_not_be_read_is_not_known(cluster: Cluster) -> None:
    healthy(cluster)
    cluster.api.fail(403, path="/deployments", times=None, reason="Forbidden")
    done = await cluster.run("status")
    assert (done.code, "Not known  " in done.out) == (0, True)


async def test_an_unknown_platform_is_wrong_usage(cluster: Cluster) -> None:
    done = await cluster.run("status", "--platform", "mars")
    assert done.code == 2
    assert "kubeadm" in done.err


async def test_without_a_cluster_the_address_is_named(cluster: Cluster) -> None:
    await cluster.api.stop()
    cluster.kubeconfig.write_text(
        cluster.kubeconfig.read_text().replace(cluster.api.url, "http://127.0.0.1:9")
    )
    done = await cluster.run("status")
    assert done.code == 1
    assert "http://127.0.0.1:9" in done.err


async def test_assignments_are_shown_on_every_platform(cluster: Cluster) -> None:
    healthy(cluster)
    for name, spec, state in (
        ("a", {"assign": {}}, ("True", "new Pods get it")),
        ("b", {"assign": {}}, ("False", "it is away")),
        ("c", {"assign": {}}, None),
        ("d", {}, None),
    ):
        conditions = []
        if state is not None:
            conditions = [{"type": "Assigned", "status": state[0], "message": state[1]}]
        obj = {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}
        cluster.secondary_runs(obj)
    done = await cluster.run("status")
    assert [line for line in done.out.splitlines() if line.startswith("Assigned")] == [
        "Assigned   a: new Pods get it",
        "Assigned   b: not assigned: it is away",
        "Assigned   c: not assigned: not observed by the operator yet",
    ]
    found = json.loads((await cluster.run("status", "-o", "json")).out)["assignments"]
    assert [(each["scheduler"], each["assigned"]) for each in found] == [
        ("a", True), ("b", False), ("c", False),
    ]  # fmt: skip


async def test_secondary_schedulers_are_shown_with_their_warnings_on_every_platform(
    cluster: Cluster,
) -> None:
    healthy(cluster)
    assert "SECONDARYSCHEDULER" not in (await cluster.run("status")).out
    conditions = [
        {"type": "Available", "status": "True"},
        {"type": "Warnings", "status": "True", "message": "every Pod fails there\nand there"},
    ]
    status = {"readyReplicas": 1, "image": IMAGE, "leaseHolder": "x-1", "conditions": conditions}
    mine = {"metadata": {"name": "mine"}, "spec": {"replicas": 2}, "status": status}
    cluster.secondary_runs(mine)
    done = await cluster.run("status")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert f"mine 1/2 True x-1 {IMAGE}" in lines
    assert "SecondaryScheduler mine: every Pod fails there" in lines
    assert "SecondaryScheduler mine: and there" in lines
    assert any(line.startswith("NODE") for line in lines)
