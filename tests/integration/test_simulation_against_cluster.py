"""The simulator decides as the same kube-scheduler does at a real API server.

Each generated world is created at the API server, read back, and simulated. The same pods are then
given to both: the nodes that accept each of them, kube-scheduler's message with its reasons and
counts, and the scores of every plugin for every node are equal.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.simulate.configuration import (
    default_configuration,
    simulated,
    spying_extender,
)
from kube_scheduler_operator.simulate.decisions import (
    SCORE_FLAGS,
    PodDecision,
    ScoreLog,
    scheduled_condition,
)
from kube_scheduler_operator.simulate.kinds import KINDS, WorldKind
from kube_scheduler_operator.simulate.probes import ALL, families_of, probe, probe_profiles
from kube_scheduler_operator.simulate.process import binary_version
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.scenario import placed_without_scheduler
from kube_scheduler_operator.simulate.world import World

from ..seeds import SEED, SOAK, number, some_in_presubmit
from .conftest import TEST_SECONDS, ApiServer, RefusedError
from .played_nodes import is_taken_up, until
from .simulated_worlds import NAMESPACES, PRIORITIES, WAITING_CLASS, GeneratedWorld, generate

SECONDS: Final = 150
"""For the simulation of a world, which waits for each decision of the cluster."""
COUNT: Final = number("KSO_WORLDS", 30, soak=30)
_TYPES: Final = {
    "GET": "application/json",
    "POST": "application/json",
    "PUT": "application/json",
    "DELETE": "application/json",
    "PATCH": "application/merge-patch+json",
}
NOT_CREATED: Final = "ResourceClaim not created yet"
"""What kube-scheduler reports about a pod before a controller has made a claim of its template."""
NOT_SERVED: Final = "the server could not find the requested resource"
"""What the API server answers about a kind that it does not serve."""
SETTLING: Final = 0.1
"""Seconds after the deletion of a pod until kube-scheduler's cache has noticed it."""
LOG_DELAY: Final = 5.0
"""Seconds after a decision until the lines about it are read from the log."""


def seeds() -> list[int]:
    first = SEED * 10_000 if SOAK else 0
    return list(range(first, first + COUNT))


class Spy:
    """The extender that only looks, for the real kube-scheduler."""

    def __init__(self) -> None:
        self.candidates: dict[str, list[str]] = {}
        spy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = json.dumps(spy.answer(body)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, args: Mapping[str, Any]) -> dict[str, Any]:
        pod, names = args["Pod"], list(args["NodeNames"])
        if pod["spec"]["schedulerName"] != ALL:
            return {"NodeNames": names}
        self.candidates[pod["metadata"]["name"]] = names
        return {"NodeNames": [], "FailedAndUnresolvableNodes": dict.fromkeys(names, "spy")}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Client:
    """Requests over one connection, because a world needs some 200."""

    def __init__(self, api: ApiServer) -> None:
        self.kubeconfig = api.kubeconfig
        host = urlsplit(api.url).netloc
        self._connection = HTTPSConnection(host, timeout=TEST_SECONDS, context=api.tls)

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, {"Content-Type": _TYPES[method]})
        response = self._connection.getresponse()
        content = response.read()
        if response.status == 404 and not content.startswith(b"{"):
            raise RefusedError(f"{method} {path}: {NOT_SERVED}")  # the group does not exist
        obj = json.loads(content)
        if response.status >= 400:
            raise RefusedError(f"{method} {path}: {obj['message']}")
        assert isinstance(obj, dict)
        return obj

    def close(self) -> None:
        self._connection.close()


class Cluster:
    """A generated world at the API server, with a kube-scheduler."""

    def __init__(self, api: Client, world: GeneratedWorld, spy: Spy) -> None:
        self._api = api
        self._world = world
        self.spy = spy
        self._made: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._log = ScoreLog()

    def create(self) -> None:
        for node in self._world.nodes:
            made = {key: node[key] for key in ("metadata", "spec")}
            self._create("/api/v1/nodes", made)
            status = node["status"]
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            patch = {"status": status}
            self._api.request("PATCH", f"{path}/status", patch)
        for path, obj in self._world.objects:
            self._create(path, obj)
        for pod in self._world.running:
            self._create(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)
        until(self._ready, "controllers have not done their part")

    def _create(self, path: str, obj: Mapping[str, Any]) -> None:
        self._made.append(f"{path}/{obj['metadata']['name']}")
        self._api.request("POST", path, dict(obj))

    def _ready(self) -> bool:
        """Controllers have done what they do with new nodes, volumes and claims."""
        if not all(map(is_taken_up, self._api.request("GET", "/api/v1/nodes")["items"])):
            return False
        volumes = self._api.request("GET", "/api/v1/persistentvolumes")["items"]
        if any(volume["status"].get("phase", "Pending") == "Pending" for volume in volumes):
            return False
        path = f"/api/v1/namespaces/{NAMESPACES[0]}/persistentvolumeclaims"
        claims = self._api.request("GET", path)["items"]
        return all(
            claim["status"]["phase"] == "Bound"
            for claim in claims
            if claim["metadata"]["name"].endswith("-bound")
        )

    def read(self) -> World:
        """As `kubectl get` reads it."""
        world = World()
        for kind in KINDS.values():
            for obj in self._listed(kind):
                world.add(obj)
        return world

    def _listed(self, kind: WorldKind) -> list[dict[str, Any]]:
        """The objects of a kind, in the newest version that is served; none if none is."""
        for resource in kind.versions():
            try:
                items = self._api.request("GET", resource.path())["items"]
            except RefusedError as error:
                if NOT_SERVED not in str(error):
                    raise
            else:
                typed = {"apiVersion": resource.api_version, "kind": resource.kind}
                return [{**obj, **typed} for obj in items]
        return []

    def start(
        self, binary: Path, config: Mapping[str, Any], folder: Path, flags: Sequence[str] = ()
    ) -> None:
        connection = {
            **config.get("clientConnection", {}),
            "kubeconfig": str(self._api.kubeconfig),
            "qps": 1000,
            "burst": 1000,
        }
        file = folder / f"config-{time.monotonic_ns()}.json"
        file.write_text(json.dumps({**config, "clientConnection": connection}))
        command: list[str | Path] = [binary, f"--config={file}", "--secure-port=0", *SCORE_FLAGS]
        command += flags
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self._reader = threading.Thread(target=self._read_log, args=(self._process,), daemon=True)
        self._reader.start()

    def _read_log(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self._log.take(line)

    def submit(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        """The pod as the API server completes it; it does not exist yet."""
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        return self._api.request("POST", f"{path}?dryRun=All", {**_typed(), **pod})

    def decide(
        self,
        *pods: Mapping[str, Any],
        scored: int = 0,
        between: Callable[[], None] = lambda: None,
    ) -> list[PodDecision]:
        """Create pods, wait until kube-scheduler has decided, and delete them.

        Args:
            pods: as a user writes them.
            scored: the number of nodes whose scores are expected in kube-scheduler's log.
            between: called while the pods still exist.
        """
        for pod in pods:
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
            self._create(path, {**_typed(), **pod})
        decisions = [self._decision(pod, scored) for pod in pods]
        between()
        for pod in pods:
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
            name = pod["metadata"]["name"]
            self._api.request("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})
        time.sleep(SETTLING)
        return decisions

    def _decision(self, pod: Mapping[str, Any], scored: int) -> PodDecision:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{namespace}/pods"
        decision = PodDecision(f"{namespace}/{name}")

        def decided() -> bool:
            found = self._api.request("GET", f"{path}/{name}")
            decision.node = found["spec"].get("nodeName") or ""
            condition = scheduled_condition(found)
            if condition.get("status") == "False":
                decision.reason = condition["reason"]
                decision.message = condition.get("message", "")
            decision.nominated = (found.get("status") or {}).get("nominatedNodeName") or ""
            return decision.decided and NOT_CREATED not in decision.message

        until(decided, f"{name} is not decided")
        read_until = time.monotonic() + LOG_DELAY
        while len(self._log.totals.get(decision.pod, {})) < scored:
            if time.monotonic() > read_until:
                break  # the comparison shows what is missing
            time.sleep(0.01)
        decision.scores = self._log.scores.get(decision.pod, {})
        decision.totals = self._log.totals.get(decision.pod, {})
        decision.candidates = self.spy.candidates.get(name)
        return decision

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._reader.join()
        for path in reversed(self._made):
            with suppress(RefusedError):
                self._api.request("DELETE", path, {"gracePeriodSeconds": 0})


def _typed() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod"}


def _as_probe(pod: Mapping[str, Any]) -> dict[str, Any]:
    """What `probe` makes of a pod, as a user writes it."""
    name = f"{pod['metadata']['name']}-probe"
    spec = {**pod["spec"], "schedulerName": ALL}
    spec.pop("schedulingGates", None)
    return {"metadata": {**pod["metadata"], "name": name}, "spec": spec}


@pytest.fixture(scope="module")
def cluster(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[ApiServer]:
    with prepared(api_server):
        yield api_server


@contextmanager
def prepared(api_server: ApiServer) -> Iterator[None]:
    """An API server with what all generated worlds have."""
    for namespace in NAMESPACES:
        with suppress(RefusedError):
            api_server.create_namespace(namespace)
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for name, value in PRIORITIES.items():
        policy = "Never" if name.endswith("never") else "PreemptLowerPriority"
        body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        with suppress(RefusedError):
            api_server.request("POST", classes, body)
    storage = {
        "metadata": {"name": WAITING_CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    with suppress(RefusedError):
        api_server.request("POST", "/apis/storage.k8s.io/v1/storageclasses", storage)
    yield
    for name in PRIORITIES:
        api_server.request("DELETE", f"{classes}/{quote(name)}")
    api_server.request("DELETE", f"/apis/storage.k8s.io/v1/storageclasses/{WAITING_CLASS}")
    for namespace in NAMESPACES:
        api_server.request("DELETE", f"/api/v1/namespaces/{namespace}")
    # The next file creates them again.
    until(lambda: not _namespaces(api_server) & {*NAMESPACES}, "a namespace is not deleted")


def _namespaces(api_server: ApiServer) -> set[str]:
    found = api_server.request("GET", "/api/v1/namespaces")["items"]
    return {each["metadata"]["name"] for each in found}


def probing(program: Path, profile: dict[str, Any]) -> RunOptions:
    """What simulates a kube-scheduler with one profile, and with the one of probes beside it."""
    gates = Gates(binary_version(program))
    return RunOptions(
        program,
        {**default_configuration(), "profiles": [profile]},
        profiles=probe_profiles(profile, families_of(profile, gates), gates)[:1],
        probes=frozenset({ALL}),
        scores=True,
        seconds=SECONDS,
    )


@pytest.mark.timeout(180, func_only=True)
@pytest.mark.parametrize("seed", some_in_presubmit(seeds(), 2))
def test_a_world_is_simulated_as_the_real_scheduler_decides(
    cluster: ApiServer, kube_scheduler_binary: Path, tmp_path: Path, seed: int
) -> None:
    generated = generate(seed)
    options = probing(kube_scheduler_binary, generated.profile)
    spy = Spy()
    client = Client(cluster)
    real = Cluster(client, generated, spy)
    try:
        real.create()
        world = real.read()
        full = simulated(options.config, options.profiles, [spying_extender(spy.url)])
        real.start(kube_scheduler_binary, full, tmp_path)
        for pod in generated.waiting:
            pod["spec"]["schedulerName"] = generated.profile["schedulerName"]
        submitted = [real.submit(pod) for pod in generated.waiting]
        asyncio.run(_compare(world, options, real, generated.waiting, submitted))
    finally:
        real.close()
        client.close()
        spy.close()


@pytest.mark.presubmit
def test_a_live_cluster_is_explained_and_not_written(
    cluster: ApiServer, kube_scheduler_binary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generated = GeneratedWorld(nodes=generate(0).nodes)
    client = Client(cluster)
    real = Cluster(client, generated, Spy())
    pod = {
        "metadata": {"name": "explained", "namespace": NAMESPACES[0]},
        "spec": {
            "schedulerName": "default-scheduler",
            "automountServiceAccountToken": False,
            "nodeSelector": {"disk": "tape"},
            "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}]}],
        },
    }
    path = f"/api/v1/namespaces/{NAMESPACES[0]}/pods"
    try:
        real.create()
        before = client.request("POST", path, {**_typed(), **pod})
        command = [
            "why",
            "explained",
            "-n",
            NAMESPACES[0],
            "--platform",
            "kubeadm",
        ]
        command += ["--kubeconfig", str(cluster.kubeconfig)]
        command += ["--kube-scheduler", str(kube_scheduler_binary), "-o", "json"]
        assert kubectl_plugin(command) == 0, capsys.readouterr().err
        found = json.loads(capsys.readouterr().out)
        after = client.request("GET", f"{path}/explained")
        assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    finally:
        with suppress(RefusedError):
            client.request("DELETE", f"{path}/explained", {"gracePeriodSeconds": 0})
        real.close()
        real.spy.close()
        client.close()
    causes = {each["text"] for group in found["groups"] for each in group["causes"]}
    tape = (
        "the pod's nodeSelector demands the label disk=tape, which no node has; nodes have hdd, ssd"
    )
    assert tape in causes
    (label, *_) = found["fixes"]
    assert f"label a node: kubectl label node {min(label['nodes'])} disk=tape" in label["text"]
    assert any('KubeScheduler "cluster" does not exist' in note for note in found["notes"])


def test_the_api_server_shows_which_pods_no_scheduler_placed(cluster: ApiServer) -> None:
    client, path = Client(cluster), f"/api/v1/namespaces/{NAMESPACES[0]}/pods"
    target = {"apiVersion": "v1", "kind": "Node", "name": "elsewhere"}
    container = {"name": "c", "image": "i"}
    spec = {"automountServiceAccountToken": False, "containers": [container]}
    try:
        for name, node in (("bound", {}), ("created", {"nodeName": target["name"]})):
            pod = {"metadata": {"name": name}, "spec": {**spec, **node}}
            client.request("POST", path, {**_typed(), **pod})
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "bound"}}
        client.request("POST", f"{path}/bound/binding", {**binding, "target": target})
        for name in ("bound", "created"):  # as a kubelet reports it, of both alike
            scheduled = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
            client.request("PATCH", f"{path}/{name}/status", {"status": scheduled})
        pods = {name: client.request("GET", f"{path}/{name}") for name in ("bound", "created")}
    finally:
        for name in ("bound", "created"):
            with suppress(RefusedError):
                client.request("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})
        client.close()
    assert {pod["spec"]["nodeName"] for pod in pods.values()} == {target["name"]}
    assert not placed_without_scheduler(pods["bound"])
    assert placed_without_scheduler(pods["created"]) == "created with spec.nodeName"


async def _compare(
    world: World,
    options: RunOptions,
    real: Cluster,
    waiting: list[dict[str, Any]],
    submitted: list[dict[str, Any]],
) -> None:
    """Compare the decisions about `waiting`, which the API server completes to `submitted`."""
    async with Run(world, options) as run:
        probes = [probe(pod, at, ALL) for at, pod in enumerate(submitted)]
        for made, pod in zip(probes, submitted, strict=True):  # as in the real cluster
            made["metadata"]["name"] = f"{pod['metadata']['name']}-probe"
        found = await run.schedule(probes, settle=False)
        for actual in await asyncio.to_thread(real.decide, *map(_as_probe, waiting)):
            expected = found[actual.pod]
            assert sorted(actual.candidates or ()) == sorted(expected.candidates or ()), actual
            assert actual.message == expected.message
        run.forget(probes)
        await asyncio.sleep(SETTLING)
        for pod, complete in zip(waiting, submitted, strict=True):
            (expected,) = (await run.schedule([complete])).values()
            scored = len(expected.totals)
            (actual,) = await asyncio.to_thread(partial(real.decide, pod, scored=scored))
            assert in_tree(actual) == expected.scores, pod["metadata"]["name"]
            assert actual.totals == expected.totals
            if expected.nominated:
                assert actual.nominated or actual.node
                return  # the pods that were preempted are gone
            assert (bool(actual.node), actual.reason) == (bool(expected.node), expected.reason)
            assert actual.message == expected.message
            assert not expected.totals or actual.node in expected.best
            changes = pod["spec"].get("volumes") or pod["spec"].get("resourceClaims")
            if changes and expected.node:
                return  # volumes and devices are taken now
            run.forget([complete])
            await asyncio.sleep(SETTLING)


def in_tree(decision: PodDecision) -> dict[str, dict[str, int]]:
    """The scores without that of the extender that only looks."""
    return {
        node: {plugin: score for plugin, score in scores.items() if "://" not in plugin}
        for node, scores in decision.scores.items()
    }
