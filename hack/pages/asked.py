"""An extender that was asked about three nodes, for the page's `explain`."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cluster import paths, processes
from cluster.api import wait
from cluster.scheduling import answers, free_port
from pages.terminal import python

if TYPE_CHECKING:
    from cluster.model import Sandbox

POD = "shop/web-0"
_PROCESS = "asked-extender"
_AGENT = "calm"
_USAGE = "load.kube-scheduler-operator.dev/usage"
_CPU, _MEMORY = 4000.0, 16.0 * 2**30
_FREE = {"worker-1": (2900.0, 300.0), "worker-2": (1400.0, 400.0), "worker-3": (200.0, 200.0)}
"""Of each node: free millicores, mean and standard deviation."""
_START_SECONDS = 30.0


@contextmanager
def asked(sandbox: Sandbox) -> Iterator[str]:
    """Run safe-overload and safe-balance as one agent that has filtered and scored for POD.

    Yields:
        Its URL. It ends with the block, and with the sandbox.
    """
    port = free_port()
    policies = [{"policy": "safe-overload"}, {"policy": "safe-balance", "weight": 10}]
    config = sandbox.state / f"{_PROCESS}.json"
    config.write_text(
        json.dumps(
            {
                "listen": {"address": "127.0.0.1", "port": port},
                "agents": [{"name": _AGENT, "policies": policies}],
                "watch": False,
            }
        )
    )
    processes.spawn(
        sandbox, _PROCESS,
        [python(), "-m", "kube_scheduler_operator", "extender", "--config", config],
        env={"PYTHONPATH": str(paths.REPOSITORY / "operator")},
    )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        wait(
            lambda: answers(f"{url}/readyz"), _START_SECONDS, lambda: "the extender does not start"
        )
        nodes = [_node(name, *free) for name, free in _FREE.items()]
        kept = _ask(f"{url}/{_AGENT}/filter", nodes)["Nodes"]["items"]
        _ask(f"{url}/{_AGENT}/prioritize", kept)
        yield url
    finally:
        processes.terminate(sandbox, _PROCESS)


def _ask(url: str, nodes: list[dict[str, Any]]) -> Any:
    namespace, _, name = POD.partition("/")
    requests = {"cpu": "100m", "memory": "200Mi"}
    pod = {
        "metadata": {"namespace": namespace, "name": name, "uid": "1"},
        "spec": {"containers": [{"name": "web", "resources": {"requests": requests}}]},
    }
    body = json.dumps({"Pod": pod, "Nodes": {"items": nodes}, "NodeNames": None}).encode()
    with urllib.request.urlopen(url, body, timeout=10) as answer:
        return json.load(answer)


def _node(name: str, free: float, deviation: float) -> dict[str, Any]:
    figures = {
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": "node-metrics",
        "free_cpu_mean": free,
        "free_cpu_std": deviation,
        "free_memory_mean": _MEMORY * (0.2 + 0.5 * free / _CPU),
        "free_memory_std": 0,
    }
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "annotations": {_USAGE: json.dumps(figures)}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
