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
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from cluster import releases
from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.controllers import SELECTED_NODE
from kube_scheduler_operator.simulate.decisions import scheduled_condition
from kube_scheduler_operator.simulate.probes import without_preemption

from ..seeds import some_in_presubmit
from .conftest import ApiServer, RefusedError
from .pending_kinds import (
    CONFIGURATION,
    GATES,
    KINDS,
    MISPLACEMENTS,
    NAMESPACE,
    OTHER_NAMESPACE,
    PRIORITIES,
    REFUSALS,
    ROLLOUTS,
    Object,
    Situation,
)
from .played_nodes import NEW, is_taken_up, until
from .test_simulation_against_cluster import Client

SECONDS: Final = 30
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


MINOR: Final = Version.parse(releases.choose()).minor
EXISTING: Final = [name for name, kind in KINDS.items() if kind.since <= MINOR]
"""The kinds that the version has by default."""

_TAINTS: Final = {
    ("Ready", "False"): NEW,
    ("Ready", "Unknown"): "node.kubernetes.io/unreachable",
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
"""The taints of a node by the type and status of its conditions."""


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
        self._nodes = self._objects = self._pods = 0

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
        self._create_running()
        for path in self._situation.terminating:
            self._client.request("DELETE", path, {"gracePeriodSeconds": 0})
        self._create(_PODS, self._situation.waiting)

    def _create_running(self) -> None:
        for pod in self._situation.running[self._pods :]:
            self._create(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)
        self._pods = len(self._situation.running)

    def repair(self) -> None:
        """Do what was added to the situation; a changed pod is created again, as its owner does."""
        situation = self._situation
        for path, patch in situation.patches:
            self._client.request("PATCH", path, patch)
        self.create()
        self._create_running()
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

    def node(self) -> str:
        """The node that kube-scheduler has chosen; where a driver is to provide a volume, its."""
        node = self.pod()["spec"].get("nodeName")
        for volume in self._situation.spec.get("volumes") or () if not node else ():
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if claim:
                path = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims/{claim}"
                annotations = self._client.request("GET", path)["metadata"].get("annotations")
                node = (annotations or {}).get(SELECTED_NODE)
        return str(node or "")

    def delete(self) -> None:
        for path in self._situation.terminating:
            with suppress(RefusedError):
                self._client.request("PATCH", path, {"metadata": {"finalizers": None}})
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
        found = [self._client.request("GET", f"/api/v1/nodes/{name}") for name in names]
        return all(
            _shows_its_conditions(node) if _is_ill(node) else is_taken_up(node) for node in found
        )

    def _claims_are_bound(self) -> bool:
        volumes = {obj["metadata"]["name"] for _, obj, _ in self._situation.objects}
        for collection, obj, _ in self._situation.objects:
            if collection.endswith("claims") and (obj.get("spec") or {}).get("volumeName"):
                path = f"{collection}/{obj['metadata']['name']}"
                if obj["spec"]["volumeName"] in volumes and self._phase(path) != "Bound":
                    return False
        return True


def _conditions(node: Object) -> dict[str, str]:
    return {each["type"]: each["status"] for each in node["status"].get("conditions") or ()}


def _is_ill(node: Object) -> bool:
    conditions = _conditions(node)
    return conditions.pop("Ready", "True") != "True" or "True" in conditions.values()


def _shows_its_conditions(node: Object) -> bool:
    """Whether a controller has given the node the taints of its conditions, and no other ones."""
    keys = {taint["key"] for taint in node["spec"].get("taints") or ()}
    expected = {
        taint for (kind, status), taint in _TAINTS.items() if _conditions(node).get(kind) == status
    }
    return expected <= keys and (NEW in expected or NEW not in keys)


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
    ("number", "name"), some_in_presubmit(list(enumerate(EXISTING)), 4), ids=EXISTING
)
def test_the_cause_and_the_smallest_change_are_named_and_the_change_helps(
    number: int,
    name: str,
    cluster: Cluster,
    made: Callable[[Situation], Made],
    why: Callable[[Object], Object],
) -> None:
    kind = KINDS[name]
    situation = Situation(f"k{number}")
    kind.arrange(situation)
    texts = (kind.cause, kind.fix, kind.first or kind.fix)
    cause, fix, first = (text.replace("{}", situation.prefix) for text in texts)
    real = made(situation)
    if not kind.untried:
        until(real.scheduled, "kube-scheduler has not tried the pod")
        assert real.scheduled()["reason"] == kind.reason, real.scheduled()
    found = why(situation.waiting)
    assert found["candidates"] == []
    causes = [each for group in found["groups"] for each in group["causes"]]
    texts = [" ".join((each["text"], *each["scheduler"])) for each in causes] + found["impossible"]
    assert any(cause in text for text in texts), texts
    grouped = {node for group in found["groups"] for node in group["nodes"]}
    assert grouped == {node["metadata"]["name"] for node in situation.nodes}
    if not kind.untried:
        assert found["now"]["message"] == real.scheduled()["message"]
    if fix:
        assert first in found["fixes"][0]["text"], found["fixes"]
        named = next(each for each in found["fixes"] if fix in each["text"])
    if kind.repair is None:
        return
    before = copy.deepcopy(situation.waiting)
    known = {node["metadata"]["name"] for node in situation.nodes}
    kind.repair(situation)
    real.repair()
    retried_late = kind.retried_late_since <= MINOR
    assert not retried_late or any("try a Pod again" in note for note in found["notes"])
    if situation.waiting != before or retried_late:
        real.replace_pod()
    until(real.node, f"not scheduled: {real.scheduled()}")
    node = real.node()
    assert node in named["nodes"] or node not in known


@pytest.mark.parametrize("gate", GATES)
def test_a_gated_pod_waits_for_its_gates_alone_and_who_removes_them_is_named(
    gate: str,
    cluster: Cluster,
    made: Callable[[Situation], Made],
    why: Callable[[Object], Object],
) -> None:
    situation = Situation(f"gated-{list(GATES).index(gate)}")
    situation.spec["schedulingGates"] = [{"name": gate}]
    real = made(situation)
    until(lambda: real.scheduled().get("reason") == "SchedulingGated", "the pod is not gated")
    found = why(situation.waiting)
    assert found["schedulingGates"] == [gate]
    (who,) = found["schedulingGatesRemovedBy"]
    assert who.startswith(GATES[gate])
    assert len(found["candidates"]) == 3
    path = f"{_PODS}/{situation.waiting['metadata']['name']}"
    cluster.client.request("PATCH", path, {"spec": {"schedulingGates": []}})
    until(lambda: real.pod()["spec"].get("nodeName"), "not scheduled")


@pytest.mark.parametrize("name", MISPLACEMENTS)
def test_the_plugin_that_decides_is_named_with_what_it_scores_by(
    name: str, made: Callable[[Situation], Made], why: Callable[[Object], Object]
) -> None:
    """The pod goes to node a, which has least room; after the change, a new pod goes elsewhere."""
    kind = MISPLACEMENTS[name]
    situation = Situation(f"placed-{list(MISPLACEMENTS).index(name)}")
    situation.runs(0, "1", app="other")
    kind.arrange(situation)
    real = made(situation)
    until(real.node, f"not scheduled: {real.scheduled()}")
    here = situation.name("a")
    assert real.node() == here
    found = why(situation.waiting)
    assert found["now"]["best"] == [here]
    assert found["lead"].startswith(f"{here} has ")
    assert f": {kind.plugin} gives it " in found["lead"]
    assert f"{kind.plugin} scores by {kind.words}" in found["lead"]
    kind.repair(situation)
    real.repair()
    real.replace_pod()
    until(real.node, f"not scheduled: {real.scheduled()}")
    assert real.node() != here


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


def test_a_nominated_pod_that_terminates_is_not_tried_and_holds_no_room(
    made: Callable[[Situation], Made], why: Callable[[Object], Object], cluster: Cluster
) -> None:
    """kube-scheduler has it in none of its queues, so that its nomination is one of nothing."""
    situation = Situation("held-ending")
    del situation.nodes[1:]
    victim = situation.runs(0, "2")
    situation.requests(cpu="3")
    situation.spec.update(priorityClassName="pending-high")
    for pod in (victim, situation.waiting):
        pod["metadata"]["finalizers"] = ["example.com/cleanup"]
    real = made(situation)
    other = situation.pod("other", "1500m", schedulingGates=[{"name": "example.com/wait"}])
    names = [pod["metadata"]["name"] for pod in (victim, situation.waiting, other)]
    paths = [f"{_PODS}/{name}" for name in names]
    try:
        until(lambda: "nominatedNodeName" in real.pod()["status"], "it is not nominated")
        cluster.client.request("DELETE", paths[1], {"gracePeriodSeconds": 0})
        cluster.client.request("PATCH", paths[0], {"metadata": {"finalizers": None}})
        cluster.client.request("POST", _PODS, copy.deepcopy(other))
        until(lambda: _condition(cluster, names[2]), "the other pod is not gated")
        ending = why(situation.waiting)
        assert ending["outcome"] == "terminating"
        assert ending["ending"]["finalizers"] == ["example.com/cleanup"]
        assert (ending["groups"], ending["fixes"]) == ([], [])
        node = situation.nodes[0]["metadata"]["name"]
        assert why(other)["candidates"] == [node]
        cluster.client.request("PATCH", paths[2], {"spec": {"schedulingGates": []}})
        until(lambda: cluster.client.request("GET", paths[2])["spec"].get("nodeName"), "it waits")
        assert "nodeName" not in real.pod()["spec"]
    finally:
        for path in paths:
            with suppress(RefusedError):
                cluster.client.request("PATCH", path, {"metadata": {"finalizers": None}})
                cluster.client.request("DELETE", path, {"gracePeriodSeconds": 0})


def _condition(cluster: Cluster, name: str) -> Object:
    found = cluster.client.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
    return scheduled_condition(found)


class Deployed:
    """A Deployment and its pods."""

    def __init__(self, client: Client, namespace: str, name: str, spec: Object) -> None:
        self._client, self.namespace, self.name = client, namespace, name
        self._path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        self._labels = {"app": name}
        template = {"metadata": {"labels": self._labels}, "spec": spec.pop("template")}
        selector = {"matchLabels": self._labels}
        body = {"metadata": {"name": name}, "spec": {**spec, "selector": selector}}
        body["spec"]["template"] = template
        client.request("POST", self._path, body)

    def patch(self, spec: Object) -> None:
        self._client.request("PATCH", f"{self._path}/{self.name}", {"spec": spec})

    def owned(self, path: str, group: str = "/api/v1") -> list[Object]:
        path = f"{group}/namespaces/{self.namespace}/{path}?labelSelector=app%3D{self.name}"
        return list(self._client.request("GET", path)["items"])

    def replica_sets(self) -> list[Object]:
        return self.owned("replicasets", "/apis/apps/v1")

    def new_pod(self) -> Object:
        """The pod of the newest template; empty: it is neither tried nor placed."""
        sets = self.replica_sets()
        newest = max(sets, key=lambda one: int(one["metadata"]["annotations"][_REVISION]))
        for pod in self.owned("pods"):
            owner = pod["metadata"]["ownerReferences"][0]["name"]
            if owner == newest["metadata"]["name"] and scheduled_condition(pod):
                return pod
        return {}

    def delete(self) -> None:
        """Delete it, and wait until its pods are gone."""
        path = f"{self._path}/{self.name}?propagationPolicy=Foreground"
        with suppress(RefusedError):
            self._client.request("DELETE", path)
        until(lambda: not self.owned("pods"), "its pods are not gone")


_REVISION: Final = "deployment.kubernetes.io/revision"


def _asked(cluster: Cluster, capsys: pytest.CaptureFixture[str], *words: str) -> Object:
    command = [
        "why", *words, "--platform", "kubeadm", "-o", "json",
        "--kubeconfig", str(cluster.kubeconfig), "--kube-scheduler", str(cluster.binary),
        "--config", str(cluster.config),
    ]  # fmt: skip
    assert kubectl_plugin(command) == 0, capsys.readouterr().err
    found: Object = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", ROLLOUTS)
def test_a_new_pod_that_its_old_ones_keep_away_waits_for_the_end_of_one(
    name: str,
    cluster: Cluster,
    made: Callable[[Situation], Made],
    capsys: pytest.CaptureFixture[str],
) -> None:
    kind = ROLLOUTS[name]
    situation = Situation(f"rolled-{list(ROLLOUTS).index(name)}")
    if kind.arrange is not None:
        kind.arrange(situation)
    volumes = situation.spec.pop("volumes", [])
    situation.spec["nodeSelector"] = {"none": "none"}  # it takes no part
    made(situation)
    spec = {
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "volumes": volumes,
        **copy.deepcopy(kind.spec),
    }
    spec = {"replicas": kind.replicas, "template": spec}
    deployed = Deployed(cluster.client, NAMESPACE, "rolled", spec)
    try:
        until(
            lambda: (
                [bool(pod["spec"].get("nodeName")) for pod in deployed.owned("pods")]
                == [True] * kind.replicas
            ),
            "the old pods have no nodes",
        )
        old = {pod["metadata"]["name"] for pod in deployed.owned("pods")}
        deployed.patch({"template": {"metadata": {"annotations": {"version": "2"}}}})
        until(lambda: len(deployed.replica_sets()) == 2 and deployed.new_pod(), "no new pod")
        waiting = deployed.new_pod()["metadata"]["name"]
        found = _asked(cluster, capsys, waiting, "-n", NAMESPACE)
        texts = [cause["text"] for group in found["groups"] for cause in group["causes"]]
        assert any(kind.cause.replace("{}", situation.prefix) in text for text in texts), texts
        first = found["fixes"][0]
        assert first["text"].startswith("let an old pod end before a new one starts, such as ")
        assert first["text"].partition("such as ")[2].partition(":")[0].partition("/")[2] in old
        assert first["text"].endswith("set maxSurge to 0 and maxUnavailable to 1")
        assert (first["object"], first["field"]) == (
            f"Deployment {NAMESPACE}/rolled", "spec.strategy.rollingUpdate",
        )  # fmt: skip
        deployed.patch({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}})
        until(lambda: deployed.new_pod().get("spec", {}).get("nodeName"), "not scheduled")
    finally:
        deployed.delete()


def test_a_new_pod_that_a_quota_refuses_is_created_once_an_old_one_has_ended(
    cluster: Cluster, made: Callable[[Situation], Made], capsys: pytest.CaptureFixture[str]
) -> None:
    situation = Situation("full")
    situation.spec["nodeSelector"] = {"none": "none"}  # it takes no part
    made(situation)
    client, quotas = cluster.client, f"/api/v1/namespaces/{OTHER_NAMESPACE}/resourcequotas"
    client.request("POST", quotas, {"metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}})
    container = {"name": "c", "image": "i"}
    spec = {
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    try:
        quota = f"{quotas}/one"
        until(
            lambda: "hard" in (client.request("GET", quota).get("status") or {}), "it has no force"
        )
        deployed = Deployed(client, OTHER_NAMESPACE, "full", {"replicas": 1, "template": spec})
        try:
            until(
                lambda: (
                    [bool(pod["spec"].get("nodeName")) for pod in deployed.owned("pods")] == [True]
                ),
                "the old pod has no node",
            )
            deployed.patch({"template": {"metadata": {"annotations": {"version": "2"}}}})
            until(
                lambda: "ReplicaFailure" in json.dumps(deployed.replica_sets()), "none is refused"
            )
            (missing,) = _asked(cluster, capsys, "deploy/full", "-n", OTHER_NAMESPACE)["missing"]
            assert missing["fix"] == (
                "let an old pod end before a new one starts: set maxSurge to 0 and maxUnavailable "
                f"to 1 in Deployment {OTHER_NAMESPACE}/full; or raise ResourceQuota "
                f"{OTHER_NAMESPACE}/one, or delete other pods"
            )
            deployed.patch({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}})
            until(lambda: deployed.new_pod().get("spec", {}).get("nodeName"), "not scheduled")
        finally:
            deployed.delete()
    finally:
        client.request("DELETE", quota)


@pytest.mark.parametrize("name", REFUSALS)
def test_what_keeps_the_pods_of_a_deployment_away_is_named_and_its_end_helps(
    name: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, client = REFUSALS[name], cluster.client
    container = {"name": "c", "image": "i", "resources": kind.resources}
    spec = {
        "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
        "containers": [container], **kind.spec,
    }  # fmt: skip
    name = f"limited-{list(REFUSALS).index(name)}"
    with ExitStack() as stack:

        def apply(path: str, obj: Object) -> None:
            """Create an object in a collection, or patch the one at a path."""
            if "name" not in obj.get("metadata", {}):
                client.request("PATCH", path, obj)
                return
            client.request("POST", path, copy.deepcopy(obj))
            created = f"{path}/{obj['metadata']['name']}"
            stack.callback(client.request, "DELETE", created)
            if path.endswith("/resourcequotas"):
                until(lambda: "hard" in (client.request("GET", created).get("status") or {}),
                      "the quota is not in force")  # fmt: skip

        for path, obj in kind.objects:
            apply(path, obj)
        deployed = Deployed(client, OTHER_NAMESPACE, name, {"replicas": 3, "template": spec})
        stack.callback(deployed.delete)
        until(lambda: "ReplicaFailure" in json.dumps(deployed.replica_sets()), "none is refused")
        found = _asked(cluster, capsys, f"deploy/{name}", "-n", OTHER_NAMESPACE)
        (missing,) = found["missing"]
        assert missing["owner"] == f"Deployment/{name}"
        assert missing["count"] == 3 - len(deployed.owned("pods"))
        assert kind.cause in missing["cause"]
        assert kind.fix in missing["fix"]
        for path, obj in kind.repairs:
            apply(path, obj)
        deployed.patch({"minReadySeconds": 1})  # its ReplicaSet would wait ever longer
        until(lambda: len(deployed.owned("pods")) == 3, "pods are still kept away")
        found = _asked(cluster, capsys, f"deploy/{name}", "-n", OTHER_NAMESPACE)
        assert found["missing"] == []
