"""Scheduling by real load on three real nodes: measured, written on the nodes, and acted upon.

The nodes share one kernel, so what a node uses is what its cgroup uses. A node has 800m of CPU
(`--cpu-capacity`), of which a busy loop takes nine tenths: that much it gets also where the machine
has other things to do, and a kubelet that starts a few pods is far from it. Times are short, or
tests would wait minutes until data is old.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from cluster import cgroups, images
from cluster.api import ApiError
from cluster.console import run
from cluster.observe import until
from kube_scheduler_operator.base.names import LOAD_ANNOTATION

from ...expect import condition_of
from ..conftest import (
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    PODS,
    PODS_IN_DEFAULT,
    REPOSITORY,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    Cluster,
)
from ..faults import dead, pids_of
from ..workloads import (
    apply,
    conditions,
    create,
    delete,
    node_of,
    own_pods,
    patient,
    placed,
    pod,
    wait_for,
    why_pending,
)

EXAMPLE = REPOSITORY / "docs/examples/load-aware.yaml"
NAME = "crane-scheduler"
POLICY = f"{LOAD_POLICIES}/default"
CHECK = "PlacementCheckProgressing"
AVERAGE = "cpu_usage_avg_5m"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ANYWHERE = [{"operator": "Exists"}]
CAPACITY = 800
STRESS = "cpu-stress"
FILLER = "requests-on-"
SHORT = {"cycle": "2s", "refresh": "5s", "grace": "10s"}
WELL = {"Available": "True", "Progressing": "False", "Degraded": "False"}
CRANE = REPOSITORY / "tests/e2e/crane"
"""What people have who run crane-scheduler-plus: its configuration, and beside it its policy."""
CRANE_KEYS = {AVERAGE, "mem_usage_avg_5m"}

pytestmark = pytest.mark.timeout(420, func_only=True)


def _objects(text: str) -> dict[str, dict[str, Any]]:
    """The objects of manifests by their kind."""
    return {each["kind"]: each for each in patient(text)}


def _spec(cluster: Cluster, text: str) -> dict[str, Any]:
    """The spec of the LoadPolicy in a text, with nodes that are cgroups, and quick."""
    spec: dict[str, Any] = _objects(text)["LoadPolicy"]["spec"]
    group = cgroups.node_path(cluster.sandbox.name, "$(NODE_NAME)")
    spec["source"]["nodeMetrics"] = {
        "mountHost": True,
        "args": [f"--cgroup={group}", f"--cpu-capacity={CAPACITY}m", "--interval=1"],
    }
    for each in spec["sync"]:
        each["period"] = "5s"
    # What a start of a node's pods costs for a moment is a maximum for an hour and a day.
    spec["predicates"] = [each for each in spec["predicates"] if "avg_5m" in each["name"]]
    spec["priorities"] = [each for each in spec["priorities"] if "avg_5m" in each["name"]]
    return {**spec, **SHORT, "write": ["crane"]}


@pytest.fixture(scope="module")
def load(shared_cluster: Cluster, workers: tuple[str, str]) -> Iterator[Cluster]:
    """The cluster with one worker that is busy and requests little, and crane-scheduler."""
    shared_cluster.rest_with_default_profile()
    busy, idle = workers
    container = {
        "name": "main",
        "image": images.OPERATOR,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", "while True: pass"],
        "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": f"{CAPACITY * 9 // 10}m"}},
    }
    create(shared_cluster, pod(STRESS, nodeName=busy, containers=[container]))
    for node in (idle, shared_cluster.node.name):
        create(
            shared_cluster,
            pod(f"{FILLER}{node}", requests={"cpu": "1"}, nodeName=node, tolerations=ANYWHERE),
        )
    objects = _objects(EXAMPLE.read_text())
    objects["LoadPolicy"]["spec"] = _spec(shared_cluster, EXAMPLE.read_text())
    objects["SchedulerExtender"]["spec"]["weight"] = 10  # so that nothing else decides
    apply(shared_cluster, *objects.values())
    wait_for(shared_cluster, POLICY, timeout=120, Accepted="True", Available="True")
    wait_for(shared_cluster, f"{SECONDARY_SCHEDULERS}/{NAME}", timeout=120, **WELL)
    yield shared_cluster
    for path in (SECONDARY_SCHEDULERS, SCHEDULER_EXTENDERS, LOAD_POLICIES):
        with contextlib.suppress(ApiError):
            shared_cluster.api.request("DELETE", path)
    shared_cluster.without_pods()
    until(lambda: not _pods_on(shared_cluster, workers), 120, "pods of the operator on the workers")


def _pods_on(cluster: Cluster, names: tuple[str, str]) -> list[str]:
    """The pods of the operator's namespace on these nodes."""
    items = cluster.api.request("GET", PODS)["items"]
    return [item["metadata"]["name"] for item in items if item["spec"].get("nodeName") in names]


@pytest.fixture(autouse=True)
def _no_pods_of_other_tests(load: Cluster) -> Iterator[None]:
    yield
    load.without_pods(STRESS, *(f"{FILLER}{node.name}" for node in load.sandbox.nodes))


@pytest.fixture
def busy(workers: tuple[str, str]) -> str:
    return workers[0]


def _usage(cluster: Cluster, node: str) -> dict[str, Any]:
    """What is written on a node."""
    found = cluster.api.request("GET", f"/api/v1/nodes/{node}")["metadata"].get("annotations", {})
    return dict(json.loads(found.get(LOAD_ANNOTATION, "{}")))


def _average(cluster: Cluster, node: str) -> float:
    return float(_usage(cluster, node).get(AVERAGE, -1))


def _averages(cluster: Cluster) -> dict[str, float]:
    return {node.name: _average(cluster, node.name) for node in cluster.sandbox.nodes}


def _pinned(cluster: Cluster, name: str, node: str, scheduler: str = NAME) -> None:
    """A pod that can only have one node."""
    selector = {"kubernetes.io/hostname": node}
    create(cluster, pod(name, scheduler, nodeSelector=selector, tolerations=ANYWHERE))


def _spread(cluster: Cluster, scheduler: str, replicas: int = 30) -> Counter[str]:
    """Where the pods of a Deployment like the one in crane's tests go.

    They wait there for a ConfigMap that does not exist: starting thirty pods is itself a load,
    which on a slow machine makes all nodes alike.
    """
    volumes = [{"name": "never", "configMap": {"name": "is-not-there"}}]
    template = pod("", scheduler, {"cpu": "5m"}, tolerations=ANYWHERE, volumes=volumes)
    template["metadata"] = {"labels": {"app": "nginx"}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "nginx"}},
        "template": {key: template[key] for key in ("metadata", "spec")},
    }
    cluster.api.request(
        "POST",
        DEPLOYMENTS,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "nginxapp"},
            "spec": spec,
        },
    )
    pods = f"{PODS_IN_DEFAULT}?labelSelector=app%3Dnginx"

    def found() -> Counter[str]:
        items = cluster.api.request("GET", pods)["items"]
        return Counter(item["spec"].get("nodeName", "") for item in items)

    try:
        until(
            lambda: found().total() == replicas and not found()[""],
            120,
            lambda: f"not all were placed: {found()}",
        )
        return found()
    finally:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        cluster.api.request("DELETE", f"{DEPLOYMENTS}/nginxapp", options)
        until(lambda: not found(), 120, "the pods did not go away")


def _is_rejected(cluster: Cluster, name: str) -> None:
    until(
        lambda: AVERAGE in why_pending(cluster, name),
        60,
        lambda: f"{name}: {node_of(cluster, name)!r}, {why_pending(cluster, name)!r}",
    )


@pytest.mark.presubmit
def test_load_is_measured_and_written_on_the_nodes(load: Cluster, busy: str) -> None:
    nodes = [node.name for node in load.sandbox.nodes]
    until(
        lambda: _average(load, busy) > 0.65 and all(_average(load, node) >= 0 for node in nodes),
        90,
        lambda: f"not measured: { {node: _usage(load, node) for node in nodes} }",
    )
    averages = _averages(load)
    print(averages)
    assert max(averages, key=averages.__getitem__) == busy
    usage = _usage(load, busy)
    assert usage["source"] == "NodeMetrics"
    until(lambda: _usage(load, busy)["at"] > usage["at"], 30, "it is written once and never again")
    annotations = load.api.request("GET", f"/api/v1/nodes/{busy}")["metadata"]["annotations"]
    assert annotations.keys() >= CRANE_KEYS, "crane's own, because spec.write asks for them"
    assert len(own_pods(load, "app=node-metrics")) == len(nodes)


@pytest.mark.presubmit
def test_no_pod_goes_to_the_busy_node_whatever_is_requested(load: Cluster, busy: str) -> None:
    _pinned(load, "wants-the-busy-one", busy)
    _is_rejected(load, "wants-the-busy-one")
    by_requests = _spread(load, "default-scheduler")
    by_load = _spread(load, NAME)
    usage = _averages(load)
    print(f"by requests: {dict(by_requests)}; by load: {dict(by_load)} at {usage}")
    assert by_requests[busy] >= 10, "it has the most room as far as requests go"
    assert by_load.total() == 30
    assert by_load[busy] == 0, "the others share them, unless one of them is as busy by then"


def test_an_edit_of_the_policy_reaches_the_agents(load: Cluster, busy: str) -> None:
    before = {each["metadata"]["uid"] for each in _scheduler_pods(load)}
    _pinned(load, "wants-the-busy-one", busy)
    _is_rejected(load, "wants-the-busy-one")
    with _only_scores(load):
        assert placed(load, "wants-the-busy-one", timeout=120) == busy
        assert {each["metadata"]["uid"] for each in _scheduler_pods(load)} == before, "no restart"
        by_load = _spread(load, NAME)
        usage = _averages(load)
        print(f"by scores: {dict(by_load)} at {usage}")
        assert by_load[busy] <= 2, usage
    _pinned(load, "is-kept-away", busy)
    _is_rejected_again(load, "is-kept-away", busy)


@contextlib.contextmanager
def _only_scores(cluster: Cluster) -> Iterator[None]:
    """The LoadPolicy keeps no pod away; then it is as before."""
    spec = _spec(cluster, EXAMPLE.read_text())
    rules = {key: spec[key] for key in ("predicates", "hotValues", "priorities")}
    scores = {
        "predicates": [],
        "hotValues": [],
        "priorities": [{"name": AVERAGE, "weight": 1}],
    }
    cluster.api.request("PATCH", POLICY, {"spec": scores})
    try:
        yield
    finally:
        cluster.api.request("PATCH", POLICY, {"spec": rules})


def _is_rejected_again(cluster: Cluster, name: str, node: str, scheduler: str = NAME) -> None:
    """The agents follow within a moment; a pod that was quicker is tried again."""

    def rejected() -> bool:
        if node_of(cluster, name):
            delete(cluster, name)
            _pinned(cluster, name, node, scheduler)
            return False
        return AVERAGE in why_pending(cluster, name)

    until(rejected, 120, lambda: f"not rejected: {why_pending(cluster, name)!r}")
    delete(cluster, name)


def _scheduler_pods(cluster: Cluster) -> list[dict[str, Any]]:
    return own_pods(cluster, f"kube-scheduler-operator.dev/secondary-scheduler={NAME}")


def _reports(cluster: Cluster, *parts: str) -> bool:
    """Whether the LoadPolicy's Degraded is True and has all of the parts."""
    found = conditions(cluster.api.request("GET", POLICY)).get("Degraded", {})
    message = found.get("message", "")
    return found.get("status") == "True" and all(part in message for part in parts)


@pytest.fixture
def gate(load: Cluster) -> Iterator[None]:
    """OperatorSettings with a Gate, which remember what runs."""
    group = "kube-scheduler-operator.dev/v1alpha1"
    spec = {"placementCheck": {"mode": "Gate", "timeoutSeconds": 240}}
    kind = {"apiVersion": group, "kind": "OperatorSettings", "metadata": {"name": "cluster"}}
    load.api.request("POST", OPERATOR_SETTINGS, {**kind, "spec": spec})

    def remembered(path: str) -> bool:
        status = load.api.request("GET", path).get("status", {})
        return bool((status.get("placementCheck") or {}).get("ran"))

    for path in (f"{OPERATOR_SETTINGS}/cluster", f"{SECONDARY_SCHEDULERS}/{NAME}"):
        until(partial(remembered, path), 60, f"{path} does not remember what runs")
    yield
    load.api.request("DELETE", f"{OPERATOR_SETTINGS}/cluster")


@pytest.mark.usefixtures("gate")
def test_with_a_gate_edits_of_limits_and_of_an_agents_policy_are_held(load: Cluster) -> None:
    """What filters reject at another load than that of the moment is not known."""
    rules = _spec(load, EXAMPLE.read_text())["predicates"]
    tighter = [{**rule, "maxLimit": "1%"} for rule in rules]

    def accepted() -> tuple[str, str, str]:
        return condition_of(load.api.request("GET", POLICY), "Accepted")

    load.api.request("PATCH", POLICY, {"spec": {"predicates": tighter}})
    try:
        until(lambda: accepted()[:2] == ("False", "Waiting"), 60, lambda: f"{accepted()}")
        until(lambda: "the edit is held" in load.condition(CHECK)[1], 240,
              lambda: f"not held: {load.condition(CHECK)}")  # fmt: skip
        print(load.condition(CHECK)[1], accepted()[2], sep="\n")
        assert "LoadPolicy" in load.condition(CHECK)[1]
    finally:
        load.api.request("PATCH", POLICY, {"spec": {"predicates": rules}})
    until(lambda: accepted()[0] == "True", 60, lambda: f"{accepted()}")

    extender = f"{SCHEDULER_EXTENDERS}/load-aware"
    agent = load.api.request("GET", extender)["spec"]["agent"]

    def held() -> str:
        found = load.api.request("GET", f"{SECONDARY_SCHEDULERS}/{NAME}")
        return condition_of(found, CHECK)[2]

    policies = [*agent["policies"], {"name": "safe-overload", "arguments": {"utilization": 1}}]
    load.api.request("PATCH", extender, {"spec": {"agent": {"policies": policies}}})
    try:
        until(lambda: "the edit is held" in held(), 240, lambda: f"not held: {held()}")
        print(held())
        assert "load-aware" in held()
    finally:
        load.api.request("PATCH", extender, {"spec": {"agent": agent}})
    until(lambda: "the edit is held" not in held(), 60, held)


def test_without_the_annotator_load_is_ignored_and_pods_are_scheduled(
    load: Cluster, busy: str
) -> None:
    with dead(lambda: pids_of(load, "app=load-annotator", "annotator")):
        _pinned(load, "goes-by-nothing", busy)
        assert placed(load, "goes-by-nothing", timeout=120) == busy
        last = _usage(load, busy)["at"]
        blind = _spread(load, NAME)
        print(f"without the annotator: {dict(blind)}")
        assert blind[busy] >= 5
        until(
            lambda: _reports(load), 120, lambda: f"not reported: {load.api.request('GET', POLICY)}"
        )
        assert _usage(load, busy)["at"] == last
        delete(load, "goes-by-nothing")
    # The kubelet waits for up to 40 s before it restarts a container that ended several times.
    wait_for(load, POLICY, timeout=180, Degraded="False", Available="True")
    _pinned(load, "is-kept-away", busy)
    _is_rejected_again(load, "is-kept-away", busy)


def test_a_node_without_an_exporter_is_neither_preferred_nor_avoided(
    load: Cluster, busy: str
) -> None:
    with dead(lambda: pids_of(load, "app=node-metrics", "node-metrics", busy)):
        _pinned(load, "goes-by-nothing", busy)
        assert placed(load, "goes-by-nothing", timeout=120) == busy
        until(
            lambda: _reports(load, busy),
            120,
            lambda: f"not reported: {load.api.request('GET', POLICY).get('status')}",
        )
        (idle,) = (node.name for node in load.sandbox.nodes[1:] if node.name != busy)
        at = _usage(load, idle)["at"]
        until(lambda: _usage(load, idle)["at"] > at, 30, "the others are not measured any more")
        delete(load, "goes-by-nothing")
    wait_for(load, POLICY, timeout=180, Degraded="False", Available="True")
    assert _average(load, busy) > 0.65, "it goes on with its history"
    _pinned(load, "is-kept-away", busy)
    _is_rejected_again(load, "is-kept-away", busy)


def test_uninstalling_removes_everything(load: Cluster) -> None:
    load.api.request("DELETE", f"{SCHEDULER_EXTENDERS}/load-aware")
    load.api.request("DELETE", f"{SECONDARY_SCHEDULERS}/{NAME}")
    load.api.request("DELETE", POLICY)

    def left() -> list[str]:
        found = [
            f"{key} of {node.name}"
            for node in load.sandbox.nodes
            for key in load.api.request("GET", f"/api/v1/nodes/{node.name}")["metadata"].get(
                "annotations", {}
            )
            if key == LOAD_ANNOTATION or key.startswith(("cpu_usage", "mem_usage", "node_hot"))
        ]
        for selector in ("app=node-metrics", "app=load-annotator"):
            found += [each["metadata"]["name"] for each in own_pods(load, selector)]
        return found

    until(lambda: not left(), 120, lambda: f"left: {left()}")


# --- crane's configuration, converted -------------------------------------------------------------


def _convert(cluster: Cluster, *arguments: str) -> set[str]:
    """Apply what crane's configuration is converted to; the kinds that it is."""
    program = (sys.executable, "-m", "kube_scheduler_operator", "convert", "--quiet")
    text = run(*program, "-f", CRANE / "scheduler-config.yaml", *arguments)
    objects = _objects(text)
    objects["LoadPolicy"]["spec"] = _spec(cluster, text)
    apply(cluster, *objects.values())
    wait_for(cluster, POLICY, timeout=120, Accepted="True", Available="True")
    return set(objects)


def _acts(cluster: Cluster, busy: str, scheduler: str) -> None:
    """A pod is kept away from the busy node, and another one finds its place."""
    until(lambda: _average(cluster, busy) > 0.65, 90, "the load is not measured")
    _pinned(cluster, "is-kept-away", busy, scheduler)
    _is_rejected_again(cluster, "is-kept-away", busy, scheduler)
    create(cluster, pod("finds-its-place", scheduler))
    assert placed(cluster, "finds-its-place") != busy
    delete(cluster, "finds-its-place")


def test_cranes_scheduler_of_the_control_plane_is_converted(load: Cluster, busy: str) -> None:
    assert _convert(load) == {"LoadPolicy", "SchedulerProfile", "SchedulerExtender"}
    path = f"{SCHEDULER_EXTENDERS}/load-aware"
    wait_for(load, path, timeout=180, Accepted="True", Available="True", Degraded="False")
    until(lambda: load.current == load.latest and load.calm(), 120, "it is not rolled out")
    _acts(load, busy, "default-scheduler")
    for each in (path, POLICY, f"{SCHEDULER_PROFILES}/default-scheduler"):
        load.api.request("DELETE", each)
    load.rest()


def test_cranes_scheduler_is_converted_to_a_second_one(load: Cluster, busy: str) -> None:
    second = "converted"
    assert _convert(load, "--to", "second", "--name", second) == {
        "LoadPolicy",
        "SchedulerExtender",
        "SecondaryScheduler",
    }
    wait_for(load, f"{SECONDARY_SCHEDULERS}/{second}", timeout=120, **WELL)
    _acts(load, busy, second)
    # The default scheduler considers requests only.
    _pinned(load, "of-the-default-one", busy, "default-scheduler")
    assert placed(load, "of-the-default-one") == busy
    delete(load, "of-the-default-one")
    for path in (SCHEDULER_EXTENDERS, SECONDARY_SCHEDULERS, LOAD_POLICIES):
        load.api.request("DELETE", path)
