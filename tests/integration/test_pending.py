"""`kubectl scheduler pending` groups waiting pods by the reasons of kube-scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin

from .test_why import Files, pod

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]


def _waiting(files: Files) -> None:
    files.objects.pop(("Pod", "waiting"))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w"}
    for number in range(3):
        made = pod(f"big-{number}", "9")
        made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        made["metadata"]["creationTimestamp"] = f"2026-01-0{3 - number}T00:00:00Z"
        files.add(made)
    files.add(pod("tape", nodeSelector={"disk": "tape"}))
    files.add(pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    files.add(pod("lonely", schedulerName="unknown"))
    files.add(pod("queued"))
    files.add(pod("running", nodeName="a"))
    leaving = pod("leaving", "9")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    files.add(leaving)


def _run(path: Path, binary: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> Any:
    command = ["pending", "--from-files", str(path), "--kube-scheduler", str(binary), *flags]
    assert kubectl_plugin(command) == 0, capsys.readouterr().err
    text = capsys.readouterr().out
    return json.loads(text) if "json" in flags else text


def test_waiting_pods_are_grouped_by_cause(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Files()
    _waiting(files)
    path = tmp_path / "cluster.json"
    files.write(path)
    groups = _run(path, kube_scheduler_binary, capsys, "-o", "json")["groups"]
    first, *others = groups
    explained = first.pop("diagnosis")
    assert explained["pod"] == "default/big-2"
    assert explained["fixes"][0]["text"] == first["fix"]
    assert first == {
        "kind": "unschedulable",
        "cause": "Insufficient cpu",
        "since": "2026-01-01T00:00:00Z",
        "owners": ["ReplicaSet/web"],
        "pods": ["default/big-2", "default/big-1", "default/big-0"],
        "fix": "request 4 of cpu instead of 9",
        "tried": True,
        "groupFixes": [],
        "unreadGroups": [],
        "newNodes": [],
        "comingNodes": [],
    }
    assert {(each["kind"], *each["pods"]) for each in others} == {
        ("unschedulable", "default/tape"),
        ("gated", "default/gated"),
        ("no scheduler", "default/lonely"),
        ("queued", "default/queued"),
    }
    (tape,) = (each for each in others if each["pods"] == ["default/tape"])
    assert tape["cause"] == "node(s) didn't match Pod's node affinity/selector (disk=tape)"
    label = "label a node: kubectl label node a disk=tape --overwrite"
    assert tape["fix"] == f"{label} (a is one of 3 such nodes)"


def test_the_text_names_pods_owners_and_what_helps(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Files()
    _waiting(files)
    path = tmp_path / "cluster.json"
    files.write(path)
    text = _run(path, kube_scheduler_binary, capsys, "--fixes", "1")
    assert "7 pods without a node:" in text
    assert "3 pods, oldest since 2026-01-01T00:00:00Z: Insufficient cpu" in text
    assert "  owners  ReplicaSet/web" in text
    assert "  helps   default/big-2: request 4 of cpu instead of 9" in text
    assert 'no scheduler serves spec.schedulerName "unknown"' in text


def test_one_namespace_has_only_its_own_pods(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Files()
    path = tmp_path / "cluster.json"
    files.write(path)
    text = _run(path, kube_scheduler_binary, capsys, "-n", "other")
    assert text.startswith("No pod waits for a node.\n")
