"""The consequences that warnings describe, with a real kube-scheduler and nodes without a kubelet.

One scheduler serves a profile for every warning, and one without warnings. The tests only examine
whether and where a pod is bound; rejections by a kubelet are in tests/e2e.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.merging.presets import profile_fragment
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.language.warnings.configuration import config_warnings
from kube_scheduler_operator.config.language.warnings.plugins import (
    IMAGES_ALONE,
    NEEDS,
    NOT_PREPARED,
    OUTVOTED_STRATEGY,
    SAFETY_FILTER_OFF,
)

from .conftest import ApiServer
from .played_nodes import change, make_node, until_known

NAMESPACE = "warnings"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SECONDS = 40
SOUND = "sound"
TAINTED = "without-nodeunschedulable-alone"
IMAGES = "images-alone"
MOST = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
LIST = {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}
HEAVY = {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 200}]}}
PACKING: dict[str, tuple[dict[str, Any], bool]] = {
    "packing-outvoted": ({"pluginConfig": [MOST]}, False),
    "packing-as-openshift": (profile_fragment("HighNodeUtilization")["profiles"][0], False),
    "packing-by-weight": ({"pluginConfig": [MOST], "plugins": HEAVY}, True),
    "packing-alone": ({"pluginConfig": [MOST, LIST]}, True),
    "packing-base": (profile_fragment("BinPacking")["profiles"][0], True),
}
"""schedulerName -> (the profile, whether four Pods of a Service share a node)."""
UNPREPARED = [(point, before, name) for point, (before, names) in NEEDS.items() for name in names]

SAFETY: dict[str, dict[str, Any]] = {
    "NodeUnschedulable": {"node": {"spec": {"unschedulable": True}}, "also": "TaintToleration"},
    "NodeResourcesFit": {"pod": {"cpu": "64"}},
    "NodePorts": {"pod": {"port": 8080}, "before": True},
    "TaintToleration": {
        "node": {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
    },
    "NodeAffinity": {"pod": {"nodeSelector": {"no-node": "has-this"}}},
}
"""Filter -> the node and the pod that only it keeps apart; `also`: it, and another one."""

pytestmark = pytest.mark.timeout(180, func_only=True)


def profile(name: str, **points: Any) -> dict[str, Any]:
    return {"schedulerName": name.lower(), "plugins": points}


def off(*names: str) -> dict[str, Any]:
    return {"disabled": [{"name": name} for name in names if name]}


def configuration(kubeconfig: Path) -> dict[str, Any]:
    profiles = [profile(SOUND)]
    profiles += [
        profile(f"without-{name}", filter=off(name, case.get("also", "")))
        for name, case in SAFETY.items()
    ]
    profiles.append(profile(TAINTED, filter=off("NodeUnschedulable")))
    images = {**off("*"), "enabled": [{"name": "ImageLocality", "weight": 10}]}
    profiles.append(profile(IMAGES, score=images))
    profiles += [{**packing, "schedulerName": name} for name, (packing, _) in PACKING.items()]
    profiles += [
        profile(f"{before}-{name}", **{before: off(name)}) for _, before, name in UNPREPARED
    ]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": profiles,
    }


@pytest.fixture(scope="module")
def config(api_server: ApiServer) -> dict[str, Any]:
    return configuration(api_server.kubeconfig)


@pytest.fixture(scope="module")
def scheduler(
    api_server: ApiServer,
    kube_scheduler_binary: Path,
    config: dict[str, Any],
    nodes_of_ones_own: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """A running kube-scheduler; its log."""
    folder = tmp_path_factory.mktemp("scheduler")
    (folder / "config.json").write_text(json.dumps(config))
    api_server.create_namespace(NAMESPACE)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                str(kube_scheduler_binary),
                f"--config={folder / 'config.json'}",
                "--secure-port=0",
                "--vmodule=schedule_one=10",  # logs each node's score
            ],
            stdout=log,
            stderr=log,
        )
        try:
            yield folder / "log"
        finally:
            process.kill()
            process.wait()
            api_server.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def make_pod(
    api: ApiServer,
    name: str,
    scheduler_name: str,
    cpu: str = "1m",
    port: int = 0,
    image: str = "none",
    app: str = "",
    **spec: Any,
) -> None:
    """Create a Pod with one container; `spec` has further fields of its spec."""
    container: dict[str, Any] = {
        "name": "c", "image": image, "resources": {"requests": {"cpu": cpu}},
    }  # fmt: skip
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    body: dict[str, Any] = {
        "schedulerName": scheduler_name,
        "containers": [container],
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        **spec,
    }
    labels = {"app": app} if app else {}
    api.request("POST", PODS, {"metadata": {"name": name, "labels": labels}, "spec": body})


def outcome(api: ApiServer, name: str) -> tuple[str, str]:
    """(the node that a pod is bound to or "", why it is not), as soon as one is known."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        pod = api.request("GET", f"{PODS}/{name}")
        conditions = pod.get("status", {}).get("conditions") or []
        for condition in conditions:
            if condition["type"] == "PodScheduled":
                message = condition.get("message", "")
                return pod["spec"].get("nodeName", ""), f"{condition.get('reason')}: {message}"
        if pod["spec"].get("nodeName"):
            return pod["spec"]["nodeName"], ""
        time.sleep(0.1)
    raise AssertionError(f"no scheduler tried to schedule {name}")


@pytest.fixture
def nodes(api_server: ApiServer, scheduler: Path) -> Iterator[Any]:
    """Creates the only nodes, known to the scheduler; deletes them with all pods at the end."""
    made: list[str] = []

    def make(*names: str, **spec: Any) -> None:
        for name in names:
            made.append(name)
            make_node(api_server, name, spec)
        until_known(api_server, names[-1], PODS, SOUND)

    yield make
    api_server.request("DELETE", PODS, {"gracePeriodSeconds": 0})
    for name in made:
        api_server.request("DELETE", f"/api/v1/nodes/{name}")


def warned(config: dict[str, Any], scheduler_name: str, api: ApiServer) -> set[str]:
    """The reasons of the warnings about one profile."""
    version = Version.parse(api.request("GET", "/version")["gitVersion"])
    found = config_warnings(config, Target(Gates(version)))
    names = [each["schedulerName"] for each in config["profiles"]]
    index = names.index(scheduler_name.lower())
    return {each.reason for each in found if each.path[:2] == ("profiles", index)}


@pytest.mark.parametrize("name", SAFETY)
def test_without_a_safety_filter_pods_are_bound_to_wrong_nodes(
    name: str, nodes: Any, api_server: ApiServer, config: dict[str, Any]
) -> None:
    case = SAFETY[name]
    nodes("bad", **case.get("node", {}).get("spec", {}))
    if case.get("before"):
        make_pod(api_server, "first", "no-scheduler", nodeName="bad", **case["pod"])
    asked = case.get("pod", {})
    make_pod(api_server, "careful", SOUND, **asked)
    make_pod(api_server, "careless", f"without-{name}".lower(), **asked)
    assert outcome(api_server, "careful")[0] == ""
    assert outcome(api_server, "careless")[0] == "bad"
    assert warned(config, SOUND, api_server) == set()
    assert SAFETY_FILTER_OFF in warned(config, f"without-{name}", api_server)


def test_a_cordoned_node_has_a_taint_as_well(nodes: Any, api_server: ApiServer) -> None:
    nodes("bad", unschedulable=True)
    end, taints = time.monotonic() + SECONDS, [""]
    while "node.kubernetes.io/unschedulable" not in taints:
        assert time.monotonic() < end, taints
        time.sleep(0.1)
        node = api_server.request("GET", "/api/v1/nodes/bad")
        taints = [each["key"] for each in node["spec"].get("taints", [])]
    until_known(api_server, "bad", PODS, SOUND)
    make_pod(api_server, "tainted", TAINTED)
    where, why = outcome(api_server, "tainted")
    assert where == ""
    assert "untolerated taint" in why


def scores(log: Path, pod: str) -> dict[str, int]:
    """What a pod's nodes had in the end; empty as long as it was not more than one."""
    line = re.compile(rf'final score for pod" pod="{NAMESPACE}/{pod}" node="(.*)" score=(\d+)')
    return {node: int(score) for node, score in line.findall(log.read_text())}


def test_only_large_images_distinguish_nodes(
    nodes: Any, api_server: ApiServer, scheduler: Path, config: dict[str, Any]
) -> None:
    """40 MB on one of two nodes count as 20, and so as nothing; 600 MB as 300.

    Where nodes are even, pods do not show it: kube-scheduler 1.35 then takes the same one nearly
    always.
    """
    sizes = {"registry.example.com/small:1": 40, "registry.example.com/large:1": 600}
    images = [{"names": [name], "sizeBytes": size * 10**6} for name, size in sizes.items()]
    nodes("has")
    path = "/api/v1/nodes/has"
    change(api_server, path, "/status", lambda node: node["status"].update(images=images))
    nodes("has-not")
    for name in sizes:
        kind = name.partition("/")[2].partition(":")[0]
        make_pod(api_server, kind, IMAGES, image=name)
        outcome(api_server, kind)
    least, most = 23 * 2**20, 1000 * 2**20
    of_large = 10 * (100 * (300 * 10**6 - least) // (most - least))
    assert scores(scheduler, "small") == {"has": 0, "has-not": 0}
    assert scores(scheduler, "large") == {"has": of_large, "has-not": 0}
    assert outcome(api_server, "large")[0] == "has"
    assert warned(config, IMAGES, api_server) == {IMAGES_ALONE}


@pytest.mark.parametrize("name", PACKING)
def test_spreading_outvotes_packing(
    name: str, nodes: Any, api_server: ApiServer, config: dict[str, Any]
) -> None:
    nodes("one", "two", "three")
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    service = {"metadata": {"name": name}, "spec": spec}
    api_server.request("POST", f"/api/v1/namespaces/{NAMESPACE}/services", service)
    time.sleep(3)  # until the scheduler knows the Service
    used = []
    for number in range(4):
        make_pod(api_server, f"{name}-{number}", name, cpu="500m", app=name)
        used.append(outcome(api_server, f"{name}-{number}")[0])
    _, packs = PACKING[name]  # 7 points of a Pod of 500m against 50 of spreading, by their weights
    assert len(set(used)) == (1 if packs else 3), used
    assert (OUTVOTED_STRATEGY in warned(config, name, api_server)) is not packs


@pytest.mark.parametrize(("point", "before", "name"), UNPREPARED)
def test_without_its_preparing_point_a_plugin_fails_every_pod(
    point: str, before: str, name: str, nodes: Any, api_server: ApiServer, config: dict[str, Any]
) -> None:
    nodes("one", "two")  # where only one fits, nothing is scored
    make_pod(api_server, "careful", SOUND)
    make_pod(api_server, "careless", f"{before}-{name}".lower())
    assert outcome(api_server, "careful")[0] in ("one", "two")
    where, why = outcome(api_server, "careless")
    assert where == ""
    assert why.startswith("SchedulerError: ")
    assert NOT_PREPARED in warned(config, f"{before}-{name}", api_server)
