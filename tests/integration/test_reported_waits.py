"""Waits that people have reported, as files: what a real kube-scheduler makes of the advice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin

from ..new_nodes import ZONE, Object, node, pod, volume

Explain = Callable[..., Any]


@pytest.fixture
def explain(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Explain:
    """Runs `why` for shop/waiting over objects; returns its JSON."""

    def run(*objects: Object) -> Any:
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        flags = ["--from-files", str(path), "--kube-scheduler", str(kube_scheduler_binary)]
        assert kubectl_plugin(["why", "shop/waiting", "-o", "json", *flags]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def texts(answer: Any) -> list[str]:
    return [fix["text"] for fix in answer["fixes"]]


def of_daemon_set(made: Object, name: str) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": name}
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return made


def with_port(made: Object) -> Object:
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return made


@pytest.mark.parametrize("is_daemon", [True, False])
def test_a_new_node_has_the_host_ports_of_daemon_sets(explain: Explain, is_daemon: bool) -> None:
    holder = with_port(pod("lb-x", "100m", nodeName="full"))
    if is_daemon:
        of_daemon_set(holder, "lb")
    answer = explain(node("full"), holder, with_port(pod("waiting", "100m")))
    assert ("add a node like full" in texts(answer)) is not is_daemon


def test_the_request_to_lower_is_that_of_the_container(explain: Explain) -> None:
    waiting = pod("waiting", "1500m", overhead={"cpu": "1"}, runtimeClassName="kata")
    answer = explain(node("empty"), waiting)
    (container,) = (name["name"] for name in waiting["spec"]["containers"])
    assert texts(answer)[0] == f"request 1 of cpu instead of 1500m in container {container}"
    waiting["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    assert explain(node("empty"), waiting)["candidates"] == ["empty"]


FARGATE = "eks.amazonaws.com/compute-type"


def fargate() -> Object:
    made = node("fargate-1", **{FARGATE: "fargate"})
    made["spec"]["taints"] = [{"key": FARGATE, "value": "fargate", "effect": "NoSchedule"}]
    made["status"]["allocatable"]["pods"] = "1"
    return made


def test_no_pod_is_moved_from_a_node_of_fargate_for_that_of_a_daemon_set(explain: Explain) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["fargate-1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    waiting = pod("waiting", "100m", affinity=affinity, tolerations=[{"operator": "Exists"}])
    of_daemon_set(waiting, "agent")
    answer = explain(fargate(), node("other"), pod("app", "100m", nodeName="fargate-1"), waiting)
    (fix,) = answer["fixes"]
    assert fix["text"].startswith(f"demand {FARGATE} NotIn fargate in the node affinity: node")
    assert (fix["object"], fix["nodes"]) == ("DaemonSet shop/agent", [])


def test_no_node_of_fargate_is_to_be_added(explain: Explain) -> None:
    app = pod("app", "100m", nodeName="fargate-1")
    (fix,) = explain(fargate(), app, pod("waiting", "100m"))["fixes"]
    assert fix["text"].startswith("create the pod again where a Fargate profile selects")


def test_a_deferred_resize_can_be_given_up(explain: Explain) -> None:
    big = pod("big", "3", nodeName="full")
    has = {"requests": {"cpu": "1"}}
    name = big["spec"]["containers"][0]["name"]
    status = {"name": name, "resources": has, "allocatedResources": {"cpu": "1"}}
    condition = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    big["status"] = {
        "phase": "Running",
        "conditions": [condition],
        "containerStatuses": [status],
    }
    first = explain(node("full"), big, pod("waiting", "500m"))["fixes"][0]
    assert first["text"] == (
        "let pod shop/big request again what it has, because its resize is Deferred and its node "
        "keeps 3 of cpu for it; it has 1: kubectl edit pod big -n shop --subresource resize"
    )
    assert first["nodes"] == ["full"]
    big["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    assert explain(node("full"), big, pod("waiting", "500m"))["candidates"] == ["full"]


def test_a_skew_is_raised_as_far_as_the_zone_of_the_volume_needs(explain: Explain) -> None:
    """The zone that has least is excluded by the volume, and so is the next one."""
    labels = {"app": "db"}
    nodes = [node(f"n-{zone}", zone) for zone in "abc"]
    running = [pod(f"on-{at}", "100m", nodeName=f"n-{zone}") for at, zone in enumerate("aab")]
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    spread = {**rule, "labelSelector": {"matchLabels": labels}}
    waiting = pod("waiting", "100m", volumes=[claim], topologySpreadConstraints=[spread])
    for each in (*running, waiting):
        each["metadata"]["labels"] = labels
    named = texts(explain(*nodes, *running, *volume("a"), waiting))
    (raised,) = (text for text in named if "maxSkew" in text)
    assert raised == f"raise maxSkew to 3 for the spread over {ZONE}"
    spread["maxSkew"] = 3
    assert explain(*nodes, *running, *volume("a"), waiting)["candidates"] == ["n-a"]


def test_a_daemon_set_ends_its_old_pod_first_where_both_need_a_port(explain: Explain) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["full"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    old = of_daemon_set(with_port(pod("old", "100m", nodeName="full")), "agent")
    new = of_daemon_set(with_port(pod("waiting", "100m", affinity=affinity)), "agent")
    for revision, each in (("1", old), ("2", new)):
        each["metadata"]["labels"] = {"controller-revision-hash": revision}
    first = explain(node("full"), node("other"), old, new)["fixes"][0]
    assert first["text"].startswith("let an old pod end before a new one starts, such as shop/old")
    assert (first["object"], first["field"]) == (
        "DaemonSet shop/agent",
        "spec.updateStrategy.rollingUpdate",
    )
