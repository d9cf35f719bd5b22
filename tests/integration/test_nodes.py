"""`nodes` at a real API server; what fits is what a real kube-scheduler places."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin

from .conftest import ApiServer, RefusedError
from .played_nodes import make_node
from .test_simulation_against_cluster import Client

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]

Object = dict[str, Any]
NAMESPACE: Final = "free-room"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
FITS: Final = ("--fits", "cpu=300m,memory=256Mi")
OPEN, GPU, CORDONED = "free-open", "free-gpu", "free-cordoned"
TEAM: Final = "free-room-team"
"""Who may list Nodes, and the Pods of one namespace."""


def pod(name: str, cpu: str, node: str = "", **metadata: Any) -> Object:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    container = {"name": "c", "image": "i", "resources": resources}
    spec = {"containers": [container], "automountServiceAccountToken": False}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def may_list(client: Client, resource: str, kind: str, path: str) -> None:
    """Let the team list a resource: everywhere, or in the namespace of `path`."""
    rule = {"apiGroups": [""], "resources": [resource], "verbs": ["list"]}
    client.request("POST", f"{path}/{kind.lower()}s", {"metadata": {"name": TEAM}, "rules": [rule]})
    user = {"kind": "User", "name": TEAM, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": kind, "name": TEAM, "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": TEAM}, "subjects": [user], "roleRef": role}
    client.request("POST", f"{path}/{kind.lower()}bindings", binding)


@pytest.fixture(scope="module")
def cluster(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[Client]:
    """Three nodes; Pods run, terminate, are resized and are nominated on one of them."""
    api_server.create_namespace(NAMESPACE)
    client = Client(api_server)
    make_node(api_server, OPEN, {}, {"topology.kubernetes.io/zone": "a"}, cpu="8")
    make_node(api_server, GPU, {"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
    make_node(api_server, CORDONED, {"unschedulable": True})
    client.request("POST", PODS, pod("runs", "1", OPEN))
    client.request("POST", PODS, pod("ends", "700m", OPEN, finalizers=["example.com/cleanup"]))
    client.request("DELETE", f"{PODS}/ends")
    client.request("POST", PODS, pod("resized", "500m", OPEN))
    amounts = {"cpu": "2", "memory": "64Mi"}
    status = {"name": "c", "ready": True, "restartCount": 0, "image": "i", "imageID": ""}
    status |= {"allocatedResources": amounts, "resources": {"requests": amounts}}
    resizing = {"type": "PodResizeInProgress", "status": "True"}
    held = {"phase": "Running", "containerStatuses": [status], "conditions": [resizing]}
    client.request("PATCH", f"{PODS}/resized/status", {"status": held})
    client.request("POST", PODS, pod("next", "900m"))
    client.request("PATCH", f"{PODS}/next/status", {"status": {"nominatedNodeName": OPEN}})
    may_list(client, "nodes", "ClusterRole", RBAC)
    may_list(client, "pods", "Role", f"{RBAC}/namespaces/{NAMESPACE}")
    yield client
    for path in (f"{RBAC}/clusterroles/{TEAM}", f"{RBAC}/clusterrolebindings/{TEAM}"):
        client.request("DELETE", path)
    client.request("PATCH", f"{PODS}/ends", {"metadata": {"finalizers": None}})
    client.request("DELETE", f"{PODS}?gracePeriodSeconds=0")
    for node in (OPEN, GPU, CORDONED):
        with suppress(RefusedError):
            client.request("DELETE", f"/api/v1/nodes/{node}")
    client.close()


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(cluster: Client, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        code = kubectl_plugin(["nodes", "--kubeconfig", str(cluster.kubeconfig), *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_what_pods_hold_is_counted_as_kube_scheduler_counts_it(run: Run) -> None:
    code, text, errors = run("-o", "json")
    assert code == 0, errors
    found = json.loads(text)
    nodes = {node["name"]: node for node in found["nodes"]}
    assert [node["name"] for node in found["nodes"]] == [CORDONED, OPEN, GPU]
    assert {name: node["state"] for name, node in nodes.items()} == {
        CORDONED: "unschedulable", OPEN: "open", GPU: "tainted",
    }  # fmt: skip
    assert nodes[OPEN]["resources"]["cpu"] == {
        "allocatable": 8000, "requests": 3700, "nominated": 900, "leaving": 2200, "free": 3400,
        "percent": 57.5,
    }  # fmt: skip
    assert nodes[OPEN]["resources"]["pods"]["free"] == 106
    assert (nodes[OPEN]["zone"], nodes[OPEN]["ready"], nodes[OPEN]["load"]) == ("a", True, None)
    assert [one["taints"] for one in found["partitions"]] == [[], ["gpu:NoSchedule"]]


def test_as_many_pods_fit_as_kube_scheduler_places(
    run: Run,
    cluster: Client,
    kube_scheduler_binary: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fits = json.loads(run(*FITS, "-o", "json")[1])["fits"]
    items = [
        {**obj, "apiVersion": "v1", "kind": kind}
        for kind, path in (("Node", "/api/v1/nodes"), ("Pod", PODS))
        for obj in cluster.request("GET", path)["items"]
    ]
    world, workload = tmp_path / "world.json", tmp_path / "workload.json"
    world.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    made = pod("more", "300m")
    made["spec"]["containers"][0]["resources"]["requests"]["memory"] = "256Mi"
    workload.write_text(json.dumps({**made, "apiVersion": "v1", "kind": "Pod"}))
    flags = ["--from-files", str(world), "--kube-scheduler", str(kube_scheduler_binary)]
    command = ["simulate", "-f", str(workload), "--max", "--repeat", "1", *flags, "-o", "json"]
    kubectl_plugin(command)
    found = json.loads(capsys.readouterr().out)
    assert found["configurations"][0]["figures"]["largest"]["most"] == fits == 11


def test_the_pods_of_one_namespace_are_counted_and_the_rest_is_not_known(run: Run) -> None:
    team = ("--as", TEAM)
    code, text, errors = run(*team)
    assert (code, text) == (1, "")
    assert "no permission to list pods" in errors
    assert "-n NAMESPACE" in errors
    code, text, errors = run(*team, "-n", NAMESPACE, *FITS, "-o", "json")
    assert code == 0, errors
    found = json.loads(text)
    (node,) = (node for node in found["nodes"] if node["name"] == OPEN)
    assert (node["resources"]["cpu"]["requests"], node["resources"]["cpu"]["free"]) == (3700, None)
    assert (found["fits"], found["namespace"]) == (None, NAMESPACE)
    assert "alone are counted" in found["notes"][0]


@pytest.mark.parametrize(
    ("words", "what"),
    [(("--as", "stranger"), "list nodes"), (("--as", TEAM, "-n", "default"), "list pods in")],
)
def test_a_missing_right_is_named_with_its_rule(
    run: Run, words: tuple[str, ...], what: str
) -> None:
    code, text, errors = run(*words)
    assert (code, text) == (1, "")
    assert f"no permission to {what}" in errors
    assert "ask a cluster administrator for" in errors
