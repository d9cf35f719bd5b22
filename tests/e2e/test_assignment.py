"""Pods of a managed cluster are packed without naming a scheduler, by policy and by webhook.

Three workers as EKS shows them, and what README gives for such clusters. Then the operator, the
webhook and the scheduler are away, each alone: no Pod is refused or lost.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster import images, lifecycle, model, operator, releases
from cluster.api import ApiError
from cluster.console import run
from cluster.observe import OPERATOR_NAMESPACE, until
from kube_scheduler_operator.base import names

from ..expect import condition_of
from .conftest import (
    DEPLOYMENT,
    NAME_OF_ASSIGNED,
    REPOSITORY,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    Cluster,
    up,
)
from .documented import commands
from .faults import dead, pids_of

PACKED, DEFAULT = "packed", "default-scheduler"
SELECTED, OTHER = "team-packed", "team-other"
REPLICAS = 6
LOST = 3
"""Calls of the webhook that a busy machine may not answer within the second that it has."""
NEWEST = releases.PINNED[max(releases.PINNED)]
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
AKS = "/apis/aks.azure.com/v1alpha1/schedulerconfigurations/upstream"
BINDING = f"{ADMISSION}/mutatingadmissionpolicybindings/{names.ASSIGNMENT}"


class Assigned(Cluster):
    """A managed cluster with one way of assigning Pods."""

    way = ""  # policy or webhook

    def condition_of(self, type_: str) -> tuple[str, str]:
        found = self.api.request("GET", f"{SECONDARY_SCHEDULERS}/{PACKED}")
        status, _, message = condition_of(found, type_)
        return status, message

    def assigning(self) -> bool:
        """New Pods are assigned in fact: the webhook is trusted, the policy is known."""
        return self.condition_of(names.ASSIGNED)[0] == "True" and self.scheduler_of_new() == PACKED

    def scheduler_of_new(self) -> str:
        body = _pod("probe")
        path = f"/api/v1/namespaces/{SELECTED}/pods?dryRun=All"
        return str(self.api.request("POST", path, body)["spec"]["schedulerName"])

    def pods_in(self, namespace: str) -> list[dict[str, Any]]:
        items = self.api.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        found: list[dict[str, Any]] = items
        return found

    def aks_configuration(self) -> str:
        """The scheduler configuration that AKS reads; empty if it has none."""
        try:
            return str(self.api.request("GET", AKS)["spec"]["rawConfig"])
        except ApiError:
            return ""

    def seen_events(self) -> Counter[tuple[str, ...]]:
        """How often each event was seen, except a missing cluster DNS."""
        found: Counter[tuple[str, ...]] = Counter()
        for event in self.api.request("GET", "/api/v1/events")["items"]:
            if event["reason"] != "MissingClusterDNS":
                count = event.get("count") or (event.get("series") or {}).get("count") or 1
                about = event["involvedObject"]
                key = (about["kind"], about.get("name", ""), event["reason"], event["message"])
                found[key] += count
        return found

    def clean(self, namespace: str) -> None:
        self.kubectl("-n", namespace, "delete", "deployments,pods", "--all", "--now", "--wait")


def _pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "c",
                    "image": images.PAUSE,
                    "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}},
                }
            ],
        },
    }


def _deployment() -> dict[str, Any]:
    spec = _pod("x")["spec"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": "50m", "memory": "32Mi"}}
    labels = {"app": "demo"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "demo"},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _cluster(way: str, like: str) -> Any:
    """A parameter; clusters like EKS are always tested, the others in `make soak`."""
    marks = () if like == "eks" else pytest.mark.soak
    return pytest.param((way, like), id=f"{like}-{way}", marks=marks)


CLUSTERS = [
    _cluster("webhook", "eks"),
    _cluster("policy", "eks"),
    _cluster("policy", "k3s"),
    _cluster("webhook", "gke"),
    _cluster("webhook", "aks"),
]


@pytest.fixture(scope="module", params=CLUSTERS)
def assigned(request: pytest.FixtureRequest) -> Iterator[Assigned]:
    way, like = request.param
    kubernetes = NEWEST if way == "policy" else None
    kind = lifecycle.ClusterKind(model.MANAGED, like)
    with up(
        NAME_OF_ASSIGNED, 0, 3, with_operator=False, kind=kind, kubernetes=kubernetes
    ) as sandbox:
        operator.load_image(sandbox)
        cluster = Assigned(sandbox)
        cluster.way = way
        for name, labels in ((SELECTED, {"scheduling": "packed"}), (OTHER, {})):
            body = {"metadata": {"name": name, "labels": labels}}
            cluster.api.create("/api/v1/namespaces", body)
            account = {"metadata": {"name": "default"}}
            cluster.api.create(f"/api/v1/namespaces/{name}/serviceaccounts", account)
        yield cluster


@pytest.mark.presubmit_first
def test_the_commands_of_the_readme_pack_the_pods_of_a_labelled_namespace(
    assigned: Assigned,
) -> None:
    script = commands("install kustomize managed", older=assigned.way == "webhook")
    kubectl = assigned.sandbox.state / "bin" / "kubectl"
    for line in script.splitlines():
        _, *words = shlex.split(line, comments=True)
        run(kubectl, f"--kubeconfig={assigned.sandbox.kubeconfig}", *words, cwd=REPOSITORY)
    began = time.monotonic()
    until(assigned.assigning, 120, lambda: f"{assigned.condition_of(names.ASSIGNED)}")
    print(f"{assigned.way}: Pods are assigned {time.monotonic() - began:.1f} s after the commands")
    nodes, schedulers = {}, {}
    # One after the other, because Pods of the other one would change which node is the fullest.
    for namespace in (OTHER, SELECTED):
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        assigned.api.request("POST", path, _deployment())

        def placed(namespace: str = namespace) -> bool:
            pods = assigned.pods_in(namespace)
            return sum("nodeName" in pod["spec"] for pod in pods) == REPLICAS

        until(placed, 60, lambda: "not every Pod has a node")
        pods = assigned.pods_in(namespace)
        nodes[namespace] = Counter(pod["spec"]["nodeName"] for pod in pods)
        schedulers[namespace] = {pod["spec"]["schedulerName"] for pod in pods}
    print(f"{assigned.way}: nodes of the selected {dict(nodes[SELECTED])}, of the other "
          f"{dict(nodes[OTHER])}")  # fmt: skip
    assert schedulers == {SELECTED: {PACKED}, OTHER: {DEFAULT}}
    assert len(nodes[SELECTED]) == 1, "packed"
    assert len(nodes[OTHER]) == 3, "spread"
    for namespace in (SELECTED, OTHER):
        assigned.clean(namespace)


@pytest.mark.soak
@pytest.mark.timeout(400, func_only=True)
def test_at_rest_nothing_is_degraded_and_no_event_repeats(assigned: Assigned) -> None:
    if assigned.sandbox.like == "aks":
        profile = {
            "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
            "kind": "SchedulerProfile",
            "metadata": {"name": "spare"},
            "spec": {"scheduler": "aks", "base": "HighNodeUtilization"},
        }
        assigned.api.create(SCHEDULER_PROFILES, profile)
        until(
            lambda: "schedulerName: spare" in assigned.aks_configuration(),
            60,
            "the profile is not in AKS' SchedulerConfiguration",
        )
    until(lambda: assigned.cluster_operator("Available")[0] == "True", 60, "not Available")
    time.sleep(30)  # of the installation
    before = assigned.seen_events()
    end = time.monotonic() + 150
    while time.monotonic() < end:
        assert assigned.cluster_operator("Degraded")[0] == "False"
        time.sleep(5)
    again = {key: count for key, count in assigned.seen_events().items() if count > before[key]}
    print(f"{assigned.way}: events in 150 s at rest: {again or 'none'}")
    assert not again


@pytest.mark.presubmit_first
def test_with_the_operator_away_no_pod_is_refused_or_waits(assigned: Assigned) -> None:
    scale = f"{DEPLOYMENT}/scale"
    assigned.api.request("PATCH", scale, {"spec": {"replicas": 0}})
    until(lambda: not assigned.operators, 60, "the operator does not end")
    try:
        found = _created(assigned, 10)
        expected = PACKED if assigned.way == "policy" else DEFAULT
        assert {scheduler for scheduler, _ in found} == {expected}
        _report(assigned, "operator away", found)
    finally:
        assigned.api.request("PATCH", scale, {"spec": {"replicas": 2}})
    until(assigned.assigning, 90, lambda: f"{assigned.condition_of(names.ASSIGNED)}")


def test_while_the_operators_pods_are_replaced_new_pods_are_assigned(assigned: Assigned) -> None:
    """As in every upgrade of it. A Service with a Pod that does not listen loses assignments."""
    old, found = set(assigned.operators), Counter[str]()
    restart = ("rollout", "restart", f"deployment/{names.PROGRAM}")
    assigned.kubectl("-n", OPERATOR_NAMESPACE, *restart)
    replaced = 0.0
    deadline = time.monotonic() + 180
    while not replaced or time.monotonic() - replaced < 10:
        assert time.monotonic() < deadline, f"not replaced: {old & set(assigned.operators)}"
        found[assigned.scheduler_of_new()] += 1
        if not replaced and not old & set(assigned.operators):
            replaced = time.monotonic()
        time.sleep(0.1)
    print(f"{assigned.way}: while the operator's Pods are replaced: {dict(found)}")
    assert found[DEFAULT] <= LOST, found


def test_without_webhook_or_policy_pods_go_to_the_default_scheduler(assigned: Assigned) -> None:
    """A webhook that accepts connections and never answers is the slowest case."""
    with _hanging(assigned) if assigned.way == "webhook" else _without_binding(assigned):
        until(lambda: assigned.scheduler_of_new() == DEFAULT, 30, "it is still applied")
        found = _created(assigned, 10)
    assert {scheduler for scheduler, _ in found} == {DEFAULT}
    _report(assigned, f"{assigned.way} gone", found)
    until(assigned.assigning, 90, lambda: f"{assigned.condition_of(names.ASSIGNED)}")


def _hanging(assigned: Assigned) -> contextlib.AbstractContextManager[None]:
    """Both replicas of the operator are stopped, and their ports stay open."""
    return _stopped(pids_of(assigned, f"app.kubernetes.io/name={names.PROGRAM}", "operator"))


@contextlib.contextmanager
def _stopped(stopped: list[int]) -> Iterator[None]:
    assert len(stopped) >= 2
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def _without_binding(assigned: Assigned) -> Iterator[None]:
    assigned.api.request("DELETE", BINDING)
    try:
        yield
    finally:
        directory = str(REPOSITORY / "deploy" / "assignment" / assigned.way)
        assigned.kubectl("apply", "--server-side", "-k", directory)


def test_with_the_scheduler_dead_new_pods_go_to_the_default_one(assigned: Assigned) -> None:
    selector = f"{names.SECONDARY_LABEL}={PACKED}"

    def processes() -> list[int]:
        return pids_of(assigned, selector, "kube-scheduler")

    made: list[tuple[str, float]] = []
    with dead(processes):
        began = time.monotonic()
        withdrawn = 0.0
        for number in range(300):
            name = f"dead-{number}"
            made.append((_create(assigned, name), time.monotonic()))
            if made[-1][0] == DEFAULT:
                withdrawn = time.monotonic() - began
                break
            time.sleep(0.2)
        assert withdrawn, assigned.condition_of(names.ASSIGNED)
        print(f"{assigned.way}: assignment withdrawn {withdrawn:.1f} s after the scheduler's death")
        found = _created(assigned, 10, "after")
        assert {scheduler for scheduler, _ in found} == {DEFAULT}
        _report(assigned, "scheduler dead", found)
        waiting = [name for name, pod in _by_name(assigned).items() if not _bound(pod)]
        if waiting:
            until(
                lambda: "for it (" in assigned.condition_of(names.ASSIGNED)[1],
                90,
                lambda: f"{waiting}: {assigned.condition_of(names.ASSIGNED)}",
            )
    until(
        lambda: all(map(_bound, _by_name(assigned).values())),
        120,
        lambda: f"lost: {[name for name, pod in _by_name(assigned).items() if not _bound(pod)]}",
    )
    print(f"{assigned.way}: {len(waiting)} of {len(made)} Pods waited for the scheduler's return")
    until(assigned.assigning, 120, lambda: f"{assigned.condition_of(names.ASSIGNED)}")
    assigned.clean(SELECTED)


def test_with_the_scheduler_hanging_new_pods_go_to_the_default_one(assigned: Assigned) -> None:
    """Its Pods are Ready for half a minute; its Lease expires after 15 s."""
    until(assigned.assigning, 120, lambda: f"{assigned.condition_of(names.ASSIGNED)}")
    with _stopped(pids_of(assigned, f"{names.SECONDARY_LABEL}={PACKED}", "kube-scheduler")):
        began = time.monotonic()
        until(lambda: assigned.scheduler_of_new() == DEFAULT, 25, "its Lease has expired")
        print(f"{assigned.way}: withdrawn {time.monotonic() - began:.1f} s after it was stopped")
        assert "no renewal of the Lease" in assigned.condition_of(names.ASSIGNED)[1]
    until(assigned.assigning, 120, lambda: f"{assigned.condition_of(names.ASSIGNED)}")


def _by_name(assigned: Assigned) -> dict[str, dict[str, Any]]:
    return {pod["metadata"]["name"]: pod for pod in assigned.pods_in(SELECTED)}


def _bound(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _create(assigned: Assigned, name: str) -> str:
    """Create a Pod, which must never be refused; its schedulerName."""
    path = f"/api/v1/namespaces/{SELECTED}/pods"
    return str(assigned.api.request("POST", path, _pod(name))["spec"]["schedulerName"])


def _created(assigned: Assigned, count: int, prefix: str = "p") -> list[tuple[str, float]]:
    """Create Pods one by one; (schedulerName, seconds until it had a node) of each."""
    found = []
    for number in range(count):
        began = time.monotonic()
        name = f"{prefix}-{number}"
        scheduler = _create(assigned, name)
        path = f"/api/v1/namespaces/{SELECTED}/pods/{name}"

        def bound(path: str = path) -> bool:
            return _bound(assigned.api.request("GET", path))

        _soon(bound, 60)
        found.append((scheduler, time.monotonic() - began))
    for number in range(count):
        with contextlib.suppress(ApiError):
            path = f"/api/v1/namespaces/{SELECTED}/pods/{prefix}-{number}"
            assigned.api.request("DELETE", f"{path}?gracePeriodSeconds=0")
    return found


def _soon(condition: Callable[[], bool], seconds: float) -> None:
    """As `until`, with polls that are short beside what is measured."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "a Pod was not scheduled"
        time.sleep(0.01)


def _report(assigned: Assigned, what: str, found: list[tuple[str, float]]) -> None:
    waits = [seconds for _, seconds in found]
    print(f"{assigned.way}, {what}: {len(found)} Pods, from the request to a node "
          f"{statistics.median(waits):.2f} s (median), {max(waits):.2f} s (longest)")  # fmt: skip
