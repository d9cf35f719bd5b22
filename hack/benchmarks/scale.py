"""Every program in a cluster of thousands of nodes, and in a small one.

The API server, etcd, the controllers and all programs of the operator are real; nodes and Pods are
objects (`stored.py`). Kubelets' heartbeats, Pods that come and go, and exporters are played. Each
program reads from the API server through a relay that counts the bytes on the wire.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import load, processors, stored
from benchmarks.extender_calls import exchange, percentile, post
from benchmarks.many_cluster import Cluster
from benchmarks.relay import Relay
from benchmarks.table import REPOSITORY, Row
from cluster import hollow, lifecycle, teardown
from cluster.api import Api
from cluster.console import SandboxError, say
from cluster.model import Sandbox
from cluster.observe import SCHEDULER
from cluster.recording import wire

NAME: Final = f"bench-s-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
SCHEDULERS, PROFILES = 2, 6
EDITS: Final = 6
CALLS: Final = 40
FULL_CALLS: Final = 5
HEARTBEAT_SECONDS: Final = 300.0
"""The kubelet's nodeStatusReportFrequency."""

POD_LIFETIME: Final = 5000.0
"""Seconds; so 100,000 Pods are 20 that start, and 20 that end, a second."""

EVENTS_A_POD: Final = 1
SYNC_SECONDS: Final = 600.0
CALM: Final = 20.0
"""Seconds without a write before the operator counts as idle."""

POLICIES: Final = ({"name": "load-aware"}, {"name": "pigeon-holing"})


def measure(nodes: int, pods: int, idle: float) -> Iterator[Row]:
    """All figures of a cluster of one size, as they come; `idle` is seconds of each program."""
    teardown.down(NAME)
    sandbox = lifecycle.up(NAME, 0, 0, with_operator=False)
    heading = f"{nodes} nodes, {pods} pods: "
    with ExitStack() as stack:
        stack.callback(teardown.down, NAME)
        for row in _measured(sandbox, stack, nodes, pods, idle):
            row.name = heading + row.name
            say(f"  {row.name}: {row.median:.2f} {row.unit} {'; '.join(row.notes)}")
            yield row


def _measured(
    sandbox: Sandbox, stack: ExitStack, nodes: int, pods: int, idle: float
) -> Iterator[Row]:
    api = Api(sandbox)
    for name in stored.namespaces():
        api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield from _fill(stored.Storage(sandbox), nodes, pods)
    life = Life(sandbox, nodes, pods)
    stack.callback(life.stop)
    life.start()
    operator = Operator(sandbox, stack)
    yield from operator.measure(idle)
    processes = load.Processes(sandbox)
    stack.callback(processes.stop)
    yield from _annotator(sandbox, stack, processes, nodes, idle, operator)
    with tempfile.TemporaryDirectory() as directory:
        yield from _extender(sandbox, stack, Path(directory), nodes, idle)
    yield from operator.end()


def _fill(storage: stored.Storage, nodes: int, pods: int) -> Iterator[Row]:
    begun = time.monotonic()
    size = storage.put(stored.node(number) for number in range(nodes))
    size += storage.put(stored.pod(number, nodes) for number in range(pods))
    size += storage.put(stored.event(number) for number in range(EVENTS_A_POD * pods))
    yield Row("nodes, pods and events written", [time.monotonic() - begun], "s", None)
    yield Row("  as JSON", [size / 2**20], "MiB", None)


class Life:
    """What goes on in the cluster: kubelets renew their node's status, Pods come and go."""

    def __init__(self, sandbox: Sandbox, nodes: int, pods: int) -> None:
        self._api, self._storage = Api(sandbox), stored.Storage(sandbox)
        self._nodes, self._pods = nodes, pods
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._every, args=(HEARTBEAT_SECONDS / nodes, self._beat)),
            threading.Thread(target=self._every, args=(POD_LIFETIME / pods, self._replace)),
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(60)

    def _every(self, interval: float, act: Callable[[int], None]) -> None:
        begun, number = time.monotonic(), 0
        while not self._stop.wait(max(begun + number * interval - time.monotonic(), 0.0)):
            act(number)
            number += 1

    def _beat(self, number: int) -> None:
        path = f"/api/v1/nodes/{hollow.name_of(number % self._nodes)}/status"
        status = {"conditions": stored.node(number % self._nodes)[1]["status"]["conditions"]}
        self._api.request("PATCH", path, {"status": status})

    def _replace(self, number: int) -> None:
        self._storage.delete([stored.pod(number, self._nodes)[0]])
        self._storage.put([stored.pod(self._pods + number, self._nodes)])


@dataclass
class Window:
    """A period in which one process is watched."""

    pid: int
    relay: Relay

    def __post_init__(self) -> None:
        self.begun, self.cpu = time.monotonic(), processors.used(self.pid).total
        self.received, self.connections = self.relay.received, self.relay.connections

    def rows(self, whose: str) -> Iterator[Row]:
        """CPU, and what was read."""
        seconds = time.monotonic() - self.begun
        cpu = 100 * (processors.used(self.pid).total - self.cpu) / seconds
        yield Row(f"{whose}: CPU", [cpu], "% of a core", None)
        read = 60 * (self.relay.received - self.received) / seconds / 2**20
        yield Row(f"{whose}: read", [read], "MiB a minute", None)


class Operator:
    """The operator and what is asked of it."""

    def __init__(self, sandbox: Sandbox, stack: ExitStack) -> None:
        self._relay = stack.enter_context(Relay(sandbox.api_port))
        self._cluster = Cluster(sandbox, SCHEDULERS, PROFILES, port=self._relay.port)
        stack.callback(self._cluster.close)

    @property
    def _pid(self) -> int:
        return self._cluster.pid

    def measure(self, idle: float) -> Iterator[Row]:
        """From the start to edits."""
        first = self._cluster.start(CALM)
        yield Row("operator: start to the first reconcile", [self._cluster.began], "s", None)
        yield Row("operator: first reconcile", [first.decided_cpu], "ms CPU", None)
        yield Row("operator: peak after the start", [self._cluster.peak()], "MiB", None)
        yield Row("operator: read so far", [self._relay.received / 2**20], "MiB", None)
        yield from self.watch("operator, idle", idle)
        took = []
        for number in range(EDITS):
            profile = ("HighNodeUtilization", "NoScoring")[number % 2]
            before, begun = self._cluster.latest_revision(), time.monotonic()
            self._cluster.api.request("PATCH", SCHEDULER, {"spec": {"profile": profile}})
            while self._cluster.latest_revision() == before:
                time.sleep(0.01)
            took.append(1000 * (time.monotonic() - begun))
            time.sleep(3)
        yield Row("operator: edit to revision", took, "ms", None)

    def watch(self, whose: str, seconds: float) -> Iterator[Row]:
        """What it does in a period without edits."""
        mark, window = self._cluster.mark(), Window(self._pid, self._relay)
        time.sleep(seconds)
        yield from window.rows(whose)
        asked = self._cluster.requests(mark)
        notes = [f"{what} {60 * count / seconds:.1f}" for what, count in asked.most_common()]
        yield Row(f"{whose}: requests", [60 * asked.total() / seconds], "a minute", None, notes)
        passes = self._cluster.passes(mark)
        yield Row(f"{whose}: reconciles", [60 * len(passes) / seconds], "a minute", None)
        spent = [one.decided_cpu for one in passes] or [0.0]
        yield Row(f"{whose}: a reconcile", spent, "ms CPU", None)

    def end(self) -> Iterator[Row]:
        """The greatest memory of its life."""
        yield Row("operator: memory at the end, peak", [self._cluster.peak()], "MiB", None)


def _annotator(
    sandbox: Sandbox,
    stack: ExitStack,
    processes: load.Processes,
    nodes: int,
    idle: float,
    operator: Operator,
) -> Iterator[Row]:
    processes.start_player(nodes)
    relay = stack.enter_context(Relay(sandbox.api_port))
    annotator = processes.start_annotator(_kubeconfig(sandbox, relay, "annotator"))
    yield from load.first_cycle(annotator)
    yield Row("annotator: read so far", [relay.received / 2**20], "MiB", None)
    window = Window(annotator.pid, relay)
    yield from operator.watch("operator, while the annotator writes", idle)
    yield from window.rows("annotator")
    yield Row("annotator: peak", [processors.memory(annotator.pid, "VmHWM")], "MiB", None)


def _extender(
    sandbox: Sandbox, stack: ExitStack, directory: Path, nodes: int, idle: float
) -> Iterator[Row]:
    relay = stack.enter_context(Relay(sandbox.api_port))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "kube_scheduler_operator", "extender",
         "--config", _configuration(directory, port),
         "--kubeconfig", _kubeconfig(sandbox, relay, "extender")],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "operator"), "LOG_LEVEL": "WARNING"},
    )  # fmt: skip
    try:
        _until_ready(process, port)
        yield Row("extender: start to ready", [time.monotonic() - begun], "s", None)
        yield Row("extender: read so far", [relay.received / 2**20], "MiB", None)
        yield Row("extender: peak", [processors.memory(process.pid, "VmHWM")], "MiB", None)
        window = Window(process.pid, relay)
        time.sleep(idle)
        yield from window.rows("extender, idle")
        yield Row("extender: memory", [processors.memory(process.pid)], "MiB", None)
        names = [hollow.name_of(number) for number in range(nodes)]
        by_name = {"Nodes": None, "NodeNames": names}
        yield from _called(process.pid, port, f"{nodes} names", by_name, CALLS)
        items = [stored.node(number)[1] for number in range(nodes)]
        full = {"Nodes": {"metadata": {}, "items": items}, "NodeNames": None}
        yield from _called(process.pid, port, f"{nodes} full Nodes", full, FULL_CALLS)
        yield Row("extender: peak", [processors.memory(process.pid, "VmHWM")], "MiB", None)
        yield from _commands(sandbox, directory, f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(30)


def _configuration(directory: Path, port: int) -> str:
    """A configuration of one agent, `bench`."""
    file = directory / "config.json"
    agents = [{"name": "bench", "policies": POLICIES}]
    file.write_text(json.dumps({"listen": {"port": port}, "agents": agents}))
    return str(file)


def _until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + SYNC_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
            return
        time.sleep(0.1)
    raise SandboxError("the extender does not become ready, or has ended")


def _called(pid: int, port: int, what: str, arguments: dict[str, Any], count: int) -> Iterator[Row]:
    host = f"127.0.0.1:{port}"
    took: dict[str, list[float]] = {"filter": [], "prioritize": []}
    spent: dict[str, list[float]] = {verb: [] for verb in took}
    size = 0
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(count):
            _, pod = stored.pod(10_000_000 + number, 1)
            del pod["spec"]["nodeName"], pod["status"]
            pod["metadata"]["name"] = "called"
            body = wire({"Pod": pod, **arguments})
            size = len(body)
            for verb, times in took.items():
                request = post(host, f"/bench/{verb}", body)
                sent, before = time.monotonic(), processors.used(pid).total
                exchange(connection, request)
                times.append(1000 * (time.monotonic() - sent))
                spent[verb].append(1000 * (processors.used(pid).total - before))
    yield Row(f"extender: a body with {what}", [size / 2**20], "MiB", None)
    for verb, times in took.items():
        yield Row(f"extender: {verb} with {what}, p50", [statistics.median(times)], "ms", None)
        yield Row(f"extender: {verb} with {what}, p99", [percentile(times, 0.99)], "ms", None)
        cpu = statistics.fmean(spent[verb])  # in ticks of 10 ms
        yield Row(f"extender: {verb} with {what}, mean", [cpu], "ms CPU", None)


def _commands(sandbox: Sandbox, directory: Path, extender: str) -> Iterator[Row]:
    """The commands of the plugin; what they print is not of interest."""
    where = f"--kubeconfig={sandbox.kubeconfig}"
    for words in (
        ("status", where),
        ("history", where),
        ("diff", where, "-f", str(_proposal(directory))),
        ("explain", f"--url={extender}", "team-00/called"),
        ("must-gather", where, f"--dest={directory / 'gathered'}"),
    ):
        yield from _run(words)


def _proposal(directory: Path) -> Path:
    file = directory / "scheduler.yaml"
    metadata = {"name": "cluster"}
    document = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "metadata": metadata}
    file.write_text(json.dumps(document | {"spec": {"profile": "NoScoring"}}))
    return file


def _run(words: Sequence[str]) -> Iterator[Row]:
    command = [sys.executable, "-m", "kube_scheduler_operator", *words]
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "operator")},
        )  # fmt: skip
        peak = 0.0
        while process.poll() is None:
            # Not ru_maxrss, which counts the memory of this process before exec as well.
            with suppress(OSError, KeyError):
                peak = processors.memory(process.pid, "VmHWM")
            time.sleep(0.01)
        seconds = time.monotonic() - begun
        output.seek(0)
        last = output.read().decode(errors="replace").strip().splitlines()[-1:]
    notes = [] if process.returncode in (0, 1) else [*last, f"exit code {process.returncode}"]
    yield Row(f"kubectl scheduler {words[0]}", [seconds], "s", None, notes)
    yield Row(f"kubectl scheduler {words[0]}: peak", [peak], "MiB", None)


def _kubeconfig(sandbox: Sandbox, relay: Relay, name: str) -> str:
    """The administrator's, through a relay."""
    path = sandbox.state / f"{name}.kubeconfig"
    path.touch(0o600)
    text = sandbox.kubeconfig.read_text()
    path.write_text(text.replace(sandbox.server, f"https://127.0.0.1:{relay.port}"))
    return str(path)
