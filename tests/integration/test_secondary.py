"""Secondary schedulers on a real API server, with the real controllers.

The operator is the ServiceAccount that deploy/kubeadm makes: what it is not granted it cannot do.
Deployments, ReplicaSets and the garbage collector are the real ones; a kubelet is played.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cluster.api import ApiError
from cluster.model import Sandbox
from cluster.scheduling import free_port

from ..imitation import kubelet
from .harness import NAMESPACE, Operator, Proxy, now
from .played_cluster import APPS, AT_ONCE, CORE, GROUP, PlayedCluster, brought_up

KIND = f"{GROUP}/secondaryschedulers"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LABEL = "kube-scheduler-operator.dev/secondary-scheduler"
HASH = "kube-scheduler-operator.dev/config-hash"

# These tests share one cluster and must run in one process, in order.
pytestmark = pytest.mark.timeout(600, func_only=True)


class World(PlayedCluster):
    """The cluster of these tests; by default every pod becomes Ready.

    Attributes:
        refuses: content -> kube-scheduler's message when it refuses it.
    """

    kind, objects, label = "SecondaryScheduler", KIND, LABEL
    makes = (
        f"{CORE}/configmaps", f"{CORE}/serviceaccounts", f"{CORE}/services", f"{CORE}/pods",
        f"{APPS}/deployments", f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
        f"{RBAC}/namespaces/{NAMESPACE}/roles", f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
        f"{RBAC}/namespaces/kube-system/rolebindings", f"{RBAC}/clusterrolebindings",
    )  # fmt: skip
    flags = ("--platform=kubeadm", "--pending-pods-interval=5", "--allowed-images=e")

    def __init__(self, sandbox: Sandbox, proxy: Proxy, operator: Operator) -> None:
        super().__init__(sandbox, proxy, operator)
        self.refuses: Callable[[str], str] = lambda hash_: ""

    def pending(self, pod: dict[str, Any]) -> None:
        if pod["status"].get("initContainerStatuses"):
            return
        words = self.refuses(pod["metadata"]["labels"][HASH])
        if not words:
            self.becomes_ready(pod)
            return
        self.report(pod, **kubelet.refused_status(words, now()))

    def put(self, name: str, **spec: Any) -> None:
        super().put(name, namespace=NAMESPACE, **spec)

    def installed(self, name: str) -> str:
        """The content of which all pods are there and well; empty while that is not so."""
        obj = self.get(f"{KIND}/{name}")
        status = obj.get("status", {})
        entries = status.get("history", [])
        seen = status.get("observedGeneration") == obj["metadata"]["generation"]
        if not seen or not entries or entries[0]["outcome"] != "installed":
            return ""
        calm = self.condition(name, "Progressing")[1] in ("AsExpected", "Held", "Simulating")
        return str(entries[0]["hash"]) if calm else ""

    def wait_installed(self, name: str) -> str:
        self.wait(lambda: self.installed(name) != "", 60, lambda: self.status(name))
        return self.installed(name)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with brought_up(World, "sc", tmp_path_factory.mktemp("operator")) as found:
        found.start()
        yield found


@pytest.fixture
def mine(world: World) -> Iterator[str]:
    """The name of a SecondaryScheduler; all of it is gone after the test."""
    name = f"mine-{time.monotonic_ns() % 100000}"
    world.refuses = lambda hash_: ""
    world.start()
    yield name
    world.refuses = lambda hash_: ""
    with contextlib.suppress(ApiError):
        world.delete(name)
    world.wait(lambda: world.made(name) == set(), 60, lambda: f"left: {world.made(name)}")


@pytest.mark.presubmit
def test_everything_is_made_with_the_operators_own_rights_and_goes_with_its_owner(
    world: World, mine: str
) -> None:
    world.put(mine, replicas=3)
    hash_ = world.wait_installed(mine)
    made = {one for one in world.made(mine) if not one.startswith("pods ")}
    assert made == {
        f"serviceaccounts {mine}",
        f"clusterrolebindings {mine}-as-kube-scheduler",
        f"clusterrolebindings {mine}-as-volume-scheduler",
        f"rolebindings {mine}-authentication-reader",
        f"roles {mine}",
        f"rolebindings {mine}",
        f"services {mine}",
        f"poddisruptionbudgets {mine}",
        f"configmaps {mine}-config-{hash_}",
        f"deployments {mine}",
    }
    status = world.status(mine)
    assert (status["readyReplicas"], status["configHash"]) == (3, hash_)
    # These pods are simulated, so their Lease has no holder.
    available, _, message = world.condition(mine, "Available")
    assert (available, message) == ("False", f"the Lease {NAMESPACE}/{mine} has no holder")
    world.operator.kill()  # it is not needed for the end
    world.delete(mine)
    world.wait(lambda: world.made(mine) == set(), 60, lambda: f"left: {world.made(mine)}")
    world.start()


def test_a_settled_operator_writes_nothing(world: World, mine: str) -> None:
    world.put(mine, sidecars=[{"name": "extender", "image": "e:1"}], resources={"requests": ODD})
    world.wait_installed(mine)
    time.sleep(2)
    assert world.writes_within(5) == [], world.proxy.bodies


ODD = {"cpu": "0.10", "memory": 67108864}
"""Quantities as only a person would write them; the API server does not keep those as such."""


@pytest.mark.presubmit
def test_a_refused_configuration_never_replaces_a_good_one(world: World, mine: str) -> None:
    world.put(mine)
    good = world.wait_installed(mine)
    pods = {pod["metadata"]["uid"] for pod in world.pods(mine)}
    world.refuses = lambda hash_: "" if hash_ == good else 'E1 1:1:1.0 1 x] "x" err="no such thing"'
    world.put(mine, config={"parallelism": 3})
    world.wait(
        lambda: "kube-scheduler refused it" in world.condition(mine, "Degraded")[2],
        60,
        lambda: world.status(mine),
    )
    status, _, message = world.condition(mine, "Degraded")
    assert status == "True"
    assert f"{good} stays in use" in message
    world.wait(
        lambda: {pod["metadata"]["uid"] for pod in world.pods(mine)} == pods,
        60,
        "the pods that ran before did not stay alone",
    )
    outcomes = {entry["outcome"] for entry in world.status(mine)["history"]}
    assert outcomes == {"installed", "refused"}
    world.refuses = lambda hash_: ""
    world.put(mine, config={"parallelism": 4})
    assert world.wait_installed(mine) != good
    assert world.condition(mine, "Degraded")[0] == "False"


def test_changed_objects_are_restored(world: World, mine: str) -> None:
    world.put(mine)
    hash_ = world.wait_installed(mine)
    deployment = f"{APPS}/deployments/{mine}"
    world.api.request("PATCH", deployment, {"spec": {"replicas": 7}})
    world.api.request("DELETE", f"{CORE}/services/{mine}")
    world.api.request("DELETE", f"{CORE}/configmaps/{mine}-config-{hash_}")
    bindings = (
        f"{RBAC}/clusterrolebindings/{mine}-as-kube-scheduler",
        f"{RBAC}/namespaces/kube-system/rolebindings/{mine}-authentication-reader",
        f"{RBAC}/namespaces/{NAMESPACE}/rolebindings/{mine}",
    )
    for path in bindings:
        world.api.request("PATCH", path, {"subjects": []})
    role = f"{RBAC}/namespaces/{NAMESPACE}/roles/{mine}"
    world.api.request("PATCH", role, {"rules": []})
    world.wait(
        lambda: (
            world.get(deployment)["spec"]["replicas"] == 2
            and all(world.get(path).get("subjects") for path in bindings)
            and world.get(role).get("rules")
            and {f"services {mine}", f"configmaps {mine}-config-{hash_}"} <= world.made(mine)
        ),
        30,
    )


def test_objects_of_other_owners_are_reported_and_not_touched(world: World, mine: str) -> None:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": mine}}
    world.api.request("POST", f"{CORE}/serviceaccounts", body)
    try:
        uid = world.get(f"{CORE}/serviceaccounts/{mine}")["metadata"]["uid"]
        world.put(mine)
        world.wait(lambda: "has another owner" in world.condition(mine, "Degraded")[2], 30)
        found = world.get(f"{CORE}/serviceaccounts/{mine}")["metadata"]
        assert found["uid"] == uid
        assert "ownerReferences" not in found
    finally:
        world.api.request("DELETE", f"{CORE}/serviceaccounts/{mine}")
    world.put(mine, logLevel="Debug")
    world.wait_installed(mine)


def test_a_refused_write_is_reported_and_stops_no_other_scheduler(world: World, mine: str) -> None:
    world.put(mine, affinity={"nodeAffinity": "nonsense"})
    world.wait(lambda: world.condition(mine, "Degraded")[0] == "True", 30)
    other = f"{mine}-b"
    world.put(other)
    try:
        world.wait_installed(other)
        assert "Deployment" in world.condition(mine, "Degraded")[2]
    finally:
        world.delete(other)
    world.put(mine)
    world.wait_installed(mine)


def test_killed_at_every_write_it_ends_the_same(world: World, mine: str) -> None:
    names = []
    for number in range(1, 100, 3):
        name = f"{mine}-{number}"
        names.append(name)
        world.proxy.arm(number, world.operator.kill, after=True)
        world.put(name)
        world.wait(
            partial(lambda name: world.proxy.killed or world.installed(name) != "", name=name)
        )
        struck = world.proxy.disarm()
        if struck:
            world.operator.kill()  # which waits until it is dead
            world.start()
        world.wait_installed(name)
        assert len([o for o in world.made(name) if not o.startswith("pods ")]) == 10
        if not struck:
            break
    assert len(names) > 3
    for name in names:
        world.delete(name)


@pytest.mark.presubmit
def test_its_account_may_do_what_a_scheduler_does_and_holds_its_own_lease(
    world: World, mine: str, kube_scheduler: Path, tmp_path: Path
) -> None:
    """A real kube-scheduler with the token of the account that was made for it binds a pod."""
    world.put(mine)
    hash_ = world.wait_installed(mine)
    data = world.get(f"{CORE}/configmaps/{mine}-config-{hash_}")["data"]
    config = json.loads(data["config.yaml"])
    kubeconfig = _kubeconfig(world, mine, tmp_path)
    config["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    arguments = json.loads(data["pod.yaml"])["containers"][0]["args"]
    own = [one for one in arguments if not one.startswith("--config=")]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                kube_scheduler, *own, f"--config={tmp_path / 'config.yaml'}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
            ],
            stdout=output, stderr=output,
        )  # fmt: skip
    try:
        world.wait(
            lambda: world.status(mine).get("leaseHolder", "") != "",
            30,
            lambda: f"no leader: {log.read_text()[-3000:]}",
        )
        world.wait(lambda: world.condition(mine, "Available")[0] == "True", 30)
        # This process is none of the pods, and elects by their Lease.
        world.wait(
            lambda: "is not a Pod of this scheduler" in world.condition(mine, "Degraded")[2], 30
        )
        with _bound_pods(world, mine, log):
            world.wait(
                lambda: f'for schedulerName "{mine}"' in world.message_of("UnknownScheduler"),
                90,  # the operator pauses twenty times as long as its previous poll took
            )
        text = log.read_text()
        assert "forbidden" not in text.lower(), text[-3000:]
        assert world.writes_within(5) == [], "a renewed Lease causes no write"
    finally:
        process.kill()  # one that is asked to end gives its Lease back
        process.wait(20)
    world.wait(
        lambda: "does not renew it" in world.condition(mine, "Available")[2],
        60,
        lambda: world.condition(mine, "Available"),
    )


def test_a_pod_with_an_unknown_scheduler_name_gets_an_event(world: World) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "without-scheduler"},
        "spec": {
            "schedulerName": "missing",
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "i"}],
        },
    }
    world.api.request("POST", pods, pod)
    try:
        selector = "involvedObject.name%3Dwithout-scheduler,reason%3DNoSuchScheduler"
        path = f"/api/v1/namespaces/default/events?fieldSelector={selector}"
        world.wait(lambda: world.get(path)["items"] != [], 120)
        (event,) = world.get(path)["items"]
        assert 'no scheduler serves spec.schedulerName "missing"' in event["message"]
        world.wait(lambda: "missing" in world.message_of("PodsWithoutScheduler"), 30)
    finally:
        world.api.request("DELETE", f"{pods}/without-scheduler", AT_ONCE)


@pytest.fixture
def kube_scheduler(world: World) -> Path:
    """The real one, of the version of the API server."""
    binary = world.sandbox.state / "bin" / "kube-scheduler"
    assert os.access(binary, os.X_OK), binary
    return binary


def _kubeconfig(world: World, account: str, folder: Path) -> Path:
    """Of a ServiceAccount, as a pod would have it."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = world.api.request("POST", f"{CORE}/serviceaccounts/{account}/token", request)
    cluster = {
        "server": world.sandbox.server,
        "certificate-authority": str(world.sandbox.state / "pki" / "ca.crt"),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": answer["status"]["token"]}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


@contextlib.contextmanager
def _bound_pods(world: World, name: str, log: Path) -> Iterator[None]:
    """Pods of two namespaces are bound by the scheduler, and their events name it."""
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-of-{name}"}}
    world.api.request("POST", "/api/v1/nodes", node)
    ready = {"type": "Ready", "status": "True", "reason": "x", "message": ""}
    times = {"lastHeartbeatTime": now(), "lastTransitionTime": now()}
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [{**ready, **times}]}
    path = f"/api/v1/nodes/node-of-{name}"
    world.api.request("PATCH", f"{path}/status", {"status": status})
    namespaces = ("default", "kube-public")
    try:
        for namespace in namespaces:
            _bind_a_pod(world, namespace, name, log)
        yield
    finally:
        for namespace in namespaces:
            pod = f"/api/v1/namespaces/{namespace}/pods/asks-for-{name}"
            with contextlib.suppress(ApiError):  # it may not exist
                world.api.request("DELETE", pod, AT_ONCE)
        world.api.request("DELETE", path)


def _bind_a_pod(world: World, namespace: str, name: str, log: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"asks-for-{name}"},
        "spec": {
            "schedulerName": name,
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "i"}],
        },
    }
    pods = f"/api/v1/namespaces/{namespace}/pods"
    world.wait(lambda: bool(world.api.request("POST", pods, pod)), 30, "no pod could be made")
    world.wait(
        lambda: world.get(f"{pods}/asks-for-{name}")["spec"].get("nodeName", "") != "",
        30,
        lambda: f"not bound: {log.read_text()[-3000:]}",
    )
    selector = f"involvedObject.name%3Dasks-for-{name},reason%3DScheduled"
    events = f"/api/v1/namespaces/{namespace}/events?fieldSelector={selector}"
    world.wait(
        lambda: (
            [
                event.get("reportingComponent") or event["source"]["component"]
                for event in world.get(events)["items"]
            ]
            == [name]
        ),
        30,
        "no event of this scheduler",
    )


@pytest.fixture
def gate(world: World) -> Iterator[str]:
    """The path of OperatorSettings with a Gate; deleted at the end, with what it holds."""
    path = f"{GROUP}/operatorsettings"
    kind = {"apiVersion": GROUP.removeprefix("/apis/"), "kind": "OperatorSettings"}
    spec = {"placementCheck": {"mode": "Gate"}}
    made = {**kind, "metadata": {"name": "cluster"}, "spec": spec}
    world.api.request("POST", path, made)
    yield f"{path}/cluster"
    world.api.request("DELETE", f"{path}/cluster")


@pytest.mark.presubmit
def test_with_a_gate_an_edit_waits_for_its_approval_and_delays_no_other_one(
    world: World, mine: str, gate: str
) -> None:
    """No node of this cluster can run the simulation, so what the edit changes is not known."""

    def record() -> dict[str, Any]:
        return dict(world.status(mine).get("placementCheck") or {})

    other = f"{mine}-b"
    for name in (mine, other):
        world.put(name, replicas=1, config={"percentageOfNodesToScore": 50})
    first = world.wait_installed(mine)
    world.wait_installed(other)
    world.wait(lambda: len(record().get("ran", ())) == 1)
    world.put(mine, replicas=1, config={"percentageOfNodesToScore": 7}, logLevel="Debug")
    world.wait(lambda: world.condition(mine, "PlacementCheckProgressing")[1] == "Held")
    message = world.condition(mine, "PlacementCheckProgressing")[2]
    assert f"kubectl scheduler rollout approve --scheduler {mine}" in message
    world.wait(lambda: world.installed(mine) not in ("", first))
    kept = world.installed(mine)
    data = world.get(f"{CORE}/configmaps/{mine}-config-{kept}")["data"]
    config = json.loads(data["config.yaml"])
    assert config["percentageOfNodesToScore"] == 50
    assert "-v=4" in data["pod.yaml"], "the log level does not wait"
    world.put(other, replicas=2, config={"percentageOfNodesToScore": 50})
    world.wait(lambda: world.status(other).get("readyReplicas") == 2)
    time.sleep(2)
    assert world.writes_within(5) == [], world.proxy.bodies
    world.operator.kill()
    approvals = {mine: record()["configuration"]}
    patch = {"spec": {"placementCheck": {"approvedSchedulers": approvals}}}
    world.api.request("PATCH", gate, patch)
    world.start()
    world.wait(lambda: world.installed(mine) not in ("", kept))
    data = world.get(f"{CORE}/configmaps/{mine}-config-{world.installed(mine)}")["data"]
    assert json.loads(data["config.yaml"])["percentageOfNodesToScore"] == 7
    assert record()["state"] == "Approved"
    world.wait(lambda: len(record()["ran"]) == 2)
    world.put(mine, replicas=1, config={"percentageOfNodesToScore": 50})
    world.wait(lambda: world.installed(mine) not in ("", kept), 60, lambda: world.status(mine))
    assert world.condition(mine, "PlacementCheckProgressing")[0] == "False", "what ran returns"
    world.delete(other)
    world.wait(lambda: world.made(other) == set())
