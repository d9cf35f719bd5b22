"""`kubectl scheduler console` over a large cluster: time to first bytes and whole page, memory.

The API server is real; its nodes and Pods are objects only. A page is cold if its console has just
started and has answered nothing: each such console answers one page, first cold, then warm.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from benchmarks import simulating
from benchmarks.table import REPOSITORY, Row
from cluster import lifecycle, processes, teardown
from cluster.api import Api
from cluster.console import run, say, step
from cluster.model import Sandbox

NAME: Final = "bench-console"
FIRST_BYTES, COLD, WARM = 0.5, 5.0, 1.0
MOST_MEBIBYTES: Final = 300.0
SECONDS: Final = 300.0
_WAITING: Final = 100
_THREADS: Final = 8
_COMPUTED: Final = b"The answer is being computed"
_PAGES: Final = {
    "now": "now",
    "rollout": "rollout",
    "what decides": "decides",
    "nodes": "nodes",
    "waiting Pods": "waiting",
    "causes of waiting": "causes",
    "why, a Pod that waits": "why?namespace={namespace}&pod={waiting}",
    "why, a Pod that runs": "why?namespace={namespace}&pod={running}",
    "what if, the Pods that wait": "what-if?profile=HighNodeUtilization&pods=waiting",
    "extenders and load policies": "extenders",
}
_PROGRAM: Final = (
    "import sys; from kube_scheduler_operator.__main__ import kubectl_plugin; "
    "sys.exit(kubectl_plugin())"
)


class _Console:
    """A console that has just started."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self._pid = process.pid
        host, _, self._token = address.removeprefix("http://").partition("/?token=")
        self._host = host

    def get(self, path: str) -> tuple[float, float, bytes]:
        """Seconds until the first bytes and until all, and these."""
        connection = HTTPConnection(self._host, timeout=SECONDS)
        begun = time.monotonic()
        connection.request("GET", f"/{path}", headers={"Authorization": f"Bearer {self._token}"})
        response = connection.getresponse()
        body = response.read1(65536)
        first = time.monotonic() - begun
        while more := response.read1(65536):
            body += more
        whole = time.monotonic() - begun
        connection.close()
        assert response.status == 200, body[:500]
        return first, whole, body

    def page(self, path: str) -> tuple[float, float]:
        """Seconds until the first bytes and until the answer, which a browser asks for again."""
        begun = time.monotonic()
        first, _, body = self.get(path)
        while _COMPUTED in body:
            _, _, body = self.get(f"fragments/{path}")
        return first, time.monotonic() - begun

    @property
    def mebibytes(self) -> float:
        """The most memory that the process had until now, without kube-scheduler."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(nodes: int, pods: int, repeat: int, binary: Path) -> Iterator[Row]:
    """All figures, as they come."""
    teardown.down(NAME)
    try:
        sandbox = lifecycle.up(NAME, 0, 0, with_operator=False)
        with step(f"making {nodes} Nodes and {pods} Pods"):
            names = _fill(sandbox, nodes, pods)
        for title, path in _PAGES.items():
            yield from _page(sandbox, binary, title, path.format(**names), repeat)
        with _console(sandbox, binary) as console:
            for path in _PAGES.values():
                console.page(path.format(**names))
            yield Row("memory of one console, after all pages", [console.mebibytes], "MiB",
                      MOST_MEBIBYTES)  # fmt: skip
    finally:
        teardown.down(NAME)


def _page(sandbox: Sandbox, binary: Path, title: str, path: str, repeat: int) -> Iterator[Row]:
    first: list[float] = []
    cold: list[float] = []
    warm: list[float] = []
    memory: list[float] = []
    for _ in range(repeat):
        with _console(sandbox, binary) as console:
            for seconds, figure in zip((first, cold), console.page(path), strict=True):
                seconds.append(figure)
            warm.append(console.page(path)[1])
            memory.append(console.mebibytes)
    say(f"  {title}: {statistics.median(cold):.2f} s cold, {statistics.median(warm):.2f} s warm")
    yield Row(f"{title}: first bytes", first, "s", FIRST_BYTES)
    yield Row(f"{title}: cold", cold, "s", COLD)
    yield Row(f"{title}: warm", warm, "s", WARM)
    yield Row(f"{title}: memory", memory, "MiB", MOST_MEBIBYTES)


@contextmanager
def _console(sandbox: Sandbox, binary: Path) -> Iterator[_Console]:
    command = [sys.executable, "-c", _PROGRAM, "console", "--platform=managed",
               f"--kubeconfig={sandbox.kubeconfig}", f"--kube-scheduler={binary}"]  # fmt: skip
    environment = {"PYTHONPATH": str(REPOSITORY / "operator"), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield _Console(process, process.stdout.readline().strip())
        finally:
            process.terminate()


def _fill(sandbox: Sandbox, nodes: int, pods: int) -> dict[str, str]:
    """Make the objects, and return names of some."""
    api = Api(sandbox)
    kubectl = [str(sandbox.state / "bin/kubectl"), f"--kubeconfig={sandbox.kubeconfig}"]
    run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "crds")
    run(*kubectl, "wait", "--for=condition=Established", "crd", "--all")
    run(*kubectl, "apply", "--server-side", "-f", REPOSITORY / "deploy/base/cluster/cluster.yaml")
    running = [simulating.pod_object(at, f"node-{at % nodes:05d}") for at in range(pods - _WAITING)]
    waiting = simulating.many_waiting()[:_WAITING]
    namespaces = sorted({each["metadata"]["namespace"] for each in (*running, *waiting)})
    for name in namespaces:
        api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        api.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    # It would see that these nodes have no kubelet, and delete their Pods.
    processes.kill_one(sandbox, "kube-controller-manager")
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda at: _make_node(api, simulating.node_object(at)), range(nodes)))
        list(pool.map(lambda pod: _make_pod(api, pod), (*running, *waiting)))
    first, asked = running[0]["metadata"], waiting[0]["metadata"]
    assert first["namespace"] == asked["namespace"]
    return {"namespace": asked["namespace"], "waiting": asked["name"], "running": first["name"]}


def _make_node(api: Api, node: dict[str, Any]) -> None:
    """A node, without the taint that a new one has until its kubelet reports."""
    made = api.request("POST", "/api/v1/nodes", json.loads(json.dumps(node)))
    made["spec"]["taints"] = node["spec"]["taints"]
    api.request("PUT", f"/api/v1/nodes/{node['metadata']['name']}", made)


def _make_pod(api: Api, pod: dict[str, Any]) -> None:
    namespace = pod["metadata"].pop("namespace")
    api.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    pod["metadata"]["namespace"] = namespace
