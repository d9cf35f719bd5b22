"""The extender's program with a real API server: its watches, bindings and events.

Nodes are objects without machines, and the test sends kube-scheduler's requests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.names import LOAD_ANNOTATION

from .conftest import ApiServer, RefusedError
from .played_nodes import change

NAMESPACE = "extender-program"
PACKING = "pigeon-holing"
GOOD, FULL = "extender-program-good", "extender-program-full"
WRONG_CLOCK = Path(__file__).parent / "wrong_clock.py"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


def node(name: str, free_cpu: int) -> dict[str, Any]:
    resources = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "metadata": {
            "name": name,
            "annotations": {"mean-free-cpu": str(free_cpu), "mean-free-memory": str(12 * 2**30)},
        },
        "spec": {"taints": [{"key": "no-scheduler", "effect": "NoSchedule"}]},
        "status": {"allocatable": resources, "capacity": resources},
    }


def pod(name: str, scheduler: str = "no-scheduler") -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "nothing",
        "resources": {"requests": {"cpu": "200m", "memory": "200Mi"}},
    }
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


class Extender:
    """The program, and what it answers."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, document: Any = None) -> Any:
        data = None if document is None else json.dumps(document).encode()
        with urllib.request.urlopen(self.url + path, data, timeout=20) as answer:
            text = answer.read()
        try:
            return json.loads(text)
        except ValueError:
            return text.decode()

    def used(self, node: str) -> float:
        """Millicores that the pods of a node request, according to pigeon-holing."""
        asking = {**pod("asking"), "metadata": {"name": "asking", "namespace": NAMESPACE}}
        args = {"Pod": asking, "Nodes": None, "NodeNames": [node]}
        self.ask("/packed/prioritize", args)
        (row,) = self.ask(f"/explain?pod={NAMESPACE}/asking&details=1")["now"]["packed"][PACKING]
        return float(row["used"]["cpu"])


pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 45
    while not condition():
        assert time.monotonic() < end, "the condition was not met"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def prepared(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[ApiServer]:
    api_server.create_namespace(NAMESPACE)
    for name, free in ((GOOD, 3000), (FULL, 100)):
        made = node(name, free)
        api_server.request("POST", "/api/v1/nodes", made)
        status = made["status"]
        path = f"/api/v1/nodes/{name}"
        change(
            api_server,
            path,
            "/status",
            partial(lambda node, status: node.update(status=status), status=status),
        )
    yield api_server
    for name in (GOOD, FULL):
        with suppress(RefusedError):
            api_server.request("DELETE", f"/api/v1/nodes/{name}")
    api_server.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


@contextmanager
def started(prepared: ApiServer, directory: Path, ahead: float = 0.0) -> Iterator[Extender]:
    """The program on a machine whose clock is `ahead` seconds ahead."""
    file, log = directory / "config.json", directory / "log"
    member = {"policy": "safe-overload", "arguments": {"annotations": "safe"}}
    # Bound pods are watched for those who look at them.
    agents = [
        {"name": "calm", "policies": [member]},
        {"name": "packed", "policies": [{"policy": PACKING}]},
        {"name": "busy", "policies": [{"policy": "usage-thresholds"}]},
    ]
    document = {
        "listen": {"port": 0},
        "agents": agents,
        "bind": {"schedulerNames": ["no-scheduler", "another-profile"]},
    }
    file.write_text(json.dumps(document))
    command = [
        sys.executable, str(WRONG_CLOCK), f"{ahead:g}", "extender", "--config", str(file),
        "--kubeconfig", str(prepared.kubeconfig),
    ]  # fmt: skip
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr, env=os.environ)
    try:
        until(lambda: '"Listening"' in log.read_text())
        found = Extender(_port(log))
        until(lambda: _ready(found))
        yield found
    finally:
        process.terminate()
        assert process.wait(30) == 0, log.read_text()


@pytest.fixture(scope="module")
def extender(prepared: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extender]:
    with started(prepared, tmp_path_factory.mktemp("extender")) as found:
        yield found


def _port(log: Path) -> int:
    (line,) = (line for line in log.read_text().splitlines() if '"Listening"' in line)
    return int(line.rpartition("port=")[2])


def _ready(extender: Extender) -> bool:
    try:
        return bool(extender.ask("/readyz"))
    except urllib.error.HTTPError:
        return False


def test_nodes_are_filtered_and_scored_by_their_annotations(
    prepared: ApiServer, extender: Extender
) -> None:
    placed = prepared.request("POST", PODS, pod("one"))
    args = {"Pod": placed, "Nodes": None, "NodeNames": [GOOD, FULL]}
    answer = extender.ask("/calm/filter", args)
    assert answer["NodeNames"] == [GOOD]
    rejected = {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}
    assert list(rejected) == [FULL]
    scores = {each["Host"]: each["Score"] for each in extender.ask("/calm/prioritize", args)}
    assert scores[GOOD] > scores[FULL]


@pytest.mark.presubmit
def test_a_pod_without_a_feasible_node_has_an_event(
    prepared: ApiServer, extender: Extender
) -> None:
    placed = prepared.request("POST", PODS, pod("nowhere"))
    answer = extender.ask("/calm/filter", {"Pod": placed, "Nodes": None, "NodeNames": [FULL]})
    assert answer["NodeNames"] == []
    path = f"/api/v1/namespaces/{NAMESPACE}/events?fieldSelector=involvedObject.name=nowhere"
    until(lambda: prepared.request("GET", path)["items"])
    (event,) = prepared.request("GET", path)["items"]
    assert (event["reason"], event["type"]) == ("ExtenderRejectedNodes", "Warning")
    assert event["involvedObject"]["uid"] == placed["metadata"]["uid"]
    assert "extender calm rejected the only candidate node" in event["message"]
    explained = extender.ask(f"/explain?pod={NAMESPACE}/nowhere&details=1")
    assert explained["agents"][0]["filter"]["rejected"][0]["node"] == FULL
    assert explained["now"]["calm"]["safe-overload"][0]["node"] == FULL


def test_a_bound_pod_counts_until_it_is_deleted(prepared: ApiServer, extender: Extender) -> None:
    placed = prepared.request("POST", PODS, pod("bound"))
    until(lambda: extender.used(GOOD) == 0)  # the Pods of other tests, which are not bound
    binding = {
        "PodName": "bound",
        "PodNamespace": NAMESPACE,
        "PodUID": placed["metadata"]["uid"],
        "Node": GOOD,
    }
    assert extender.ask("/calm/bind", binding) == {"Error": ""}
    assert prepared.request("GET", f"{PODS}/bound")["spec"]["nodeName"] == GOOD
    until(lambda: extender.used(GOOD) == 200)
    assert "bound" in extender.ask("/calm/bind", binding)["Error"]
    assert extender.ask("/calm/bind", {**binding, "PodName": "no-such-pod"})["Error"]
    prepared.request("DELETE", f"{PODS}/bound?gracePeriodSeconds=0")
    until(lambda: extender.used(GOOD) == 0)


def test_a_pod_of_another_scheduler_is_never_bound(prepared: ApiServer, extender: Extender) -> None:
    """Any client of the port chooses what a request contains: the API server's Pod counts."""
    others = prepared.request("POST", PODS, pod("others", "default-scheduler"))
    own = prepared.request("POST", PODS, pod("own", "another-profile"))
    binding = {"PodNamespace": NAMESPACE, "Node": GOOD, "PodName": "others"}
    for uid in ("", others["metadata"]["uid"]):
        answer = extender.ask("/calm/bind", {**binding, "PodUID": uid})
        assert 'spec.schedulerName "default-scheduler"' in answer["Error"]
    lie = {**others, "spec": {**others["spec"], "schedulerName": "no-scheduler"}}
    assert extender.ask("/calm/bind", {**binding, "Pod": lie})["Error"]
    assert "nodeName" not in prepared.request("GET", f"{PODS}/others")["spec"]
    replaced = {**binding, "PodName": "own", "PodUID": others["metadata"]["uid"]}
    assert "was replaced" in extender.ask("/calm/bind", replaced)["Error"]
    for odd in ("own,metadata.name=others", "../../nodes", "own?x=y"):
        assert "must be names" in extender.ask("/calm/bind", {**binding, "PodName": odd})["Error"]
    assert "nodeName" not in prepared.request("GET", f"{PODS}/own")["spec"]
    bound = {**binding, "PodName": "own", "PodUID": own["metadata"]["uid"]}
    assert extender.ask("/calm/bind", bound) == {"Error": ""}
    assert prepared.request("GET", f"{PODS}/own")["spec"]["nodeName"] == GOOD
    for name in ("others", "own"):
        prepared.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")


def test_a_change_of_a_node_takes_effect(prepared: ApiServer, extender: Extender) -> None:
    path = f"/api/v1/nodes/{FULL}"
    args = {"Pod": pod("two"), "Nodes": None, "NodeNames": [FULL]}
    for free, accepted in (("3500", [FULL]), ("100", [])):
        annotation = {"mean-free-cpu": free}
        change(
            prepared,
            path,
            "",
            partial(lambda node, s: node["metadata"]["annotations"].update(s), s=annotation),
        )
        until(
            partial(
                lambda left: extender.ask("/calm/filter", args)["NodeNames"] == left, left=accepted
            )
        )
    prepared.request("DELETE", path)
    # Unknown now, which does not reject it.
    until(lambda: extender.ask("/calm/filter", args)["NodeNames"] == [FULL])


@pytest.mark.parametrize("ahead", [-1200.0, -560.0, 560.0, 1200.0])
def test_load_is_as_old_as_by_the_api_servers_clock(
    prepared: ApiServer, tmp_path: Path, ahead: float
) -> None:
    def loaded(minutes: float) -> None:
        at = datetime.now(UTC) - timedelta(minutes=minutes)
        load = {"at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "source": "x", "cpu_usage_avg_5m": 0.99}
        annotations = {LOAD_ANNOTATION: json.dumps(load)}
        change(
            prepared,
            f"/api/v1/nodes/{GOOD}",
            "",
            lambda node: node["metadata"]["annotations"].update(annotations),
        )

    asking = {**pod("asking"), "metadata": {"name": "asking", "namespace": NAMESPACE}}
    args = {"Pod": asking, "Nodes": None, "NodeNames": [GOOD]}
    with started(prepared, tmp_path, ahead) as extender:
        loaded(minutes=1)
        until(lambda: extender.ask("/busy/filter", args)["NodeNames"] == [])
        loaded(minutes=9)
        until(lambda: extender.ask("/busy/filter", args)["NodeNames"] == [GOOD])
