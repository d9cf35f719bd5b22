"""`status.running` and its columns name what the Ready Pods run, not what is rolled out."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.operator.status.running import (
    hashes_that_run,
    images_that_run,
    list_running,
    reported_image,
)

from .world import NAME, World

OLD, NEW = "registry.k8s.io/kube-scheduler:v1.35.4", "registry.k8s.io/kube-scheduler:v1.35.9"


def test_while_a_new_image_cannot_be_pulled_the_former_one_is_reported(world: World) -> None:
    good = world.installed(image=OLD, replicas=2)
    assert world.status()["running"] == [{"configHash": good, "image": OLD, "readyReplicas": 2}]
    world.put(image=NEW, replicas=2)
    world.run()
    bad = world.running()
    assert bad != good
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    statuses = [{"name": "kube-scheduler", "ready": False, "state": waiting}]
    world.pod(bad, 5, phase="Pending", containerStatuses=statuses)
    world.run()
    status = world.status()
    assert (status["configHash"], status["image"]) == (bad, NEW), "it is rolled out"
    assert status["running"] == [{"configHash": good, "image": OLD, "readyReplicas": 2}]


def test_without_a_ready_pod_nothing_runs(world: World) -> None:
    world.installed()
    world.no_pods()
    world.run()
    assert world.status()["running"] == []
    assert world.status()["configHash"]


@pytest.mark.parametrize(
    ("holder", "first"), [("c_1", "new"), ("a_1", "old"), ("", "old"), ("gone_1", "old")]
)
def test_the_content_of_the_leader_is_first_then_what_more_pods_run(
    holder: str, first: str
) -> None:
    serving = {"a": "old", "b": "old", "c": "new"}
    running = list_running(serving, holder, {"old": OLD, "new": NEW})
    counts = {"old": 2, "new": 1}
    images = {"old": OLD, "new": NEW}
    second = "new" if first == "old" else "old"
    assert running == [
        {"configHash": content, "image": images[content], "readyReplicas": counts[content]}
        for content in (first, second)
    ]


def test_a_content_whose_config_map_is_lost_has_no_image() -> None:
    assert list_running({"a": "old"}, "", {}) == [{"configHash": "old", "readyReplicas": 1}]


def test_the_list_has_the_bound_of_its_definition() -> None:
    serving = {f"pod-{n}": f"hash-{n}" for n in range(40)}
    running = list_running(serving, "pod-39_x", {})
    assert len(running) == 16
    assert running[0]["configHash"] == "hash-39"


OLDER_OPERATOR = {"configHash": "a", "image": OLD}
ROLLOUT = {
    "configHash": "b",
    "image": NEW,
    "running": [
        {"configHash": "a", "image": OLD, "readyReplicas": 2},
        {"configHash": "b", "image": NEW, "readyReplicas": 1},
    ],
}


@pytest.mark.parametrize(
    ("status", "hashes", "images"),
    [
        ({}, [], []),
        (OLDER_OPERATOR, ["a"], [OLD]),
        ({**OLDER_OPERATOR, "running": []}, [], []),
        (ROLLOUT, ["a", "b"], [OLD, NEW]),
    ],
)
def test_a_status_is_read(status: dict[str, Any], hashes: list[str], images: list[str]) -> None:
    scheduler = {"metadata": {"name": NAME}, "status": status}
    assert (hashes_that_run(scheduler), images_that_run(scheduler)) == (hashes, images)


def test_the_image_of_a_content_is_that_of_its_entry() -> None:
    scheduler = {"metadata": {"name": NAME}, "status": ROLLOUT}
    assert (reported_image(scheduler, "a"), reported_image(scheduler, "b")) == (OLD, NEW)
    assert reported_image(scheduler, "c") == ""
    idle = {"status": {**OLDER_OPERATOR, "running": []}}
    assert reported_image(idle, "a") == OLD, "the desired content when no Pod is Ready"
