"""Annotations are removed from nodes after the last LoadPolicy is deleted."""

from __future__ import annotations

from datetime import timedelta

import yaml

from kube_scheduler_operator.kube.resource import CONFIG_MAPS, JOBS

from .world import World


def test_job_removes_all_recorded_families(world: World) -> None:
    world.installed(write=["crane"])
    world.remove()

    assert world.run() == ["create Job load-cleanup"]
    (container,) = world.one(JOBS, "load-cleanup")["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["--cleanup", "--annotations=own,crane"]
    assert world.run() == []


def test_state_and_job_are_deleted_after_completion(world: World) -> None:
    world.installed()
    world.remove()
    world.run()

    world.end_job()

    assert world.run() == ["delete ConfigMap load-state", "delete Job load-cleanup"]
    assert world.everything() == set()
    assert world.events == ["All load annotations were removed from all nodes"]


def test_interrupted_deletion_is_finished(world: World) -> None:
    world.installed()
    world.remove()
    world.run()
    world.end_job()
    state = world.one(CONFIG_MAPS, "load-state")
    world.cluster.remove(CONFIG_MAPS, "load-state", state["metadata"]["namespace"])

    assert world.run() == ["delete Job load-cleanup"]


def test_new_policy_stops_the_job_and_keeps_its_families(world: World) -> None:
    world.installed(write=["crane"])
    world.remove()
    world.run()

    world.put(write=["safe"])
    writes = world.run()

    assert "delete Job load-cleanup" in writes
    assert world.written() == "own,crane,safe"
    assert world.policy()["remove"] == ["crane"]


def test_job_being_deleted_is_awaited(world: World) -> None:
    world.installed()
    world.remove()
    world.run()
    job = world.one(JOBS, "load-cleanup")
    world.change(JOBS, "load-cleanup", metadata={**job["metadata"], "deletionTimestamp": "x"})

    assert world.run() == []
    assert world.reconciled().requeue_after == 1.0


def test_failed_job_is_reported_and_retried_later(world: World) -> None:
    world.installed()
    world.remove()
    world.run()

    world.end_job("Failed")
    assert world.run() == []
    assert world.degraded() == (
        "nodes still have annotations of a deleted LoadPolicy: Job "
        "kube-scheduler-operator/load-cleanup failed; see the logs of its pods"
    )

    wait = world.reconciled().requeue_after
    assert wait is not None
    world.cluster.now += timedelta(seconds=wait)
    assert world.run() == ["delete Job load-cleanup", "create Job load-cleanup"]


def test_hanging_job_is_reported(world: World) -> None:
    world.installed()
    world.remove()
    world.run()
    assert world.degraded() == ""

    wait = world.reconciled().requeue_after
    assert wait is not None
    world.cluster.now += timedelta(seconds=wait)

    assert "has not finished after 600 s" in world.degraded()


def test_rejected_write_is_reported(world: World) -> None:
    world.installed()
    world.remove()
    world.forbidden = {JOBS}

    world.run()

    assert "403" in world.degraded()


def test_nothing_is_done_without_any_policy(world: World) -> None:
    assert world.run() == []
    assert world.degraded() == ""


def test_job_tolerates_the_control_plane_and_runs_unprivileged(world: World) -> None:
    world.settings = type(world.settings)(operator_image="image:1", image_pull_secrets=("pull",))
    world.installed()
    world.remove()
    world.run()

    pod = world.one(JOBS, "load-cleanup")["spec"]["template"]["spec"]

    assert pod["serviceAccountName"] == "load-annotator"
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["image"] == "image:1"
    assert yaml.safe_dump(pod)
