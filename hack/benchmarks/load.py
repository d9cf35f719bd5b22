"""The load programs at thousands of nodes: how much they write, weigh and take.

Nodes are objects in a real API server with the size of real ones, and their status is renewed every
five minutes, as kubelets do. Their exporters are played (`played_load.py`); the annotator is the
real one, and so is one exporter that measures this machine. PATCHes are counted by the API server.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.table import REPOSITORY, Row
from cluster.api import Api
from cluster.console import SandboxError, say
from cluster.model import Sandbox
from cluster.observe import until

ANNOTATION = "load.kube-scheduler-operator.dev/usage"
PORT, METRICS_PORT, EXPORTER_PORT = 19171, 19172, 19173
SEED = 7
HEARTBEAT_SECONDS = 300.0
SETTLED_SECONDS = 120.0
"""So long after the first cycle a whole one has been counted."""

SAMPLE = 400
_NODES = "/api/v1/nodes"
POLICY = {"source": {"type": "NodeMetrics", "port": PORT}}


def measure(sandbox: Sandbox, nodes: int, minutes: float) -> Iterator[Row]:
    """Run all of it for so long."""
    api = Api(sandbox)
    say(f"  making {nodes} nodes")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _make(api, number), range(nodes)))
    processes = Processes(sandbox)
    heartbeats = Heartbeats(sandbox, nodes)
    try:
        processes.start_player(nodes)
        heartbeats.start()
        annotator = processes.start_annotator()
        exporter = processes.start_exporter()
        begun = time.monotonic()
        yield from first_cycle(annotator)
        # The first cycle writes everything once; what follows is the steady state.
        writes, cpu, cpu_exporter = _patches(sandbox), _cpu(annotator), _cpu(exporter)
        since, cycles = time.monotonic(), []
        say(f"  watching for {minutes:g} min")
        while time.monotonic() - begun < 60 * minutes:
            time.sleep(15)
            _check(annotator, sandbox)
            _get(f"http://127.0.0.1:{EXPORTER_PORT}/statistics")
            if time.monotonic() - since > SETTLED_SECONDS:
                cycles.append(_metric("load_annotator_cycle_seconds"))
        hours = (time.monotonic() - since) / 3600
        written = _patches(sandbox) - writes
        yield Row("annotator: PATCHes per node and hour", [written / nodes / hours], "", 30)
        yield Row("annotator: a full cycle", cycles or [0.0], "s", 60)
        yield Row("annotator: memory, greatest", [_memory(annotator)], "MiB", 150)
        share = 100 * (_cpu(annotator) - cpu) / (hours * 3600)
        yield Row("annotator: CPU", [share], "% of a core", None)
        yield from _truth(api, nodes)
        yield Row("node-metrics: memory, greatest", [_memory(exporter)], "MiB", 30)
        share = 100 * (_cpu(exporter) - cpu_exporter) / (hours * 3600)
        yield Row("node-metrics: CPU", [share], "% of a core", 0.2)
    finally:
        heartbeats.stop()
        processes.stop()


def first_cycle(annotator: subprocess.Popen[bytes]) -> Iterator[Row]:
    """Wait for it; how long it took."""
    until(lambda: _metric("load_annotator_first_cycle_seconds") > 0, 300, "no first cycle")
    seconds = _metric("load_annotator_first_cycle_seconds")
    yield Row("annotator: first cycle, from leading to all written", [seconds], "s", 60)
    yield Row("annotator: CPU of the first cycle", [_cpu(annotator)], "s", None)


def _truth(api: Api, nodes: int) -> Iterator[Row]:
    """What annotations say beside what exporters say now: up to a cycle later."""
    ages, errors, missing = [], [], 0
    for number in range(0, nodes, max(nodes // SAMPLE, 1)):
        node = api.request("GET", f"{_NODES}/{_name(number)}")
        text = node["metadata"].get("annotations", {}).get(ANNOTATION)
        if text is None:
            missing += 1
            continue
        written = json.loads(text)
        now = json.loads(_get(f"http://{address(number)}:{PORT}/statistics"))
        ages.append(time.time() - datetime.fromisoformat(written["at"]).timestamp())
        errors += [
            abs(written[key] - now[key] / 100)
            for key in written
            if "_usage_" in key
        ]  # fmt: skip
    yield Row("annotations: nodes without one", [float(missing)], f"of {SAMPLE}", 0)
    yield Row("annotations: age, 99th percentile", [_percentile(ages)], "s", 300)
    yield Row(
        "annotations: off by, 99th percentile", [100 * _percentile(errors)], "% of capacity", 10
    )


def _percentile(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98] if len(values) > 1 else 0.0


# --- nodes ----------------------------------------------------------------------------------------


def _name(number: int) -> str:
    return f"load-{number:05}"


def address(number: int) -> str:
    """The address of a node's exporter, in 127.0.0.0/8; see played_load.node_of."""
    rest, low = divmod(number, 250)
    high, middle = divmod(rest, 250)
    return f"127.{high + 1}.{middle}.{low + 1}"


def _make(api: Api, number: int) -> None:
    images = [
        {"names": [f"registry.example/team/service-{image}@sha256:{image:064}",
                   f"registry.example/team/service-{image}:v{number % 7}"],
         "sizeBytes": 50_000_000 + image}
        for image in range(25)
    ]  # fmt: skip
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    api.request(
        "POST",
        _NODES,
        {
            "metadata": {"name": _name(number), "labels": {"kubernetes.io/os": "linux"}},
            "status": {
                "addresses": [{"type": "InternalIP", "address": address(number)}],
                "capacity": amounts,
                "allocatable": amounts,
                "images": images,
                "conditions": _conditions(),
            },
        },
    )


def _conditions() -> list[dict[str, Any]]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        {"type": kind, "status": "True" if kind == "Ready" else "False", "reason": "Played",
         "message": "a simulated node", "lastHeartbeatTime": now}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]  # fmt: skip


class Heartbeats:
    """Kubelets that renew their node's status."""

    def __init__(self, sandbox: Sandbox, nodes: int) -> None:
        self._api, self._nodes = Api(sandbox), nodes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End. What was never begun has nothing to end: what failed before it is to be seen."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def _run(self) -> None:
        begun, number = time.monotonic(), 0
        while not self._stop.wait(
            max(begun + number * HEARTBEAT_SECONDS / self._nodes - time.monotonic(), 0.0)
        ):
            path = f"{_NODES}/{_name(number % self._nodes)}/status"
            self._api.request("PATCH", path, {"status": {"conditions": _conditions()}})
            number += 1


# --- processes ------------------------------------------------------------------------------------


class Processes:
    """The player and the programs that are measured."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "operator")}
        self._started: list[subprocess.Popen[bytes]] = []

    def start_player(self, nodes: int) -> None:
        """Return when a day has been played."""
        say("  simulating a day of load")
        program = str(REPOSITORY / "hack/benchmarks/played_load.py")
        words = [sys.executable, program, str(PORT), str(nodes), str(SEED)]
        player = subprocess.Popen(words, stdout=subprocess.PIPE)
        self._started.append(player)
        assert player.stdout is not None
        if player.stdout.readline() != b"ready\n":
            raise SandboxError("the exporters cannot be simulated")

    def start_annotator(self, kubeconfig: str = "") -> subprocess.Popen[bytes]:
        """The real one; `kubeconfig` is by default the sandbox's."""
        policy = self._sandbox.state / "policy.json"
        policy.write_text(json.dumps(POLICY))
        kubeconfig = kubeconfig or str(self._sandbox.kubeconfig)
        return self._start(
            "annotator", f"--config={policy}", f"--kubeconfig={kubeconfig}",
            "--namespace=default", f"--listen-address=127.0.0.1:{METRICS_PORT}",
        )  # fmt: skip

    def start_exporter(self) -> subprocess.Popen[bytes]:
        """A real one, of this machine."""
        state = self._sandbox.state / "node-metrics.json"
        address = f"--listen-address=127.0.0.1:{EXPORTER_PORT}"
        return self._start("node-metrics", address, f"--state-file={state}")

    def stop(self) -> None:
        """End all of them."""
        for process in self._started:
            process.terminate()
        for process in self._started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "kube_scheduler_operator", *words]
        # In a session of its own it gets its share of the machine from the kernel, as a pod does.
        with log_of(self._sandbox, words[0]).open("wb") as log:
            process = subprocess.Popen(
                command, stderr=log, env=self._environment, start_new_session=True
            )
        self._started.append(process)
        return process


def log_of(sandbox: Sandbox, program: str) -> Path:
    """Where a program logs to."""
    return sandbox.state / f"logs/{program}.log"


def _check(process: subprocess.Popen[bytes], sandbox: Sandbox) -> None:
    if process.poll() is not None:
        log = log_of(sandbox, "annotator").read_text()[-3000:]
        raise SandboxError(f"the annotator has ended: {log}")


def _memory(process: subprocess.Popen[bytes]) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return int(values["VmHWM"].split()[0]) / 1024


def _cpu(process: subprocess.Popen[bytes]) -> float:
    """Seconds of CPU."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        body: bytes = answer.read()
    return body


def _metric(name: str) -> float:
    """A metric of the annotator; 0 until it exists."""
    try:
        text = _get(f"http://127.0.0.1:{METRICS_PORT}/metrics").decode()
    except OSError:
        return 0.0
    return sum(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))


def _patches(sandbox: Sandbox) -> int:
    """PATCHes of nodes that the API server has taken; those of their status are not among them."""
    counted = 0.0
    kubectl = str(sandbox.state / "bin/kubectl")
    asked = [kubectl, f"--kubeconfig={sandbox.kubeconfig}", "get", "--raw", "/metrics"]
    text = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
    labels = ('resource="nodes"', 'subresource=""', 'verb="PATCH"', 'code="200"')
    for line in text.splitlines():
        if line.startswith("apiserver_request_total{") and all(each in line for each in labels):
            counted += float(line.rsplit(" ", 1)[1])
    return int(counted)
