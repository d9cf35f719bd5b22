"""Three real control-plane nodes: what hurts one of them leaves the others alone."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from cluster import lifecycle, nodes
from cluster.load import Load
from cluster.model import Node
from cluster.observe import KUBESCHEDULER, OPERATOR_NAMESPACE, SCHEDULER, until

from ..conftest import PODS, Cluster
from ..faults import kill_an_operator

# Rollouts come before the tests that disturb them.
pytestmark = [pytest.mark.timeout(600, func_only=True), pytest.mark.runs_first]

CANNOT_RUN = {"arguments": {"bind-address": "203.0.113.77"}}
PORT = 10261
LISTEN = (
    "import socket, time\n"
    f"taken = socket.create_server(('127.0.0.1', {PORT}))\n"
    "print('ready', flush=True)\n"
    "time.sleep(3600)\n"
)


@pytest.mark.presubmit
@pytest.mark.core
def test_a_rollout_moves_the_leader_last_and_pods_are_scheduled_throughout(
    three_nodes: Cluster,
) -> None:
    latest = three_nodes.latest
    fewest = len(three_nodes.sandbox.nodes)
    with Load(three_nodes.api, interval=1.0) as load:
        three_nodes.api.request(
            "PATCH", SCHEDULER, {"spec": {"profile": three_nodes.another_profile()}}
        )
        while three_nodes.current == latest:
            fewest = min(fewest, sum(pid > 0 for pid in three_nodes.schedulers.values()))
            time.sleep(0.5)
    waits, lost = load.finish()
    print(f"{len(waits)} pods waited {max(waits):.1f} s at most; leaders: {load.holders}")
    assert waits
    assert lost == 0, "every pod gets its node"
    leader = load.holders[0].rpartition("_")[0]
    assert load.lease_moves == 1, f"one move, not {load.holders}"
    assert fewest == 2, "never more than one of three is down"
    ends = {
        pod["spec"]["nodeName"]: status["state"]["terminated"]["finishedAt"]
        for pod in three_nodes.installers(latest + 1)
        for status in pod["status"]["containerStatuses"]
        if status["name"] == "installer"
    }
    assert len(ends) == 3
    assert max(ends, key=lambda name: ends[name]) == leader


@pytest.mark.presubmit
@pytest.mark.core
def test_a_revision_that_crashes_on_one_node_never_reaches_the_others(three_nodes: Cluster) -> None:
    before, good, latest = three_nodes.schedulers, three_nodes.current, three_nodes.latest
    overrides = {"spec": {"unsupportedConfigOverrides": CANNOT_RUN}}
    three_nodes.api.request("PATCH", KUBESCHEDULER, overrides)
    until(lambda: three_nodes.latest > latest, 30, "no revision")
    until(lambda: three_nodes.cluster_operator("Degraded")[0] == "True", 200, "not Degraded")
    message = three_nodes.cluster_operator("Degraded")[1]
    assert f"revision {three_nodes.latest}" in message
    assert "cannot assign requested address" in message, "the scheduler's own message"
    after = three_nodes.schedulers
    undisturbed = [name for name, pid in before.items() if after[name] == pid]
    assert len(undisturbed) == 2
    (tried,) = before.keys() - set(undisturbed)
    assert f'node "{tried}"' in message
    assert three_nodes.current == good
    three_nodes.override(None)
    until(lambda: three_nodes.cluster_operator("Degraded")[0] == "False", 60, "still Degraded")
    assert three_nodes.profile(three_nodes.another_profile()).outcome == "installed"


def test_an_image_that_one_node_lacks_changes_no_node(three_nodes: Cluster) -> None:
    before = three_nodes.schedulers
    only_on_some = f"localhost/kube-scheduler:{three_nodes.sandbox.kubernetes}"
    *having, lacking = three_nodes.sandbox.nodes
    for node in having:
        image = three_nodes.api.request(
            "GET", f"/api/v1/namespaces/kube-system/pods/kube-scheduler-{node.name}"
        )["spec"]["containers"][0]["image"]
        three_nodes.on_node("ctr", "-n", "k8s.io", "images", "tag", image, only_on_some, node=node)
    three_nodes.operand_image(only_on_some)
    try:
        kind = "InstallerPodContainerWaitingDegraded"
        until(lambda: three_nodes.condition(kind)[0] == "True", 200, "it is not complained about")
        message = three_nodes.condition(kind)[1]
        assert only_on_some in message
        assert f'node "{lacking.name}"' in message
        until(lambda: _staged(three_nodes) == {node.name for node in having}, 60, "not staged")
        assert three_nodes.schedulers == before
    finally:
        three_nodes.operand_image(None)
    three_nodes.rest(400)
    assert three_nodes.schedulers == before, "a revision that ran nowhere needs no rollback"


def _staged(cluster: Cluster) -> set[str]:
    message = cluster.condition("NodeInstallerProgressing")[1]
    return {
        node.name
        for node in cluster.sandbox.nodes
        if f"{node.name}: checked and staged, waiting for permission to roll out" in message
    }


@contextmanager
def stranger(cluster: Cluster, node: Node) -> Iterator[None]:
    """Another program that listens on a node."""
    command = nodes.enter(cluster.sandbox, node, ["/usr/bin/python3", "-c", LISTEN])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_port_that_is_taken_on_one_node_changes_no_node_until_it_is_free(
    three_nodes: Cluster,
) -> None:
    before = three_nodes.schedulers
    victim = three_nodes.sandbox.nodes[1]
    overrides = {"unsupportedConfigOverrides": {"arguments": {"secure-port": str(PORT)}}}
    with stranger(three_nodes, victim):
        three_nodes.api.request("PATCH", KUBESCHEDULER, {"spec": overrides})
        kind = "NodeInstallerDegraded"
        until(lambda: three_nodes.condition(kind)[0] == "True", 120, "it is not complained about")
        message = three_nodes.condition(kind)[1]
        assert f'node "{victim.name}" cannot install revision {three_nodes.latest}' in message
        assert f"port {PORT} of 127.0.0.1" in message
        others = {node.name for node in three_nodes.sandbox.nodes} - {victim.name}
        until(lambda: _staged(three_nodes) == others, 60, "the others are not staged")
        assert three_nodes.schedulers == before
    until(lambda: three_nodes.current == three_nodes.latest, 400, "it does not go on by itself")
    assert f"--secure-port={PORT}" in three_nodes.scheduler(victim)[1]


def test_the_standby_takes_over_when_the_leader_is_gone(three_nodes: Cluster) -> None:
    until(lambda: len(three_nodes.operators) == 2, 60, "there is no standby")
    latest, leader = three_nodes.latest, _leading(three_nodes)
    three_nodes.api.request(
        "PATCH", SCHEDULER, {"spec": {"profile": three_nodes.another_profile()}}
    )
    until(lambda: three_nodes.latest > latest, 30, "no revision")
    begun = time.monotonic()
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    three_nodes.api.request("DELETE", f"{PODS}/{leader}", body)
    until(lambda: _leading(three_nodes) not in ("", leader), 60, "no operator took over")
    print(f"the standby leads after {time.monotonic() - begun:.1f} s")
    until(lambda: three_nodes.current == three_nodes.latest, 400, "the rollout did not end")
    assert three_nodes.latest == latest + 1


def _leading(cluster: Cluster) -> str:
    """The operator's pod that holds the Lease; it releases it on SIGTERM."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases"
    lease = cluster.api.request("GET", f"{path}/kube-scheduler-operator-lock")
    return str(lease["spec"].get("holderIdentity") or "").rpartition("_")[0]


def test_a_node_that_is_off_is_skipped_and_follows_when_it_is_back(
    three_nodes: Cluster,
) -> None:
    dead, *alive = three_nodes.sandbox.nodes[::-1]
    latest = three_nodes.latest
    nodes.power_off(three_nodes.sandbox, dead)
    three_nodes.api.request(
        "PATCH", SCHEDULER, {"spec": {"profile": three_nodes.another_profile()}}
    )

    def moved() -> set[str]:
        return {
            entry["nodeName"]
            for entry in three_nodes.status["nodeStatuses"]
            if entry.get("currentRevision", 0) > latest
        }

    until(lambda: moved() == {node.name for node in alive}, 300, "the living did not move")
    assert dead.name in three_nodes.condition("NodeControllerDegraded")[1]
    three_nodes.schedules(timeout=60)
    lifecycle.start_node(three_nodes.sandbox, dead)
    begun = time.monotonic()
    until(lambda: dead.name in moved(), 300, "the node that came back did not follow")
    print(f"the node that came back had the revision after {time.monotonic() - begun:.0f} s")


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600, func_only=True)
def test_a_hundred_kills_in_twenty_rollouts_leave_nothing_behind(three_nodes: Cluster) -> None:
    rollouts = int(os.environ.get("KSO_ROLLOUTS", "20"))
    kills = int(os.environ.get("KSO_KILLS", "100"))
    latest, done = three_nodes.latest, 0
    for number in range(rollouts):
        profile = three_nodes.another_profile()
        three_nodes.api.request("PATCH", SCHEDULER, {"spec": {"profile": profile}})
        wanted = latest + 1 + number
        while done < kills * (number + 1) / rollouts:
            time.sleep(random.uniform(0.2, 8.0))
            done += kill_an_operator(three_nodes)
        until(
            partial(lambda wanted: three_nodes.current == wanted, wanted=wanted),
            600,
            "it did not end",
        )
        print(f"rollout {number + 1}: {done} kills so far", flush=True)
    three_nodes.rest(400)
    assert three_nodes.latest == latest + rollouts, "a kill made no revision too many"
    assert all(three_nodes.schedulers.values())
    pods = three_nodes.api.request("GET", f"{PODS}?labelSelector=app%3Dinstaller")["items"]
    assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}
    for node in three_nodes.sandbox.nodes:
        found = three_nodes.on_node("ls", "-A", "/etc/kubernetes/manifests", node=node).split()
        assert found == ["kube-scheduler.yaml"]
    three_nodes.schedules()
