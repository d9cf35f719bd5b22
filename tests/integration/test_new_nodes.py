"""Nodes that do not exist yet, in `why` and `pending`: the real kube-scheduler decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin

from ..new_nodes import Object, daemon_set, node, node_pool, pod, requirement
from .new_node_worlds import CASES, Case

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]


@pytest.fixture
def ask(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs a command over objects; returns its output."""

    def run(objects: list[Object], *command: str) -> str:
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        flags = ["--from-files", str(path), "--kube-scheduler", str(kube_scheduler_binary)]
        assert kubectl_plugin([*command, *flags]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_could_make_a_node_and_what_cannot_is_named(
    case: Case, ask: Callable[..., str]
) -> None:
    document = json.loads(ask(case.all, "why", "shop/waiting", "-o", "json"))
    assert document["candidates"] == []
    answers: dict[str, Any] = {one["source"]: one for one in document["newNodes"]}
    answer = answers[case.source]
    causes = "\n".join(answer["causes"])
    assert answer["outcome"] == case.outcome, answer
    for part in case.parts:
        assert part in causes, answer
    assert answer["command"].startswith("kubectl ")
    if case.source == "NodePool general":  # it answers for its nodes
        assert "add a node like full" not in [fix["text"] for fix in document["fixes"]]
    if case.coming is None:
        assert document["comingNodes"] == []
        return
    (coming,) = document["comingNodes"]
    name, outcome, state = case.coming
    assert name in coming["node"]
    assert state in coming["state"]
    assert coming["outcome"] == outcome, coming
    assert coming["since"] == "2026-03-01T08:00:00Z"


TEXT = """\
Nodes that do not exist yet (each was tried as an empty node):
  NodePool general can make a node on which it fits, like node full (m5.large)
    DaemonSets take 250m of cpu there
    next: kubectl describe nodepool general
  NodePool small makes no node on which it fits
    its nodes have at most 1 of cpu (karpenter.k8s.aws/instance-cpu Lt 2), of which DaemonSets \
take 250m, and the Pod requests 1
    next: kubectl describe nodepool small
"""


def _two_pools() -> list[Object]:
    small = requirement("karpenter.k8s.aws/instance-cpu", "Lt", "2")
    return [
        node_pool(),
        node_pool("small", template_requirements=[small]),
        daemon_set("logs", "250m"),
    ]


def test_the_text_has_the_object_the_figures_and_the_next_command(
    ask: Callable[..., str],
) -> None:
    assert TEXT in ask(Case("text", _two_pools()).all, "why", "shop/waiting")


def test_pending_has_the_short_answer(ask: Callable[..., str]) -> None:
    text = ask(Case("pending", _two_pools()).all, "pending", "-A")
    assert (
        "  nodes   shop/waiting: NodePool general can make a node on which it fits, like node full "
        "(m5.large); 1 more (kubectl scheduler why); next: kubectl describe nodepool general"
    ) in text


def test_the_pod_of_a_daemon_set_gets_no_new_node(ask: Callable[..., str]) -> None:
    case = Case("daemon", [node_pool()])
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}
    case.waiting["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    document = json.loads(ask(case.all, "why", "shop/waiting", "-o", "json"))
    assert document["newNodes"] == []


def test_a_node_like_one_that_exists_has_the_pods_of_its_daemon_sets(
    ask: Callable[..., str],
) -> None:
    daemon = pod("logs-x", "250m", nodeName="full")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "d"}
    daemon["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    for cpu, fits in (("1750m", True), ("1800m", False)):
        objects = [node("full"), pod("runs", nodeName="full"), daemon, pod("waiting", cpu)]
        fixes = json.loads(ask(objects, "why", "shop/waiting", "-o", "json"))["fixes"]
        assert ("add a node like full" in [fix["text"] for fix in fixes]) is fits
