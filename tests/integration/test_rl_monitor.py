"""rl-monitor with a real API server: what it learns of pods is what rl-priority reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .played_nodes import change, make_node

if TYPE_CHECKING:
    from .conftest import ApiServer

REPOSITORY = Path(__file__).resolve().parents[2]
NAMESPACE = "rl-monitor-test"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
STATE = f"/api/v1/namespaces/{NAMESPACE}/configmaps/rl-priority-state"
NODES = ("node-a", "node-b")

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]


@pytest.fixture(scope="module", autouse=True)
def namespace(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[None]:
    """And nodes: a controller removes Pods of nodes that do not exist, after 40 s."""
    api_server.create_namespace(NAMESPACE)
    for name in NODES:
        make_node(api_server, name, {})
    yield
    api_server.request("DELETE", PODS, {"gracePeriodSeconds": 0})
    for name in NODES:
        api_server.request("DELETE", f"/api/v1/nodes/{name}")
    api_server.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


@contextmanager
def monitor(api_server: ApiServer) -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen(
        [sys.executable, "-m", "kube_scheduler_operator", "rl-monitor", "--namespace", NAMESPACE,
         "--state-namespace", NAMESPACE, "--kubeconfig", str(api_server.kubeconfig)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "operator")},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield program
        program.send_signal(signal.SIGTERM)
        _, errors = program.communicate(timeout=30)
        assert program.returncode == 0, errors
    finally:
        program.kill()
        program.wait()


def make(api_server: ApiServer, name: str, node: str) -> None:
    containers = [{"name": "c", "image": "example.com/none"}]
    labels = {"app": "web"}
    spec = {"nodeName": node, "containers": containers}
    made = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    api_server.request("POST", PODS, made)


def status(api_server: ApiServer, name: str, restarts: int, state: dict[str, Any]) -> None:
    container = {
        "name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": restarts,
        "state": state,
    }  # fmt: skip
    now = {"phase": "Running", "containerStatuses": [container]}
    change(api_server, f"{PODS}/{name}", "/status", lambda pod: pod.update(status=now))


def ended(second: int) -> dict[str, Any]:
    times = {
        "startedAt": f"2026-11-23T00:00:{second:02}Z",
        "finishedAt": f"2026-11-23T00:00:{second + 1:02}Z",
    }
    return {"terminated": {"exitCode": 1, "reason": "Error", **times}}


def values(api_server: ApiServer) -> dict[str, float]:
    found = api_server.kubectl("get", "configmap", "-n", NAMESPACE, "rl-priority-state",
                               "--ignore-not-found", "-o", "json")  # fmt: skip
    if not found.strip():
        return {}
    state = json.loads(json.loads(found)["data"]["state.json"])
    return {node: value for kind, node, value in state["values"] if kind == "web"}


def until(reached: Callable[[], bool], seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "not reached in time"
        time.sleep(0.2)


def test_it_learns_and_continues_from_stored_values(api_server: ApiServer) -> None:
    make(api_server, "good", "node-a")
    make(api_server, "bad", "node-b")
    with monitor(api_server):
        status(api_server, "good", 0, {"running": {"startedAt": "2026-11-23T00:00:00Z"}})
        status(api_server, "bad", 0, ended(1))
        until(lambda: values(api_server) == {"node-a": 1.0, "node-b": 0.9})
    with monitor(api_server):
        status(api_server, "bad", 1, ended(5))
        until(lambda: values(api_server) == {"node-a": 1.0, "node-b": pytest.approx(0.81)})
