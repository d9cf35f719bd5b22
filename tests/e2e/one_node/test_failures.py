"""What can go wrong on a real node, and how it heals."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest

from cluster import cgroups
from cluster.observe import KUBESCHEDULER, SCHEDULER, scheduler_processes, until
from cluster.releases import minor

from ..conftest import DEPLOYMENT, PODS, Cluster
from ..faults import pids

CANNOT_RUN = {"arguments": {"bind-address": "203.0.113.77"}}


@pytest.mark.presubmit
@pytest.mark.core
def test_a_failed_revision_is_rolled_back_without_the_operator(cluster: Cluster) -> None:
    good = cluster.current
    _, good_command = cluster.scheduler()
    latest = cluster.latest
    cluster.api.request(
        "PATCH", KUBESCHEDULER, {"spec": {"unsupportedConfigOverrides": CANNOT_RUN}}
    )
    until(lambda: cluster.latest > latest, 30, "no revision")
    bad = cluster.latest
    until(lambda: bool(_swapping(cluster, bad)), 60, "the installer did not begin")
    begun = time.monotonic()
    # The operator is gone, and its successor cannot be scheduled: it asks for a node that is not.
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"no-such-node": "true"}}}}}
    cluster.api.request("PATCH", DEPLOYMENT, nowhere)
    try:
        for pod in cluster.operators:
            cluster.api.request("DELETE", f"{PODS}/{pod}")
        until(lambda: "203.0.113.77" in cluster.scheduler()[1], 60, "the bad one never ran")
        until(lambda: cluster.scheduler()[1] == good_command, 120, "the good one is not back")
        cluster.schedules(timeout=60)
        seconds = time.monotonic() - begun
        print(f"last good scheduler back and scheduling after {seconds:.0f} s")
        assert cluster.current == good, "no operator may have written the status meanwhile"
    finally:
        somewhere = {"spec": {"template": {"spec": {"nodeSelector": {"no-such-node": None}}}}}
        cluster.api.request("PATCH", DEPLOYMENT, somewhere)
    until(
        lambda: cluster.cluster_operator("Degraded")[0] == "True", 120, "Degraded does not say it"
    )
    _, message = cluster.cluster_operator("Degraded")
    assert f"revision {bad}" in message
    assert cluster.node.name in message
    assert "203.0.113.77" in message, "the scheduler's own message"
    assert "cannot assign requested address" in message
    assert cluster.revision_status(bad)["kube-scheduler-operator.dev/outcome"] == "failed"
    # The bad content is not tried again, and the next good edit rolls out.
    time.sleep(3)
    assert cluster.latest == bad
    cluster.override(None)
    until(lambda: cluster.cluster_operator("Degraded")[0] == "False", 60, "still Degraded")
    assert cluster.current == good, "taking it back restarts nothing"
    assert cluster.profile(cluster.another_profile()).outcome == "installed"


def _swapping(cluster: Cluster, revision: int) -> bool:
    statuses = cluster.installer(revision).get("status", {}).get("containerStatuses", [])
    states = {status["name"]: status["state"] for status in statuses}
    return "terminated" in states.get("preflight", {}) and "running" in states["installer"]


@pytest.mark.parametrize("delay", [0.05, 0.6, pytest.param(2.0, marks=pytest.mark.core), 4.0, 6.0])
def test_a_killed_installer_continues(cluster: Cluster, delay: float) -> None:
    latest = cluster.latest
    own = f"{cgroups.sandbox_path(cluster.sandbox.name)}/".replace("-", "_")  # other tests run too

    def installers() -> list[int]:
        return pids("kube-scheduler-operator", "installer", cgroup=own)

    cluster.api.request("PATCH", SCHEDULER, {"spec": {"profile": cluster.another_profile()}})
    until(lambda: cluster.latest > latest and bool(installers()), 60, "no installer")
    time.sleep(delay)
    for pid in installers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: cluster.current == cluster.latest, 180, "the rollout did not end")
    assert cluster.on_node("ls", "-A", "/etc/kubernetes/manifests").split() == [
        "kube-scheduler.yaml"
    ]
    assert cluster.scheduler()[0]
    cluster.schedules()


def test_after_its_installer_pod_is_deleted_a_node_has_a_scheduler(cluster: Cluster) -> None:
    latest = cluster.latest
    cluster.api.request("PATCH", SCHEDULER, {"spec": {"profile": cluster.another_profile()}})
    until(lambda: cluster.latest > latest, 30, "no revision")
    until(lambda: _swapping(cluster, cluster.latest), 60, "the installer did not begin")
    time.sleep(1.0)
    name = cluster.installer(cluster.latest)["metadata"]["name"]
    cluster.api.request("DELETE", f"{PODS}/{name}")
    until(lambda: cluster.current == cluster.latest, 180, "the rollout did not end")
    cluster.schedules()


@pytest.mark.core
def test_a_scheduler_that_crashes_once_is_restarted_and_nothing_else_happens(
    cluster: Cluster,
) -> None:
    latest = cluster.latest
    pid, command = cluster.scheduler()
    os.kill(pid, signal.SIGKILL)
    until(lambda: cluster.scheduler()[0] not in (0, pid), 60, "no new scheduler")
    until(cluster.calm, 120, "no rest")
    assert cluster.latest == latest
    assert cluster.scheduler()[1] == command


@pytest.mark.core
def test_an_image_that_cannot_be_pulled_is_reported_and_the_next_edit_starts_at_once(
    cluster: Cluster,
) -> None:
    before = cluster.scheduler()
    nowhere = f"registry.invalid/kube-scheduler:v1.{minor(cluster.sandbox.kubernetes)}.99"
    cluster.operand_image(nowhere)
    try:
        until(
            lambda: cluster.condition("InstallerPodContainerWaitingDegraded")[0] == "True",
            180,
            "the image is not complained about",
        )
        _, message = cluster.condition("InstallerPodContainerWaitingDegraded")
        assert nowhere in message
        assert cluster.scheduler() == before
    finally:
        cluster.operand_image(None)
    cluster.rest(240)
    assert list(scheduler_processes(cluster.sandbox, cluster.node))


@pytest.mark.core
def test_a_killed_operator_continues_at_once(cluster: Cluster) -> None:
    latest = cluster.latest
    cluster.api.request("PATCH", SCHEDULER, {"spec": {"profile": cluster.another_profile()}})
    until(lambda: cluster.latest > latest, 30, "no revision")
    for pod in cluster.operators:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        cluster.api.request("DELETE", f"{PODS}/{pod}", body)
    until(lambda: cluster.current == cluster.latest, 180, "the rollout did not end")
    cluster.schedules()
