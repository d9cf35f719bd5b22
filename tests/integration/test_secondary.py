"""Further schedulers on a real API server, with the real controllers.

The operator is the ServiceAccount that deploy/kubeadm makes: what it is not granted it cannot do.
Deployments, ReplicaSets and the garbage collector are the real ones; a kubelet is played.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cluster import images, lifecycle, teardown
from cluster.api import Api, ApiError
from cluster.console import run
from cluster.model import Sandbox
from cluster.observe import until

from .harness import NAMESPACE, Operator, Proxy

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = f"sc-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
KIND = "/apis/kube-scheduler-operator.dev/v1alpha1/secondaryschedulers"
CORE, APPS = f"/api/v1/namespaces/{NAMESPACE}", f"/apis/apps/v1/namespaces/{NAMESPACE}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LABEL = "kube-scheduler-operator.dev/secondary-scheduler"
HASH = "kube-scheduler-operator.dev/config-hash"
OPERATOR = (
    ("Impersonate-User", f"system:serviceaccount:{NAMESPACE}:kube-scheduler-operator"),
    ("Impersonate-Group", "system:authenticated"),
)

# These tests share one cluster and must run in one process, in order.
pytestmark = pytest.mark.timeout(600, func_only=True)


class World:
    """The cluster of these tests; its kubelet lets every pod be Ready unless told otherwise.

    Attributes:
        refuses: the content -> what kube-scheduler says when it refuses that.
    """

    def __init__(self, sandbox: Sandbox, proxy: Proxy, operator: Operator) -> None:
        self.sandbox = sandbox
        self.api = Api(sandbox)
        self.proxy = proxy
        self.operator = operator
        self.refuses: Callable[[str], str] = lambda hash_: ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(10)

    # --- the kubelet --------------------------------------------------------------------------

    def _play(self) -> None:
        while not self._stop.wait(0.1):
            try:
                for pod in self.pods():
                    self._run(pod)
            except ApiError as error:
                print(f"played kubelet: {error}")

    def _run(self, pod: dict[str, Any]) -> None:
        path = f"{CORE}/pods/{pod['metadata']['name']}"
        if "deletionTimestamp" in pod["metadata"]:
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            self.api.request("DELETE", path, body)
            return
        if pod["status"].get("initContainerStatuses") or pod["status"]["phase"] != "Pending":
            return
        words = self.refuses(pod["metadata"]["labels"][HASH])
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if words:
            ended = {"exitCode": 1, "message": words, "startedAt": now, "finishedAt": now}
            waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s"}
            preflight = {**_container("preflight", {"waiting": waiting}), "restartCount": 1}
            preflight["lastState"] = {"terminated": ended}
            status = {"phase": "Pending", "initContainerStatuses": [preflight]}
        else:
            running = _container("kube-scheduler", {"running": {"startedAt": now}})
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            status = {
                "phase": "Running",
                "conditions": [ready],
                "containerStatuses": [{**running, "ready": True}],
            }
        self.api.request("PATCH", f"{path}/status", {"status": status})

    # --- what is there ------------------------------------------------------------------------

    def pods(self, name: str = "") -> list[dict[str, Any]]:
        selector = f"{LABEL}={name}" if name else LABEL
        found: list[dict[str, Any]] = self.api.request(
            "GET", f"{CORE}/pods?labelSelector={selector.replace('=', '%3D')}"
        )["items"]
        return found

    def put(self, name: str, **spec: Any) -> None:
        """Create a SecondaryScheduler, or replace what is asked of it."""
        body = {
            "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
            "kind": "SecondaryScheduler",
            "metadata": {"name": name},
            "spec": {"namespace": NAMESPACE, **spec},
        }
        while True:
            try:
                found = self.api.request("GET", f"{KIND}/{name}")
            except ApiError:
                self.api.request("POST", KIND, body)
                return
            try:
                self.api.request("PUT", f"{KIND}/{name}", {**found, "spec": body["spec"]})
            except ApiError as error:
                if error.code == 409:  # the operator was faster with a status
                    continue
                raise
            return

    def get(self, name: str) -> dict[str, Any]:
        return self.api.request("GET", f"{KIND}/{name}")

    def delete(self, name: str) -> None:
        self.api.request("DELETE", f"{KIND}/{name}")

    def condition(self, name: str, type_: str) -> tuple[str, str]:
        for one in self.get(name).get("status", {}).get("conditions", ()):
            if one["type"] == type_:
                return one["status"], one.get("message", "")
        return "", ""

    def installed(self, name: str) -> str:
        """The content of which all pods are there and well; empty while that is not so."""
        obj = self.get(name)
        status = obj.get("status", {})
        entries = status.get("history", [])
        seen = status.get("observedGeneration") == obj["metadata"]["generation"]
        if not seen or not entries or entries[0]["outcome"] != "installed":
            return ""
        calm = self.condition(name, "Progressing")[0] == "False"
        return str(entries[0]["hash"]) if calm else ""

    def wait_installed(self, name: str) -> str:
        until(lambda: self.installed(name) != "", 60, lambda: f"{self.get(name)}\n{self.log()}")
        return self.installed(name)

    def made_for(self, name: str) -> set[str]:
        """Everything that is there for a SecondaryScheduler, as `KIND NAME`."""
        paths = {
            f"{CORE}/configmaps", f"{CORE}/serviceaccounts", f"{CORE}/services", f"{CORE}/pods",
            f"{APPS}/deployments", f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
            f"{RBAC}/namespaces/{NAMESPACE}/roles", f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
            f"{RBAC}/namespaces/kube-system/rolebindings", f"{RBAC}/clusterrolebindings",
        }  # fmt: skip
        return {
            f"{path.rpartition('/')[2]} {obj['metadata']['name']}"
            for path in paths
            for obj in self.api.request("GET", f"{path}?labelSelector={LABEL}%3D{name}")["items"]
        }

    def log(self) -> str:
        return f"the operator's log ends: {self.operator.text()[-3000:]}"


def flags(sandbox: Sandbox) -> tuple[str, ...]:
    """Of the operator: there is no control plane to take the image from."""
    image = images.scheduler_name(sandbox.kubernetes)
    return f"--operand-image={image}", "--pending-pods-interval=5"


def _container(name: str, state: dict[str, Any]) -> dict[str, Any]:
    bare = {"ready": False, "restartCount": 0, "image": "x", "imageID": ""}
    return {"name": name, "state": state, **bare}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    teardown.down(NAME)
    sandbox = lifecycle.up(NAME, 0, 0, with_operator=False)
    proxy = operator = found = None
    try:
        kubectl = [str(sandbox.state / "bin/kubectl"), f"--kubeconfig={sandbox.kubeconfig}"]
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "crds")
        run(*kubectl, "wait", "--for=condition=Established", "crd", "--all")
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "deploy/kubeadm")
        proxy = Proxy(sandbox)
        proxy.identity = OPERATOR
        operator = Operator(proxy, tmp_path_factory.mktemp("operator"))
        found = World(sandbox, proxy, operator)
        operator.start(*flags(sandbox))
        yield found
    finally:
        if found is not None:
            found.close()
        if operator is not None:
            operator.kill()
        if proxy is not None:
            proxy.close()
        teardown.down(NAME)


@pytest.fixture
def mine(world: World) -> Iterator[str]:
    """The name of a SecondaryScheduler; all of it is gone after the test."""
    name = f"mine-{time.monotonic_ns() % 100000}"
    world.refuses = lambda hash_: ""
    yield name
    world.refuses = lambda hash_: ""
    with contextlib.suppress(ApiError):
        world.delete(name)
    until(lambda: world.made_for(name) == set(), 60, lambda: f"left: {world.made_for(name)}")


def test_everything_is_made_with_the_operators_own_rights_and_goes_with_its_owner(
    world: World, mine: str
) -> None:
    world.put(mine, replicas=3)
    hash_ = world.wait_installed(mine)
    made = {one for one in world.made_for(mine) if not one.startswith("pods ")}
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
    status = world.get(mine)["status"]
    assert (status["readyReplicas"], status["configHash"]) == (3, hash_)
    # Nobody leads: these pods are played, and nobody holds the Lease.
    assert world.condition(mine, "Available") == (
        "False",
        f"nobody holds the Lease {NAMESPACE}/{mine}",
    )
    world.operator.kill()  # it is not needed for the end
    world.delete(mine)
    until(lambda: world.made_for(mine) == set(), 60, lambda: f"left: {world.made_for(mine)}")
    world.operator.start(*flags(world.sandbox))


def test_at_rest_nothing_is_written(world: World, mine: str) -> None:
    world.put(mine, sidecars=[{"name": "extender", "image": "e:1"}], resources={"requests": ODD})
    world.wait_installed(mine)
    time.sleep(2)
    world.proxy.arm(0, lambda: None, after=False)
    time.sleep(5)
    ours = [write for write in world.proxy.writes if "clusteroperators" not in write]
    assert ours == [], world.proxy.bodies


ODD = {"cpu": "0.10", "memory": 67108864}
"""Quantities as only a person would write them; the API server does not keep those as such."""


def test_a_refused_configuration_never_replaces_a_good_one(world: World, mine: str) -> None:
    world.put(mine)
    good = world.wait_installed(mine)
    pods = {pod["metadata"]["uid"] for pod in world.pods(mine)}
    world.refuses = lambda hash_: "" if hash_ == good else 'E1 1:1:1.0 1 x] "x" err="no such thing"'
    world.put(mine, config={"parallelism": 3})
    until(
        lambda: "kube-scheduler refused it" in world.condition(mine, "Degraded")[1],
        60,
        lambda: f"{world.get(mine)}\n{world.log()}",
    )
    status, message = world.condition(mine, "Degraded")
    assert status == "True"
    assert f"{good} runs on" in message
    until(
        lambda: {pod["metadata"]["uid"] for pod in world.pods(mine)} == pods,
        60,
        "the pods that ran before did not stay alone",
    )
    outcomes = {entry["outcome"] for entry in world.get(mine)["status"]["history"]}
    assert outcomes == {"installed", "refused"}
    world.put(mine, config={"parallelism": 4})
    world.refuses = lambda hash_: ""
    assert world.wait_installed(mine) != good
    assert world.condition(mine, "Degraded")[0] == "False"


def test_what_somebody_changes_is_put_back(world: World, mine: str) -> None:
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
    until(
        lambda: (
            world.api.request("GET", deployment)["spec"]["replicas"] == 2
            and all(world.api.request("GET", path).get("subjects") for path in bindings)
            and world.api.request("GET", role).get("rules")
            and {f"services {mine}", f"configmaps {mine}-config-{hash_}"} <= world.made_for(mine)
        ),
        30,
        world.log,
    )


def test_what_is_somebody_elses_is_not_touched_and_is_named(world: World, mine: str) -> None:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": mine}}
    world.api.request("POST", f"{CORE}/serviceaccounts", body)
    try:
        uid = world.api.request("GET", f"{CORE}/serviceaccounts/{mine}")["metadata"]["uid"]
        world.put(mine)
        until(lambda: "is somebody else's" in world.condition(mine, "Degraded")[1], 30, world.log)
        found = world.api.request("GET", f"{CORE}/serviceaccounts/{mine}")["metadata"]
        assert found["uid"] == uid
        assert "ownerReferences" not in found
    finally:
        world.api.request("DELETE", f"{CORE}/serviceaccounts/{mine}")
    world.put(mine, logLevel="Debug")
    world.wait_installed(mine)


def test_what_the_api_refuses_is_told_and_stops_nobody_else(world: World, mine: str) -> None:
    world.put(mine, affinity={"nodeAffinity": "nonsense"})
    until(lambda: world.condition(mine, "Degraded")[0] == "True", 30, world.log)
    other = f"{mine}-b"
    world.put(other)
    try:
        world.wait_installed(other)
        assert "Deployment" in world.condition(mine, "Degraded")[1]
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
        until(lambda name=name: world.proxy.killed or world.installed(name) != "", 60, world.log)
        struck = world.proxy.disarm()
        if struck:
            world.operator.start(*flags(world.sandbox))
        world.wait_installed(name)
        assert len([o for o in world.made_for(name) if not o.startswith("pods ")]) == 10
        if not struck:
            break
    assert len(names) > 3
    for name in names:
        world.delete(name)


def test_its_account_may_do_what_a_scheduler_does_and_holds_its_own_lease(
    world: World, mine: str, kube_scheduler: Path, tmp_path: Path
) -> None:
    """A real kube-scheduler with the token of the account that was made for it binds a pod."""
    world.put(mine)
    hash_ = world.wait_installed(mine)
    data = world.api.request("GET", f"{CORE}/configmaps/{mine}-config-{hash_}")["data"]
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
                "--bind-address=127.0.0.1", f"--secure-port={_free_port()}",
            ],
            stdout=output, stderr=output,
        )  # fmt: skip
    try:
        until(
            lambda: world.get(mine)["status"].get("leaseHolder", "") != "",
            30,
            lambda: f"no leader: {log.read_text()[-3000:]}",
        )
        until(lambda: world.condition(mine, "Available")[0] == "True", 30, world.log)
        # This process is none of the pods, and elects by their Lease.
        until(
            lambda: "is none of these pods" in world.condition(mine, "Degraded")[1], 30, world.log
        )
        _bind_a_pod(world, mine, log)
        until(
            lambda: f'{socket.gethostname()} serves "{mine}"' in _told(world, "UnknownScheduler"),
            30,
            world.log,
        )
        said = log.read_text()
        assert "forbidden" not in said.lower(), said[-3000:]
        world.proxy.arm(0, lambda: None, after=False)
        time.sleep(5)
        ours = [write for write in world.proxy.writes if "clusteroperators" not in write]
        assert ours == [], "a Lease that is renewed is no news"
    finally:
        process.kill()  # one that is asked to end gives its Lease back
        process.wait(20)
    until(
        lambda: "does not renew it" in world.condition(mine, "Available")[1],
        60,
        lambda: f"{world.condition(mine, 'Available')}",
    )


def test_a_pod_that_asks_for_nobody_hears_of_it(world: World) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks-for-nobody"},
        "spec": {
            "schedulerName": "nobody",
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "i"}],
        },
    }
    world.api.request("POST", pods, pod)
    try:
        selector = "involvedObject.name%3Dasks-for-nobody,reason%3DNoSuchScheduler"
        path = f"/api/v1/namespaces/default/events?fieldSelector={selector}"
        until(lambda: world.api.request("GET", path)["items"] != [], 60, world.log)
        (event,) = world.api.request("GET", path)["items"]
        assert 'no scheduler serves the name "nobody"' in event["message"]
        until(lambda: "nobody" in _told(world, "PodsWithoutScheduler"), 30, world.log)
    finally:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        world.api.request("DELETE", f"{pods}/asks-for-nobody", body)


def _told(world: World, type_: str) -> str:
    """What a condition of KubeScheduler says."""
    kubescheduler = "/apis/operator.openshift.io/v1/kubeschedulers/cluster"
    found = world.api.request("GET", kubescheduler)["status"]["conditions"]
    return str({each["type"]: each for each in found}[type_].get("message", ""))


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


def _bind_a_pod(world: World, name: str, log: Path) -> None:
    """A pod that asks for the scheduler gets onto a node, and the event says who did it."""
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-of-{name}"}}
    world.api.request("POST", "/api/v1/nodes", node)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "x", "message": ""}
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [{**ready, **times}]}
    path = f"/api/v1/nodes/node-of-{name}"
    world.api.request("PATCH", f"{path}/status", {"status": status})
    pods = "/api/v1/namespaces/default/pods"
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
    try:
        until(lambda: bool(world.api.request("POST", pods, pod)), 30, "no pod could be made")
        mine = f"{pods}/asks-for-{name}"
        until(
            lambda: world.api.request("GET", mine)["spec"].get("nodeName", "") != "",
            30,
            lambda: f"not bound: {log.read_text()[-3000:]}",
        )
        selector = f"involvedObject.name%3Dasks-for-{name},reason%3DScheduled"
        events = f"/api/v1/namespaces/default/events?fieldSelector={selector}"
        until(
            lambda: (
                [
                    event.get("reportingComponent") or event["source"]["component"]
                    for event in world.api.request("GET", events)["items"]
                ]
                == [name]
            ),
            30,
            "no event of this scheduler",
        )
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        world.api.request("DELETE", mine, body)
    finally:
        world.api.request("DELETE", path)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
