"""What was written on nodes is taken away when no LoadPolicy is left, whoever was away."""

from __future__ import annotations

from datetime import timedelta

import yaml

from kube_scheduler_operator.kube.resource import CONFIG_MAPS, JOBS

from .world import World


def test_a_job_takes_away_what_may_have_been_written(world: World) -> None:
    world.installed(write=["crane"])
    world.remove()

    assert world.run() == ["create Job load-cleanup"]
    (container,) = world.one(JOBS, "load-cleanup")["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["--cleanup", "--annotations=own,crane"]
    assert world.run() == []


def test_then_nothing_is_left(world: World) -> None:
    world.installed()
    world.remove()
    world.run()

    world.end_job()

    assert world.run() == ["delete ConfigMap load-state", "delete Job load-cleanup"]
    assert world.everything() == set()
    assert world.events == ["Nothing that was written because of a LoadPolicy is left on any node"]


def test_an_operator_that_was_killed_between_the_two_goes_on(world: World) -> None:
    world.installed()
    world.remove()
    world.run()
    world.end_job()
    state = world.one(CONFIG_MAPS, "load-state")
    world._forget(CONFIG_MAPS, state)

    assert world.run() == ["delete Job load-cleanup"]


def test_a_policy_that_comes_back_stops_the_job_and_keeps_what_it_wants(world: World) -> None:
    world.installed(write=["crane"])
    world.remove()
    world.run()

    world.put(write=["safe"])
    writes = world.run()

    assert "delete Job load-cleanup" in writes
    assert world.written() == "own,crane,safe"
    assert world.policy()["remove"] == ["crane"]


def test_a_job_that_is_ending_is_waited_for(world: World) -> None:
    world.installed()
    world.remove()
    world.run()
    job = world.one(JOBS, "load-cleanup")
    world.change(JOBS, "load-cleanup", metadata={**job["metadata"], "deletionTimestamp": "x"})

    assert world.run() == []
    assert world.looked().requeue_after == 1.0


def test_a_job_that_failed_is_told_and_tried_again_later(world: World) -> None:
    world.installed()
    world.remove()
    world.run()

    world.end_job("Failed")
    assert world.run() == []
    assert world.degraded() == (
        "annotations of a LoadPolicy that is gone are still on nodes: Job "
        "kube-scheduler-operator/load-cleanup failed; see the logs of its pods"
    )

    wait = world.looked().requeue_after
    assert wait is not None
    world.now += timedelta(seconds=wait)
    assert world.run() == ["delete Job load-cleanup", "create Job load-cleanup"]


def test_a_job_that_hangs_is_told(world: World) -> None:
    world.installed()
    world.remove()
    world.run()
    assert world.degraded() == ""

    wait = world.looked().requeue_after
    assert wait is not None
    world.now += timedelta(seconds=wait)

    assert "has not come to its end" in world.degraded()


def test_what_the_api_refuses_is_told(world: World) -> None:
    world.installed()
    world.remove()
    world.forbidden = {JOBS}

    world.run()

    assert "403" in world.degraded()


def test_where_there_never_was_a_policy_nothing_is_done(world: World) -> None:
    assert world.run() == []
    assert world.degraded() == ""


def test_the_job_may_run_where_it_must_and_only_as_nobody(world: World) -> None:
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
