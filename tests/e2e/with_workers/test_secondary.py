"""A second scheduler as a Deployment: what people set up by hand, and what goes wrong with it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import images
from cluster.api import ApiError
from cluster.observe import OPERATOR_NAMESPACE, delete_pod, until

from ...expect import condition_of, has_conditions
from ..audit import refusals
from ..conftest import (
    PODS,
    PODS_IN_DEFAULT,
    REPOSITORY,
    SECONDARY_SCHEDULERS,
    Cluster,
)
from ..faults import pids
from ..workloads import apply, create, delete, made_for, pod

NAME = "my-scheduler"
pytestmark = pytest.mark.usefixtures("no_pods_left")

EXAMPLES = REPOSITORY / "docs/examples"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases/{NAME}"
SERVICE = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/{NAME}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
BINDINGS = (
    f"{RBAC}/clusterrolebindings/{NAME}-as-kube-scheduler",
    f"{RBAC}/namespaces/kube-system/rolebindings/{NAME}-authentication-reader",
    f"{RBAC}/namespaces/{OPERATOR_NAMESPACE}/rolebindings/{NAME}",
)
ROLE = f"{RBAC}/namespaces/{OPERATOR_NAMESPACE}/roles/{NAME}"
LEASE_TIME = 15
PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high-priority"},
    "value": 1000000,
    "preemptionPolicy": "Never",
}
SLOT = "example.com/slot"
"""A resource of which one node has one, so that only the first pod fits."""


@pytest.fixture(scope="module")
def second(shared_cluster: Cluster, workers: tuple[str, str]) -> Iterator[Cluster]:
    """The cluster with three replicas of my-scheduler, one of them active."""
    shared_cluster.rest_with_default_profile()  # it spreads the replicas
    apply(shared_cluster, (EXAMPLES / "my-scheduler.yaml").read_text())
    until(lambda: _is_well(shared_cluster), 120, lambda: f"not well: {_status(shared_cluster)}")
    yield shared_cluster
    with contextlib.suppress(ApiError):
        shared_cluster.api.request("DELETE", f"{SECONDARY_SCHEDULERS}/{NAME}")


def _status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.api.request("GET", f"{SECONDARY_SCHEDULERS}/{NAME}")
    return dict(found.get("status", {}))


def _is_well(cluster: Cluster) -> bool:
    obj = cluster.api.request("GET", f"{SECONDARY_SCHEDULERS}/{NAME}")
    status = obj.get("status", {})
    return (
        status.get("observedGeneration") == obj["metadata"]["generation"]
        and status.get("readyReplicas") == 3
        and has_conditions(obj, Available="True", Progressing="False", Degraded="False")
    )


def _scheduled(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Pod -> its event Scheduled."""
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    events = cluster.api.request("GET", path)["items"]
    return {e["regarding"]["name"]: e for e in events if e["reason"] == "Scheduled"}


def _leader(cluster: Cluster) -> str:
    return str(cluster.api.request("GET", LEASE)["spec"].get("holderIdentity") or "")


def _pod_of(holder: str) -> str:
    """A holder calls itself by its pod and something random."""
    return holder.rpartition("_")[0]


def _kill(cluster: Cluster, pod: str) -> None:
    """SIGKILL to its kube-scheduler; the pod goes too, or it would be there again to lead."""
    uid = cluster.api.request("GET", f"{PODS}/{pod}")["metadata"]["uid"].replace("-", "_")
    victims = pids("kube-scheduler", cgroup=uid)
    assert victims, "the leader runs on this machine"
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    delete_pod(cluster.api, pod, OPERATOR_NAMESPACE)


def _have_led(cluster: Cluster) -> list[str]:
    """The pods whose logs say that they hold, or held, the Lease."""
    folders = cluster.sandbox.state.glob(f"nodes/*/var/log/pods/{OPERATOR_NAMESPACE}_{NAME}-*")
    names = {pod["metadata"]["name"] for pod in _own_pods(cluster)}
    return [
        folder.name.split("_")[1]
        for folder in folders
        if folder.name.split("_")[1] in names
        and any(b"uccessfully acquired lease" in log.read_bytes() for log in folder.rglob("*.log"))
    ]


@pytest.mark.presubmit
def test_pods_are_bound_by_the_scheduler_that_they_name(second: Cluster) -> None:
    pods = _own_pods(second)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 3, "spread over the nodes"
    assert _have_led(second) == [_pod_of(_leader(second))], "one is active"
    create(second, pod("of-mine", NAME), pod("of-default", "default-scheduler"))
    until(lambda: {"of-mine", "of-default"} <= set(_scheduled(second)), 30, "not bound")
    found = _scheduled(second)
    assert found["of-mine"]["reportingController"] == NAME
    assert found["of-default"]["reportingController"] == "default-scheduler"
    delete(second, "of-mine", "of-default")
    assert _pod_of(_leader(second)) in {pod["metadata"]["name"] for pod in pods}
    main = second.kubectl(
        "get", "lease", "-n", "kube-system", "kube-scheduler", "-o", "jsonpath={.spec}"
    )
    assert NAME not in main, "the main scheduler's Lease is its own"


def test_a_mistake_replaces_nothing(second: Cluster) -> None:
    before = sorted(pod["metadata"]["name"] for pod in _own_pods(second))
    wrong = {"spec": {"profiles": [{"plugins": {"score": {"enabled": [{"name": "Nope"}]}}}]}}
    second.api.request("PATCH", f"{SECONDARY_SCHEDULERS}/{NAME}", wrong)

    def message() -> str:
        return condition_of({"status": _status(second)}, "Degraded")[2]

    until(lambda: 'has no plugin "Nope"' in message(), 30, lambda: f"not reported: {message()!r}")
    assert sorted(pod["metadata"]["name"] for pod in _own_pods(second)) == before
    second.api.request("PATCH", f"{SECONDARY_SCHEDULERS}/{NAME}", {"spec": {"profiles": None}})
    until(lambda: _is_well(second), 30, lambda: f"not well: {_status(second)}")


def test_changed_objects_are_restored(second: Cluster) -> None:
    # More than there should be, so that its scheduler lacks nothing meanwhile.
    subject = {"kind": "ServiceAccount", "name": "another", "namespace": "default"}
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    more = dict.fromkeys(BINDINGS, ("subjects", subject)) | {ROLE: ("rules", secrets)}
    good = {path: second.api.request("GET", path)[field] for path, (field, _) in more.items()}
    for path, (field, one) in more.items():
        second.api.request("PATCH", path, {field: [*good[path], one]})
    port = {"name": "other", "port": 1, "protocol": "TCP"}
    second.api.request("PATCH", SERVICE, {"spec": {"ports": [port]}})

    def wrong() -> list[str]:
        found = [
            path
            for path, (field, _) in more.items()
            if second.api.request("GET", path)[field] != good[path]
        ]
        (port,) = second.api.request("GET", SERVICE)["spec"]["ports"]
        return [*found, *([SERVICE] if port["port"] != 10259 else [])]

    until(lambda: not wrong(), 30, lambda: f"not put back: {wrong()}")
    until(lambda: _is_well(second), 30, lambda: f"not well: {_status(second)}")


def _own_pods(cluster: Cluster) -> list[dict[str, Any]]:
    path = f"{PODS}?labelSelector=app%3Dsecondary-scheduler"
    return list(cluster.api.request("GET", path)["items"])


def test_after_the_leader_is_killed_the_next_one_starts_with_the_highest_priority(
    second: Cluster, workers: tuple[str, str]
) -> None:
    apply(second, PRIORITY)
    _have_slots(second, workers[0], "1")
    slot = {"resources": {"requests": {SLOT: "1"}, "limits": {SLOT: "1"}}}
    before = _leader(second)
    start = time.monotonic()
    _kill(second, _pod_of(before))
    low = [f"low-{number}" for number in range(40)]
    create(second, *(pod(name, NAME, **_with(slot)) for name in low))
    create(second, pod("high", NAME, **_with(slot), priorityClassName="high-priority"))
    until(lambda: _leader(second) != before, 60, "no replica takes over")
    seconds = time.monotonic() - start
    assert _pod_of(_leader(second)) != _pod_of(before)
    # The standbys try every 2 s, and up to 1.2 times that later: client-go's leader election.
    assert seconds <= LEASE_TIME + 2 * (2 + 2.4) + 2, f"{seconds:.0f} s"
    until(lambda: {"high", *low} & set(_scheduled(second)), 60, "none is bound")
    until(lambda: all(_was_tried(second, name) for name in low), 60, "not all were tried")
    assert {"high", *low} & set(_scheduled(second)) == {"high"}, "asked for last, served first"
    delete(second, "high", *low)
    _have_slots(second, workers[0], None)
    second.kubectl("delete", "priorityclass", "high-priority")


def _with(container: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": images.PAUSE, **container}]}


def _have_slots(cluster: Cluster, node: str, count: str | None) -> None:
    amounts = {"capacity": {SLOT: count}, "allocatable": {SLOT: count}}
    cluster.api.request("PATCH", f"/api/v1/nodes/{node}/status", {"status": amounts})


def _was_tried(cluster: Cluster, pod: str) -> bool:
    """Whether a scheduler has found no node for it."""
    found = cluster.api.request("GET", f"{PODS_IN_DEFAULT}/{pod}")
    return condition_of(found, "PodScheduled")[1] == "Unschedulable"


@pytest.mark.timeout(420, func_only=True)
def test_three_profiles_in_one_process_and_one_from_a_scheduler_profile(second: Cluster) -> None:
    apply(second, (EXAMPLES / "my-scheduler-three-profiles.yaml").read_text())
    further = {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "SchedulerProfile",
        "metadata": {"name": "packed"},
        "spec": {"scheduler": NAME, "base": "HighNodeUtilization"},
    }
    apply(second, further)
    asked = (NAME, "my-scheduler2", "my-scheduler3", "packed")

    def served() -> list[str]:
        return [profile["schedulerName"] for profile in _status(second).get("profiles", [])]

    until(lambda: set(served()) == set(asked), 60, lambda: f"served: {served()}")
    until(lambda: _is_well(second), 180, lambda: f"not well: {_status(second)}")
    create(second, *(pod(f"of-{name}", name) for name in asked))
    until(lambda: {f"of-{name}" for name in asked} <= set(_scheduled(second)), 30, "not bound")
    found = _scheduled(second)
    assert {name: found[f"of-{name}"]["reportingController"] for name in asked} == {
        name: name for name in asked
    }
    delete(second, *(f"of-{name}" for name in asked))
    second.kubectl("delete", "sprof", "packed")


def test_deleting_it_removes_everything_and_pods_with_its_name_get_an_event(
    second: Cluster,
) -> None:
    path = f"{SECONDARY_SCHEDULERS}/{NAME}"
    since = second.api.request("GET", path)["metadata"]["creationTimestamp"]
    assert refusals(second.sandbox, f"{OPERATOR_NAMESPACE}:{NAME}", since) == []
    second.api.request("DELETE", path)

    def left() -> list[str]:
        return made_for(second, f"kube-scheduler-operator.dev/secondary-scheduler={NAME}")

    until(lambda: not left(), 90, lambda: f"left: {left()}")
    create(second, pod("still-asks", NAME))

    def events() -> str:
        path = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dstill-asks"
        return " ".join(e["reason"] for e in second.api.request("GET", path)["items"])

    until(lambda: "NoSuchScheduler" in events(), 150, lambda: f"no event: {events()!r}")
    delete(second, "still-asks")
