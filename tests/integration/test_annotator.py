"""The annotator against a real API server, with the rights that it is installed with.

Nodes are objects and their exporters are played: all of 127.0.0.0/8 is this machine, so one server
can be the exporter of every node and knows by its address which one is asked.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cluster.observe import until
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.kube.errors import Conflict, Invalid
from kube_scheduler_operator.kube.resource import NODES, ObjectRef
from kube_scheduler_operator.scheduling.annotator.annotation import KEYS

from .conftest import RefusedError
from .played_nodes import is_taken_up

if TYPE_CHECKING:
    from .conftest import ApiServer

REPOSITORY = Path(__file__).resolve().parents[2]
WRONG_CLOCK = Path(__file__).parent / "wrong_clock.py"
NAMESPACE = "kube-scheduler-operator"
ANNOTATION = "load.kube-scheduler-operator.dev/usage"
PATIENCE = 90.0
RULES: dict[str, Any] = {
    "syncPolicy": [
        {"name": f"{resource}_usage_{window}", "periodSeconds": 20}
        for resource in ("cpu", "mem")
        for window in ("avg_5m", "max_avg_1h", "max_avg_1d")
    ],
    "graceSeconds": 10,
    "cycleSeconds": 1,
    "refreshSeconds": 8,
}

pytestmark = [
    pytest.mark.timeout(300, func_only=True),
    pytest.mark.usefixtures("nodes_of_ones_own"),
]


class Exporters:
    """What exporters say, by the last number of a node's address."""

    def __init__(self) -> None:
        self.usage: dict[int, float] = {}
        self.silent: set[int] = set()
        exporters = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                number = int(self.connection.getsockname()[0].rpartition(".")[2])
                if number in exporters.silent:
                    self.send_error(503)
                    return
                percent = 100 * exporters.usage.get(number, 0.3)
                names = [entry["name"] for entry in RULES["syncPolicy"]]
                body = json.dumps({**dict.fromkeys(names, percent), "cpu_usage_active": percent})
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class World:
    """Nodes, their exporters, a policy, and annotators that go by it."""

    def __init__(self, api: ApiServer, exporters: Exporters, kubeconfig: Path, place: Path) -> None:
        self.api, self.exporters, self.kubeconfig = api, exporters, kubeconfig
        self.policy, self._place = place / "policy.json", place
        self._started: list[subprocess.Popen[bytes]] = []
        self._nodes: list[str] = []
        self.write()

    def write(self, **changed: Any) -> None:
        """Put another policy into the file, at once as a mount does."""
        source = {"type": "NodeMetrics", "port": self.exporters.port, "timeoutSeconds": 5}
        scratch = self._place / "policy.new"
        scratch.write_text(json.dumps({**RULES, "source": source, **changed}))
        scratch.rename(self.policy)

    def add(self, name: str, number: int, **annotations: str) -> None:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        address = {"type": "InternalIP", "address": f"127.9.0.{number}"}
        status = {"addresses": [address], "capacity": amounts, "allocatable": amounts}
        node = {"metadata": {"name": name, "annotations": annotations}, "status": status}
        self.api.request("POST", "/api/v1/nodes", node)
        self._nodes.append(name)

    def remove(self, name: str) -> None:
        self.api.request("DELETE", f"/api/v1/nodes/{name}")
        self._nodes.remove(name)

    def annotations(self, name: str) -> dict[str, str]:
        node = self.api.request("GET", f"/api/v1/nodes/{name}")
        return dict(node["metadata"].get("annotations") or {})

    def reported(self, name: str) -> dict[str, Any]:
        return dict(json.loads(self.annotations(name).get(ANNOTATION, "{}")))

    def state(self) -> dict[str, Any]:
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/load-state"
        data = self.api.request("GET", path).get("data") or {}
        return dict(json.loads(data.get("state.json", "{}")))

    def start(self, *words: str, ahead: float = 0.0) -> Annotator:
        """Start a process on a machine whose clock is `ahead` seconds ahead."""
        log = self._place / f"annotator-{len(self._started)}.log"
        command = [
            sys.executable, str(WRONG_CLOCK), f"{ahead:g}", "annotator",
            f"--kubeconfig={self.kubeconfig}", f"--namespace={NAMESPACE}",
            f"--config={self.policy}", "--listen-address=127.0.0.1:0", *words,
        ]  # fmt: skip
        with log.open("wb") as file:
            environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "operator")}
            process = subprocess.Popen(command, stderr=file, env=environment)
        self._started.append(process)
        return Annotator(process, log)

    def close(self) -> None:
        for process in self._started:
            process.terminate()  # so that it gives its Lease back, and the next test need not wait
        for process in self._started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for name in list(self._nodes):
            self.remove(name)


class Annotator:
    """One process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self._file = process, log

    def log(self) -> str:
        return self._file.read_text()

    def metrics(self) -> dict[str, float]:
        serving = re.search(r'"Serving" address="(.*)"', self.log())
        if not serving:
            assert self.process.poll() is None, self.log()
            return {}
        with urllib.request.urlopen(f"http://{serving[1]}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def leads(self) -> bool:
        metrics = self.metrics()
        return metrics.get("load_annotator_leader") == 1 and (
            "load_annotator_first_cycle_seconds" in metrics
        )

    def wait(self) -> int:
        return self.process.wait(60)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()


@pytest.fixture(scope="module")
def kubeconfig(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of the account that deploy/load-annotator makes."""
    path = tmp_path_factory.mktemp("annotator") / "kubeconfig"
    account = {"metadata": {"name": "load-annotator", "namespace": NAMESPACE}}
    with contextlib.suppress(RefusedError):  # another file of tests has made it
        api_server.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    api_server.kubectl("apply", "-k", str(REPOSITORY / "deploy/load-annotator"))
    state = {"metadata": {**account["metadata"], "name": "load-state"}}
    api_server.request("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", state)
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/load-annotator"
    request = {"spec": {"expirationSeconds": 36000}}
    token = api_server.request("POST", f"{accounts}/token", request)["status"]["token"]
    administrator = json.loads(
        api_server.kubectl("config", "view", "--raw", "--minify", "-o", "json")
    )
    administrator["users"] = [{"name": "annotator", "user": {"token": token}}]
    administrator["contexts"][0]["context"]["user"] = "annotator"
    path.touch(0o600)
    path.write_text(json.dumps(administrator))
    yield path
    api_server.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/configmaps/load-state")


@pytest.fixture(scope="module")
def exporters() -> Iterator[Exporters]:
    exporters = Exporters()
    yield exporters
    exporters.close()


@pytest.fixture
def world(
    api_server: ApiServer, exporters: Exporters, kubeconfig: Path, tmp_path: Path
) -> Iterator[World]:
    exporters.usage, exporters.silent = {}, set()
    world = World(api_server, exporters, kubeconfig, tmp_path)
    yield world
    world.close()


@pytest.mark.presubmit
def test_load_is_measured_written_and_reported(world: World) -> None:
    for number in (1, 2, 3):
        world.add(f"an-{number}", number)
    world.exporters.usage = {1: 0.1, 2: 0.9}
    annotator = world.start()
    until(lambda: all(world.reported(f"an-{n}") for n in (1, 2, 3)), PATIENCE, annotator.log)
    load = world.reported("an-2")
    assert load["cpu_usage_avg_5m"] == load["mem_usage_max_avg_1d"] == 0.9
    assert load["source"] == "NodeMetrics"
    assert load["free_cpu_mean"] == pytest.approx(400)
    assert world.reported("an-1")["cpu_usage_avg_5m"] == 0.1
    world.exporters.usage[1] = 0.7
    until(lambda: world.reported("an-1")["cpu_usage_avg_5m"] == 0.7, PATIENCE, annotator.log)
    at = world.reported("an-3")["at"]
    until(
        lambda: world.reported("an-3")["at"] != at, PATIENCE, "an unchanged node is never refreshed"
    )
    until(lambda: world.state().get("known") == 3, PATIENCE, lambda: str(world.state()))
    state = world.state()
    assert (state["nodes"], state["staleCount"], state["missingCount"]) == (3, 0, 0)
    assert (state["source"], state["error"], state["write"]) == ("NodeMetrics", "", [])
    assert annotator.metrics()['load_annotator_nodes{state="known"}'] == 3
    assert annotator.end() == 0


@pytest.mark.parametrize("ahead", [-1200.0, -560.0, 560.0, 1200.0])
def test_annotations_have_the_time_of_the_api_server(world: World, ahead: Any) -> None:
    world.add("an-1", 1)
    annotator = world.start(ahead=ahead)
    until(lambda: world.reported("an-1"), PATIENCE, annotator.log)
    until(lambda: world.state().get("known") == 1, PATIENCE, lambda: str(world.state()))
    for text in (world.reported("an-1")["at"], world.state()["at"]):
        written = datetime.fromisoformat(text)
        assert abs((datetime.now(UTC) - written).total_seconds()) < 300.0


async def test_a_patch_of_an_outdated_node_is_refused(world: World) -> None:
    world.add("an-1", 1)
    # kube-controller-manager writes a new node as well.
    until(
        lambda: is_taken_up(world.api.request("GET", "/api/v1/nodes/an-1")),
        PATIENCE,
        "an-1 has still the taint of a new node",
    )
    ref = ObjectRef(NODES, None, "an-1")
    async with ApiClient(find(str(world.kubeconfig)), field_manager="test") as api:
        seen = (await api.get(ref))["metadata"]
        newer = await api.patch(ref, {"metadata": {"annotations": {"other": "theirs"}}})
        versions = (seen["resourceVersion"], newer["metadata"]["resourceVersion"])
        assert versions[0] != versions[1]
        for uid, version, refused in (
            (seen["uid"], versions[0], Conflict),
            ("another", versions[0], Conflict),
            ("another", versions[1], Invalid),
        ):
            with pytest.raises(refused):
                await api.patch(ref, patch_of(uid, version))
        await api.patch(ref, patch_of(seen["uid"], versions[1]))
    assert world.annotations("an-1") == {"other": "theirs", ANNOTATION: "{}"}


def patch_of(uid: str, version: str) -> dict[str, Any]:
    annotations = {"annotations": {ANNOTATION: "{}"}}
    return {"metadata": {"uid": uid, "resourceVersion": version, **annotations}}


def test_a_successor_takes_over_and_writes_nothing_twice(world: World) -> None:
    world.write(refreshSeconds=100000, graceSeconds=100000)
    for number in (1, 2):
        world.add(f"an-{number}", number)
    first = world.start()
    until(lambda: all(world.reported(f"an-{n}") for n in (1, 2)), PATIENCE, first.log)
    second = world.start()
    until(lambda: "load_annotator_leader" in second.metrics(), PATIENCE, second.log)
    assert second.metrics()["load_annotator_leader"] == 0
    before = [world.annotations(f"an-{n}") for n in (1, 2)]
    assert first.end() == 0
    until(second.leads, PATIENCE, second.log)
    assert [world.annotations(f"an-{n}") for n in (1, 2)] == before
    assert not [name for name in second.metrics() if "patches_total" in name]
    world.exporters.usage[2] = 0.9
    until(lambda: world.reported("an-2")["cpu_usage_avg_5m"] == 0.9, PATIENCE, second.log)
    # One that is killed keeps its Lease until that has run out.
    third = world.start()
    second.end(signal.SIGKILL)
    world.exporters.usage[1] = 0.9
    until(lambda: world.reported("an-1")["cpu_usage_avg_5m"] == 0.9, PATIENCE, third.log)


def test_nodes_come_and_go_and_grow_stale(world: World) -> None:
    world.add("an-1", 1)
    world.add("an-2", 2)
    world.exporters.silent = {2}
    annotator = world.start()
    until(
        lambda: world.state().get("missing") == ["an-2"] and "503" in world.state()["error"],
        PATIENCE,
        lambda: str(world.state()),
    )
    world.exporters.silent = set()
    until(lambda: world.state()["known"] == 2, PATIENCE, lambda: str(world.state()))
    world.add("an-3", 3)
    until(lambda: bool(world.reported("an-3")), PATIENCE, annotator.log)
    world.remove("an-1")
    world.exporters.silent = {3}
    until(lambda: world.state()["stale"] == ["an-3"], PATIENCE, lambda: str(world.state()))
    assert world.state()["nodes"] == 2
    # Not once a cycle: an-3 was silent for 30 of them. Nodes that are new, too, count as unknown.
    assert annotator.log().count("Load unknown for some nodes") <= 6
    world.exporters.silent = set()
    until(lambda: world.state()["known"] == 2, PATIENCE, lambda: str(world.state()))


def test_another_policy_needs_no_restart(world: World) -> None:
    world.add("an-1", 1)
    world.api.request(
        "POST",
        "/api/v1/namespaces/default/pods",
        {
            "metadata": {"name": "an-pod"},
            "spec": {
                "nodeName": "an-1",
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1500m"}}}
                ],
            },
        },
    )
    annotator = world.start()
    until(lambda: bool(world.reported("an-1")), PATIENCE, annotator.log)
    assert set(world.annotations("an-1")) == {ANNOTATION}
    world.write(write=["crane", "safe"])
    everything = {*KEYS["own"], *KEYS["crane"], *KEYS["safe"]}
    until(lambda: set(world.annotations("an-1")) == everything, PATIENCE, annotator.log)
    assert world.annotations("an-1")["requested-cpu"] == "1500"
    assert world.annotations("an-1")["cpu_usage_avg_5m"].startswith("0.30000,")
    until(lambda: world.state()["write"] == ["crane", "safe"], PATIENCE, annotator.log)
    world.policy.write_text("{")
    until(lambda: "stays in use" in world.state()["error"], PATIENCE, annotator.log)
    world.write(remove=["crane"], write=["safe"])
    rest = {*KEYS["own"], *KEYS["safe"]}
    until(lambda: set(world.annotations("an-1")) == rest, PATIENCE, annotator.log)
    until(lambda: world.state()["removed"] == ["crane"], PATIENCE, lambda: str(world.state()))
    path = "/api/v1/namespaces/default/pods/an-pod"
    world.api.request("DELETE", path, {"gracePeriodSeconds": 0})
    until(lambda: world.annotations("an-1")["requested-cpu"] == "0", PATIENCE, annotator.log)


def test_cleanup_removes_own_annotations_and_keeps_all_others(world: World) -> None:
    theirs = {"cpu_usage_avg_5m": "0.1,2026-11-23T00:00:00Z", "mine": "x"}
    for number in range(1, 6):
        world.add(f"an-{number}", number, **theirs)
    annotator = world.start()
    until(lambda: all(world.reported(f"an-{n}") for n in range(1, 6)), PATIENCE, annotator.log)
    cleanup = world.start("--cleanup", "--annotations=own")
    time.sleep(3)
    assert cleanup.process.poll() is None, "it must wait until no annotator leads"
    assert annotator.end() == 0
    assert cleanup.wait() == 0, cleanup.log()
    for number in range(1, 6):
        assert world.annotations(f"an-{number}") == theirs
    again = world.start("--cleanup", "--annotations=own,crane")
    assert again.wait() == 0, again.log()
    assert world.annotations("an-1") == {"mine": "x"}


def test_wrong_use_is_explained(world: World) -> None:
    for words, message in (
        (("--cleanup",), "--annotations requires"),
        (("--cleanup", "--annotations=own,all"), "own, crane, safe"),
        (("--listen-address=here",), "is not HOST:PORT"),
    ):
        annotator = world.start(*words)
        assert annotator.wait() == 2
        assert message in annotator.log()
    world.write(source={"type": "Guessing"})
    annotator = world.start()
    assert annotator.wait() == 2
    assert "Guessing" in annotator.log()
