"""`kubectl scheduler why` names the cause and the smallest change, and the change helps.

Each kind of Pending is made at a real API server with a real kube-scheduler. The command reads the
cluster, its message is the one that kube-scheduler wrote, and after the change that it names first
kube-scheduler gives the pod a node.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.simulate.decisions import scheduled_condition
from kube_scheduler_operator.simulate.probes import without_preemption

from ..seeds import some_in_presubmit
from .conftest import ApiServer, RefusedError
from .pending_kinds import (
    CONFIGURATION,
    KINDS,
    NAMESPACE,
    OTHER_NAMESPACE,
    PRIORITIES,
    Object,
    Situation,
)
from .played_nodes import is_taken_up, until
from .test_simulation_against_cluster import Client

SECONDS: Final = 30
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Cluster:
    """A real API server with a real kube-scheduler.

    Attributes:
        config: the file of kube-scheduler's configuration.
    """

    def __init__(self, api: ApiServer, binary: Path, folder: Path) -> None:
        self.client = Client(api)
        self.binary = binary
        self.kubeconfig = api.kubeconfig
        self.config = folder / "config.json"
        connection = {"kubeconfig": str(api.kubeconfig), "qps": 1000, "burst": 1000}
        self.config.write_text(json.dumps({**CONFIGURATION, "clientConnection": connection}))
        self._log = (folder / "kube-scheduler.log").open("wb")
        self._process = subprocess.Popen(
            [binary, f"--config={self.config}", "--secure-port=0", "-v=2"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()
        self.client.close()


class Made:
    """The objects of a situation at the API server."""

    def __init__(self, client: Client, situation: Situation) -> None:
        self._client = client
        self._situation = situation
        self._made: list[str] = []
        self._nodes = self._objects = 0

    def create(self) -> None:
        """Create what does not exist yet; the waiting pod comes last."""
        situation = self._situation
        for node in situation.nodes[self._nodes :]:
            made = {key: node[key] for key in ("metadata", "spec")}
            path = self._create("/api/v1/nodes", made)
            self._client.request("PATCH", f"{path}/status", {"status": node["status"]})
        self._nodes = len(situation.nodes)
        for collection, obj, status in situation.objects[self._objects :]:
            path = self._create(collection, obj)
            if status:
                self._client.request("PATCH", f"{path}/status", {"status": status})
            if collection.endswith("/persistentvolumes"):
                # A claim whose volume the controller does not know yet is tried again after 15 s.
                until(
                    partial(lambda path: self._phase(path) != "Pending", path=path),
                    "the volume is not known",
                )
        self._objects = len(situation.objects)
        until(self._nodes_are_known, "the nodes are still tainted as new")
        until(self._claims_are_bound, "a claim is not bound to its volume")

    def create_pods(self) -> None:
        for pod in self._situation.running:
            self._create(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)
        self._create(_PODS, self._situation.waiting)

    def repair(self) -> None:
        """Do what was added to the situation; a changed pod is created again, as its owner does."""
        situation = self._situation
        self.create()
        for path, patch in situation.patches:
            self._client.request("PATCH", path, patch)
        for path in situation.deletions:
            self._client.request("DELETE", path, {"gracePeriodSeconds": 0})

    def replace_pod(self) -> None:
        path = f"{_PODS}/{self._situation.waiting['metadata']['name']}"
        self._client.request("DELETE", path, {"gracePeriodSeconds": 0})
        self._create(_PODS, self._situation.waiting)

    def pod(self) -> Object:
        path = f"{_PODS}/{self._situation.waiting['metadata']['name']}"
        return self._client.request("GET", path)

    def scheduled(self) -> Object:
        """The pod's condition PodScheduled; empty until kube-scheduler has tried it."""
        for condition in (self.pod().get("status") or {}).get("conditions") or ():
            if condition["type"] == "PodScheduled":
                return dict(condition)
        return {}

    def delete(self) -> None:
        for path in reversed(self._made):
            with suppress(RefusedError):
                self._client.request("DELETE", path, {"gracePeriodSeconds": 0})

    def _create(self, collection: str, obj: Object) -> str:
        path = f"{collection}/{obj['metadata']['name']}"
        body = {"apiVersion": "v1", "kind": "Pod", **obj} if collection == _PODS else obj
        self._client.request("POST", collection, copy.deepcopy(body))
        self._made.append(path)
        return path

    def _phase(self, path: str) -> str:
        found = self._client.request("GET", path)
        return str((found.get("status") or {}).get("phase") or "Pending")

    def _nodes_are_known(self) -> bool:
        names = [node["metadata"]["name"] for node in self._situation.nodes]
        return all(is_taken_up(self._client.request("GET", f"/api/v1/nodes/{n}")) for n in names)

    def _claims_are_bound(self) -> bool:
        for collection, obj, _ in self._situation.objects:
            if collection.endswith("claims") and (obj.get("spec") or {}).get("volumeName"):
                path = f"{collection}/{obj['metadata']['name']}"
                if self._phase(path) != "Bound":
                    return False
        return True


@pytest.fixture(scope="module")
def cluster(
    api_server: ApiServer,
    nodes_of_ones_own: None,
    kube_scheduler_binary: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    for namespace in (NAMESPACE, OTHER_NAMESPACE):
        with suppress(RefusedError):
            api_server.create_namespace(namespace)
    for name, value in PRIORITIES.items():
        policy = "Never" if name.endswith("never") else "PreemptLowerPriority"
        body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        with suppress(RefusedError):
            api_server.request("POST", _CLASSES, body)
    made = Cluster(api_server, kube_scheduler_binary, tmp_path_factory.mktemp("why"))
    yield made
    made.close()
    for name in PRIORITIES:
        api_server.request("DELETE", f"{_CLASSES}/{quote(name)}")
    for namespace in (NAMESPACE, OTHER_NAMESPACE):
        api_server.request("DELETE", f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def why(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Callable[[Object], Object]:
    """What the command prints about a pod, as JSON."""

    def run(pod: Object) -> Object:
        command = [
            "why", pod["metadata"]["name"], "-n", NAMESPACE, "--platform", "kubeadm", "-o", "json",
            "--kubeconfig", str(cluster.kubeconfig), "--kube-scheduler", str(cluster.binary),
            "--config", str(cluster.config),
        ]  # fmt: skip
        assert kubectl_plugin(command) == 0, capsys.readouterr().err
        found: Object = json.loads(capsys.readouterr().out)
        return found

    return run


@pytest.fixture
def made(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Callable[[Situation], Made]]:
    """Creates a situation, and deletes it after the test."""
    created: list[Made] = []

    def make(situation: Situation) -> Made:
        created.append(Made(cluster.client, situation))
        created[-1].create()
        created[-1].create_pods()
        return created[-1]

    yield make
    for each in created:
        each.delete()


@pytest.mark.parametrize(
    ("number", "name"), some_in_presubmit(list(enumerate(KINDS)), 4), ids=list(KINDS)
)
def test_the_cause_and_the_smallest_change_are_named_and_the_change_helps(
    number: int,
    name: str,
    made: Callable[[Situation], Made],
    why: Callable[[Object], Object],
) -> None:
    kind = KINDS[name]
    situation = Situation(f"k{number}")
    kind.arrange(situation)
    cause, fix = (text.replace("{}", situation.prefix) for text in (kind.cause, kind.fix))
    real = made(situation)
    waits_for_claim = "ResourceClaim" in cause
    if not waits_for_claim:
        until(real.scheduled, "kube-scheduler has not tried the pod")
        assert real.scheduled()["reason"] == "Unschedulable", real.scheduled()
    found = why(situation.waiting)
    assert found["candidates"] == []
    causes = [each for group in found["groups"] for each in group["causes"]]
    texts = [" ".join((each["text"], *each["scheduler"])) for each in causes] + found["impossible"]
    assert any(cause in text for text in texts), texts
    grouped = {node for group in found["groups"] for node in group["nodes"]}
    assert grouped == {node["metadata"]["name"] for node in situation.nodes}
    if not waits_for_claim:
        assert found["now"]["message"] == real.scheduled()["message"]
    if fix:
        assert (kind.first or fix) in found["fixes"][0]["text"], found["fixes"]
        named = next(each for each in found["fixes"] if fix in each["text"])
    if kind.repair is None:
        return
    before = copy.deepcopy(situation.waiting)
    known = {node["metadata"]["name"] for node in situation.nodes}
    kind.repair(situation)
    real.repair()
    if situation.waiting != before:
        real.replace_pod()
    until(lambda: real.pod()["spec"].get("nodeName"), f"not scheduled: {real.scheduled()}")
    node = real.pod()["spec"]["nodeName"]
    assert node in named["nodes"] or node not in known


@pytest.mark.presubmit
def test_a_gated_pod_waits_for_its_gates_alone(
    cluster: Cluster, made: Callable[[Situation], Made], why: Callable[[Object], Object]
) -> None:
    situation = Situation("gated")
    situation.spec["schedulingGates"] = [{"name": "example.com/wait"}]
    real = made(situation)
    until(lambda: real.scheduled().get("reason") == "SchedulingGated", "the pod is not gated")
    found = why(situation.waiting)
    assert found["schedulingGates"] == ["example.com/wait"]
    assert len(found["candidates"]) == 3
    path = f"{_PODS}/{situation.waiting['metadata']['name']}"
    cluster.client.request("PATCH", path, {"spec": {"schedulingGates": []}})
    until(lambda: real.pod()["spec"].get("nodeName"), "not scheduled")


@pytest.mark.presubmit
def test_a_pod_that_no_scheduler_serves_waits_for_one(
    made: Callable[[Situation], Made], why: Callable[[Object], Object]
) -> None:
    situation = Situation("other-scheduler")
    situation.spec["schedulerName"] = "unknown"
    real = made(situation)
    found = why(situation.waiting)
    assert (found["served"], found["schedulerName"]) == (False, "unknown")
    situation.spec["schedulerName"] = "default-scheduler"
    real.replace_pod()
    until(lambda: real.pod()["spec"].get("nodeName"), "not scheduled")


def test_the_pods_that_would_go_are_those_that_go(
    made: Callable[[Situation], Made], why: Callable[[Object], Object], cluster: Cluster
) -> None:
    situation = Situation("preempting")
    situation.runs(0, "3")
    situation.runs(1, "4", priorityClassName="pending-high")
    situation.runs(2, "4", priorityClassName="pending-high")
    situation.requests(cpu="3")
    # Not served before the command has run.
    situation.spec.update(priorityClassName="pending-high", schedulerName="default-scheduler")
    situation.spec["schedulingGates"] = [{"name": "example.com/wait"}]
    real = made(situation)
    found = why(situation.waiting)
    victim = situation.running[0]["metadata"]["name"]
    assert found["now"]["preempted"] == [f"{NAMESPACE}/{victim}"]
    path = f"{_PODS}/{situation.waiting['metadata']['name']}"
    cluster.client.request("PATCH", path, {"spec": {"schedulingGates": []}})
    until(lambda: real.pod()["spec"].get("nodeName"), "not scheduled")
    assert real.pod()["spec"]["nodeName"] == found["now"]["node"]
    names = {pod["metadata"]["name"] for pod in cluster.client.request("GET", _PODS)["items"]}
    assert victim not in names


@pytest.mark.presubmit
def test_a_nominated_pod_holds_its_room_while_its_victim_terminates(
    made: Callable[[Situation], Made], why: Callable[[Object], Object], cluster: Cluster
) -> None:
    """kube-scheduler has preempted a pod that a finalizer holds, and keeps its room."""
    situation = Situation("held")
    del situation.nodes[1:]
    victim = situation.runs(0, "2")
    victim["metadata"]["finalizers"] = ["example.com/cleanup"]
    situation.requests(cpu="3")
    situation.spec.update(priorityClassName="pending-high")
    real = made(situation)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    other = situation.pod("other", "1500m")
    name = other["metadata"]["name"]
    try:
        until(lambda: "nominatedNodeName" in real.pod()["status"], "it is not nominated")
        cluster.client.request("POST", pods, copy.deepcopy(other))
        until(lambda: _condition(cluster, name), "kube-scheduler has not tried the other pod")
        for pod in (situation.waiting, other):
            found = why(pod)
            assert found["candidates"] == []
            message = _condition(cluster, pod["metadata"]["name"])["message"]
            # The one of the nominated pod is of its attempt that preempted.
            assert without_preemption(found["now"]["message"]) == without_preemption(message)
            assert any("add a node" in fix["text"] for fix in found["fixes"])
        found = why(situation.waiting)
        node = situation.nodes[0]["metadata"]["name"]
        assert found["nominatedNodeName"] == node
        (sentence,) = found["preemption"]
        key = f"{NAMESPACE}/{victim['metadata']['name']}"
        assert sentence.startswith(
            f"It is nominated to node {node} and waits for a pod with a lower priority there: "
            f"{key} terminates since "
        )
        assert sentence.endswith("stays until its finalizer example.com/cleanup is removed.")
        assert f"remove the finalizer of Pod {key}" in found["fixes"][0]["text"]
        cluster.client.request(
            "PATCH", f"{pods}/{victim['metadata']['name']}", {"metadata": {"finalizers": None}}
        )
        until(lambda: real.pod()["spec"].get("nodeName") == node, "it is not placed")
        assert "nodeName" not in cluster.client.request("GET", f"{pods}/{name}")["spec"]
    finally:
        for each in (name, victim["metadata"]["name"]):
            with suppress(RefusedError):
                cluster.client.request(
                    "PATCH", f"{pods}/{each}", {"metadata": {"finalizers": None}}
                )
                cluster.client.request("DELETE", f"{pods}/{each}", {"gracePeriodSeconds": 0})


def _condition(cluster: Cluster, name: str) -> Object:
    found = cluster.client.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
    return scheduled_condition(found)


@pytest.mark.presubmit
def test_pods_that_a_quota_keeps_away_are_reported_of_their_deployment(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    client, base = cluster.client, f"/apis/apps/v1/namespaces/{NAMESPACE}"
    quota = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
    labels = {"app": "limited"}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "automountServiceAccountToken": False,
        },
    }
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    command = [
        "why", "deploy/limited", "-n", NAMESPACE, "--platform", "kubeadm", "-o", "json",
        "--kubeconfig", str(cluster.kubeconfig), "--kube-scheduler", str(cluster.binary),
        "--config", str(cluster.config),
    ]  # fmt: skip

    def answer() -> Object:
        assert kubectl_plugin(command) == 0, capsys.readouterr().err
        found: Object = json.loads(capsys.readouterr().out)
        return found

    def replica_set() -> Object:
        found = client.request("GET", f"{base}/replicasets?labelSelector=app%3Dlimited")["items"]
        return dict(found[0]["status"]) if found else {}

    client.request("POST", quota, {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "1"}}})
    try:
        until(lambda: "hard" in (client.request("GET", f"{quota}/pods").get("status") or {}),
              "the quota is not in force")  # fmt: skip
        client.request(
            "POST", f"{base}/deployments", {"metadata": {"name": "limited"}, "spec": spec}
        )
        until(lambda: "ReplicaFailure" in json.dumps(replica_set()), "no pod is refused")
        found = answer()
        assert found["pod"].startswith(f"{NAMESPACE}/limited-")
        (missing,) = found["missing"]
        assert (missing["owner"], missing["count"]) == ("Deployment/limited", 2)
        assert missing["cause"].startswith("exceeded quota: pods, requested: pods=1")
        assert missing["fix"] == f"raise ResourceQuota {NAMESPACE}/pods, or request less"

        client.request("PATCH", f"{quota}/pods", {"spec": {"hard": {"pods": "5"}}})
        until(lambda: replica_set().get("replicas") == 3, "the quota still keeps pods away")
        assert answer()["missing"] == []
    finally:
        client.request("DELETE", f"{quota}/pods")
        client.request("DELETE", f"{base}/deployments/limited?propagationPolicy=Foreground")
