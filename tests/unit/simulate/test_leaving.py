"""Pods that terminate or are resized: what they hold, and what is known of their end."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.simulate.leaving import (
    LeavingPod,
    deferred_resizes,
    held,
    leaving_pods,
    resized,
)
from kube_scheduler_operator.simulate.utilization import utilization_of
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]


def _pod(cpu: str, **status: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "app"},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Running", **status},
    }


def _resized(cpu: str, *, allocated: str, actual: str, reason: str = "") -> Object:
    condition = {"type": "PodResizeInProgress", "status": "True", "reason": reason}
    container = {
        "name": "main",
        "allocatedResources": {"cpu": allocated},
        "resources": {"requests": {"cpu": actual}},
    }
    return _pod(cpu, conditions=[condition], containerStatuses=[container])


def _world(*pods: Object, ready: str = "True") -> World:
    world = World()
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]}
    metadata = {"name": "n"}
    world.add({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
    for pod in pods:
        world.add(pod)
    return world


def test_a_resize_holds_the_most_of_spec_allocated_and_actual() -> None:
    assert held(_pod("500m")) == {"cpu": 500}
    assert held(_resized("500m", allocated="500m", actual="3500m")) == {"cpu": 3500}
    assert held(_resized("500m", allocated="3", actual="2")) == {"cpu": 3000}
    assert held(_resized("4", allocated="3", actual="3")) == {"cpu": 4000}


def test_a_resize_that_is_infeasible_does_not_count_with_its_spec() -> None:
    pod = _resized("4", allocated="3", actual="3", reason="Infeasible")
    assert held(pod) == {"cpu": 3000}
    assert leaving_pods(_world(pod)) == []  # it does not end by itself


def test_free_room_is_without_what_a_resize_holds() -> None:
    world = _world(_resized("500m", allocated="3500m", actual="3500m"))
    assert utilization_of(world).free("n")["cpu"] == 500


def test_a_resize_is_described_and_ends_with_the_spec() -> None:
    pod = _resized("500m", allocated="3500m", actual="3500m")
    ((found, known),) = leaving_pods(_world(pod))
    assert known.amounts == ("it holds 3500m of cpu, and its spec asks for 500m",)
    assert (known.terminates, known.hangs) == (False, False)
    assert held(resized(found)) == {"cpu": 500}
    growing = _resized("3", allocated="2", actual="2")
    assert leaving_pods(_world(growing)) == []


def test_a_pod_terminates_since_its_deletion_was_requested() -> None:
    pod = _pod("1")
    pod["metadata"] |= {
        "deletionTimestamp": "2026-03-01T08:05:00Z",
        "deletionGracePeriodSeconds": 30,
    }
    ((_, known),) = leaving_pods(_world(pod))
    assert known == LeavingPod("app/p", "n", terminates=True, since="2026-03-01T08:04:30Z")
    assert not known.hangs
    ((_, without_kubelet),) = leaving_pods(_world(pod, ready="Unknown"))
    assert without_kubelet.hangs
    pod["metadata"]["deletionTimestamp"] = "soon"
    ((_, unknown),) = leaving_pods(_world(pod))
    assert unknown.since == ""


def test_finalizers_are_kept_of_pods_that_terminate_and_are_bounded() -> None:
    pod = _pod("1")
    pod["metadata"]["finalizers"] = [f"example.com/{at}\n" for at in range(1000)]
    assert leaving_pods(_world(pod)) == []
    pod["metadata"]["deletionTimestamp"] = "2026-03-01T08:05:00Z"
    ((_, known),) = leaving_pods(_world(pod))
    assert len(known.finalizers) == 10
    assert "\n" not in "".join(known.finalizers)
    assert known.hangs


def test_a_deferred_resize_keeps_what_its_pod_does_not_have() -> None:
    pod = _resized("6", allocated="2", actual="2", reason="Deferred")
    ((found, kept, freed),) = deferred_resizes(_world(pod))
    assert found["metadata"]["name"] == "p"
    assert held(kept) == {"cpu": 2000}
    assert freed == "its node keeps 6 of cpu for it; it has 2"
    assert deferred_resizes(_world(_resized("6", allocated="2", actual="2"))) == []
    assert (
        deferred_resizes(_world(_resized("2", allocated="2", actual="2", reason="Deferred"))) == []
    )
