"""The processor time of calls in the extender's process, for each policy, in microseconds.

The extender is a separate process, called over loopback as by kube-scheduler: filter and then
prioritize for each Pod, with the names of a sample of nodes that rotates. No other work is done in
the process, so its processor time is the cost of the calls. The cost of a bound Pod that arrives by
watch is the difference with and without such Pods.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.extender_calls import Times, exchange, percentile, post
from benchmarks.played_api import PlayedApi
from benchmarks.table import REPOSITORY, Row
from cluster.recording import wire

RECORDINGS: Final = REPOSITORY / "tests/unit/programs/extender/recordings"
LOAD: Final = "load.kube-scheduler-operator.dev/usage"
NAMES: Final = (230, 500, 5000)
NODES: Final = 5000
TARGET: Final = 150.0
"""Microseconds for a call with 230 names, and for a bound Pod."""

PODS_A_SECOND: Final = 400.0

AGENTS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "foo": ({"name": "foo"},),
    "load-aware": ({"name": "load-aware"},),
    "safe": ({"name": "safe-overload", "weight": 1}, {"name": "safe-balance", "weight": 10}),
    "pigeon": ({"name": "pigeon-holing"},),
}

Object = dict[str, Any]


def measure(agents: Sequence[str], repeat: int, names: Sequence[int] = NAMES) -> Iterator[Row]:
    """Rows for each of the agents.

    Args:
        agents: keys of AGENTS, or names of policies.
        repeat: number of runs, each with hundreds of pods.
        names: how many node names a call has.
    """
    with PlayedApi([node(number) for number in range(NODES)]) as api:
        for agent in agents:
            policies = AGENTS.get(agent, ({"name": agent},))
            with _extender(api, policies) as process:
                for count in names:
                    yield from _rows(process, api, agent, count, repeat)


class Process:
    """The measured extender."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._tasks = Path(f"/proc/{process.pid}/task")
        self._status = Path(f"/proc/{process.pid}/status")
        self.port = port

    def cpu(self) -> float:
        """The processor time of its threads in microseconds."""
        threads = self._tasks.glob("*/schedstat")
        return sum(int(one.read_text().split()[0]) for one in threads) / 1000

    def resident(self) -> float:
        """MiB."""
        text = self._status.read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def _rows(process: Process, api: PlayedApi, agent: str, count: int, repeat: int) -> Iterator[Row]:
    pods = max(100, min(1000, 200_000 // count))
    alone: list[float] = []
    bound: list[float] = []
    took: Times = {"filter": [], "prioritize": []}
    unseen: Times = {"filter": [], "prioritize": []}
    play(process, api, count, pods // 4, unseen)
    for _ in range(repeat):
        alone.append(play(process, api, count, pods, took) / 2)
        if count == NAMES[0]:
            # The same rate in both runs: the cost depends on the number of changes per batch.
            calls = play(process, api, count, pods, unseen, pace=PODS_A_SECOND)
            both = play(process, api, count, pods, unseen, pace=PODS_A_SECOND, bind=True)
            bound.append(both - calls)
    target = TARGET if count == NAMES[0] else None
    yield Row(f"{agent}: a call with {count} names", alone, "us CPU", target)
    if bound:
        yield Row(f"{agent}: a bound pod, by watch", bound, "us CPU", target)
    for verb, times in took.items():
        share = [percentile(times, 0.5) * 1000, percentile(times, 0.99) * 1000]
        yield Row(f"{agent}: {verb} of {count}, p50", share[:1], "us", None)
        limit = {500: 3000.0, 5000: 10000.0}.get(count)
        yield Row(f"{agent}: {verb} of {count}, p99", share[1:], "us", limit)
    if count == max(NAMES):
        yield Row(f"{agent}: resident", [process.resident()], "MiB", None)


def play(
    process: Process,
    api: PlayedApi,
    count: int,
    pods: int,
    took: Times,
    *,
    pace: float = 0.0,
    bind: bool = False,
) -> float:
    """Schedule Pods; returns the extender's processor time per Pod in microseconds."""
    pod = _pod()
    names = [_name(number) for number in range(NODES)]
    host = f"127.0.0.1:{process.port}"
    with socket.create_connection(("127.0.0.1", process.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bodies = [_body(pod, number, names, count) for number in range(pods)]
        before = process.cpu()
        for number, body in enumerate(bodies):
            begun = time.monotonic()
            for verb in ("filter", "prioritize"):
                request = post(host, f"/bench/{verb}", body)
                sent = time.monotonic()
                exchange(connection, request)
                took[verb].append(1000 * (time.monotonic() - sent))
            if bind:
                placed = copy.deepcopy(pod)
                placed["metadata"] |= {"name": f"p-{number}", "uid": f"u-{number}-{before}"}
                placed["spec"]["nodeName"] = names[number * 37 % NODES]
                api.send("pods", "ADDED", placed)
            if pace:
                time.sleep(max(begun + 1 / pace - time.monotonic(), 0))
        time.sleep(0.1)
        return (process.cpu() - before) / pods


def _body(pod: Object, number: int, names: Sequence[str], count: int) -> bytes:
    pod["metadata"] |= {"name": f"p-{number}", "uid": f"u-{number}"}
    begin = number * count % len(names)
    chosen = [*names[begin:], *names[:begin]][:count]
    return wire({"Pod": pod, "Nodes": None, "NodeNames": chosen})


@contextlib.contextmanager
def _extender(api: PlayedApi, policies: Sequence[Mapping[str, Any]]) -> Iterator[Process]:
    with tempfile.TemporaryDirectory() as directory, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        file = write_config(Path(directory), port, policies)
        command = [
            sys.executable, "-m", "kube_scheduler_operator", "extender", "--config", file,
            "--kubeconfig", str(api.kubeconfig(Path(directory))),
        ]  # fmt: skip
        environ = {**os.environ, "PYTHONPATH": str(REPOSITORY / "operator"), "LOG_LEVEL": "WARNING"}
        process = subprocess.Popen(command, env=environ)
        try:
            until_ready(process, port)
            yield Process(process, port)
        finally:
            process.terminate()
            process.wait(30)


def write_config(directory: Path, port: int, policies: Sequence[Mapping[str, Any]]) -> str:
    """A configuration of one agent, `bench`."""
    file = directory / "config.json"
    agents = [{"name": "bench", "policies": list(policies)}]
    file.write_text(json.dumps({"listen": {"port": port}, "agents": agents}))
    return str(file)


def until_ready(process: subprocess.Popen[bytes], port: int, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while True:
        if process.poll() is not None:
            raise RuntimeError("the extender has ended")
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
            return
        if time.monotonic() > end:
            raise RuntimeError("the extender does not become ready")
        time.sleep(0.1)


def _name(number: int) -> str:
    return f"worker-{number:05d}"


def _pod() -> Object:
    recorded = json.loads((RECORDINGS / "v1.36-names.json").read_text())
    pod: Object = recorded["requests"][0]["body"]["Pod"]
    return pod


def node(number: int) -> Object:
    """A node of one of four sizes, with a load that varies between nodes."""
    recorded = json.loads((RECORDINGS / "v1.36-nodes.json").read_text())
    node: Object = recorded["requests"][0]["body"]["Nodes"]["items"][0]
    cpu = (4, 8, 16, 32)[number % 4]
    share = 0.2 + (number * 7919 % 1000) / 2000
    resources = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}
    usage = {
        f"{kind}_usage_{window}": round(share * factor, 5)
        for kind in ("cpu", "mem")
        for window, factor in (("avg_5m", 1.0), ("max_avg_1h", 1.1), ("max_avg_1d", 1.2))
    }
    free = {
        "free_cpu_mean": cpu * 1000 * (1 - share),
        "free_cpu_std": cpu * 60.0,
        "free_memory_mean": 4 * cpu * 2**30 * (1 - share),
        "free_memory_std": cpu * 0.2 * 2**30,
    }
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    load = json.dumps({"at": at, "source": "node-metrics", **usage, **free})
    node["metadata"] |= {"name": _name(number), "uid": f"n-{number}", "annotations": {LOAD: load}}
    node["status"] |= {"capacity": resources, "allocatable": resources}
    return node
