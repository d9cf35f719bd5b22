"""`kubectl scheduler check --upgrade` with the real kube-schedulers of several versions.

Device taints are ignored up to 1.35 and count from 1.36 on; 1.36 has no gate CSIMigrationPortworx,
and 1.35 none for SizeMemoryBackedVolumes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.__main__ import kubectl_plugin

from .test_why import node, pod

pytestmark = pytest.mark.timeout(1800, func_only=True)

Object = dict[str, Any]
OLD, NEW = releases.PINNED[35], releases.PINNED[36]
API = "resource.k8s.io/v1"
DRIVER = "gpu.example"
GONE_IN_35, GONE_IN_36 = "SizeMemoryBackedVolumes", "CSIMigrationPortworx"


def devices() -> list[Object]:
    """A tainted device on node a, and a waiting Pod that claims one."""
    slice_ = {
        "driver": DRIVER,
        "nodeName": "a",
        "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "gpu-0",
                "taints": [
                    {
                        "key": "unhealthy",
                        "effect": "NoSchedule",
                        "timeAdded": "2026-03-01T08:00:00Z",
                    }
                ],
            }
        ],
    }
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1}
    request = {"name": "gpu", "exactly": exactly}
    claims: Object = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}
    return [
        {
            "apiVersion": API,
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [selector]},
        },
        {
            "apiVersion": API,
            "kind": "ResourceSlice",
            "metadata": {"name": "a"},
            "spec": slice_,
        },
        {
            "apiVersion": API,
            "kind": "ResourceClaim",
            "metadata": {"name": "one", "namespace": "default", "uid": "one"},
            "spec": {"devices": {"requests": [request]}},
        },
        pod("infer", "1", **claims),
    ]


def scheduler(version: str, *gates: str) -> Object:
    """The static Pod of kubeadm."""
    flags = [f"--feature-gates={','.join(f'{name}=true' for name in gates)}"] if gates else []
    container = {
        "name": "kube-scheduler",
        "image": f"registry.k8s.io/kube-scheduler:{version}",
        "command": [
            "kube-scheduler",
            "--kubeconfig=/etc/kubernetes/scheduler.conf",
            "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
            "--bind-address=127.0.0.1",
            "--leader-elect=true",
            *flags,
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-scheduler-a", "namespace": "kube-system", "uid": "s"},
        "spec": {"hostNetwork": True, "nodeName": "a", "containers": [container]},
    }


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs the command over files with the programs of some versions; (exit code, document)."""

    def run(objects: list[Object], versions: list[str]) -> tuple[int, Any]:
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        command = ["check", "--from-files", str(path), "-o", "json"]
        command += ["--upgrade", versions[-1].rpartition(".")[0]]
        for version in versions:
            program = binaries.provide_scheduler(version)
            command += ["--kube-scheduler", str(program)]
        code = kubectl_plugin(command)
        printed = capsys.readouterr()
        assert not printed.err
        return code, json.loads(printed.out)

    return run


def steps(found: Any) -> dict[str, Any]:
    return {step["version"]: step["schedulers"][0] for step in found["steps"]}


def test_what_does_not_start_and_which_pods_wait_is_named_by_the_tables_and_the_program(
    check: Callable[..., Any],
) -> None:
    world = [node("a", "x"), *devices(), scheduler(OLD, GONE_IN_36)]
    code, found = check(world, [OLD, NEW])
    step = steps(found)["1.36"]
    assert code == 1
    (error,) = step["errors"]
    assert f"kube-scheduler 1.36 has no feature gate {GONE_IN_36}" in error
    assert step["program"]["version"] == NEW
    assert step["program"]["error"].endswith(f"unrecognized feature gate: {GONE_IN_36}")
    (placements,) = step["placements"]
    assert placements["newlyWaiting"] == [
        {"reason": "cannot allocate all claims", "pods": ["default/infer"]}
    ]
    assert (placements["lost"], placements["elsewhere"], step["notKnown"]) == ([], [], [])


def test_where_nothing_changes_the_exit_code_is_0(check: Callable[..., Any]) -> None:
    world = [node("a", "x"), pod("waits", "1"), pod("full", "99"), scheduler(OLD)]
    code, found = check(world, [OLD, NEW])
    step = steps(found)["1.36"]
    assert (code, found["result"]) == (0, "nothing"), found
    assert step["program"] == {"version": NEW, "error": "", "withoutFeatureGates": []}
    assert step["placements"][0]["tried"] == 3


def test_from_the_oldest_to_the_newest_each_thing_is_named_at_its_step(
    check: Callable[..., Any],
) -> None:
    versions = [releases.PINNED[minor] for minor in sorted(releases.PINNED)]
    world = [node("a", "x"), *devices(), scheduler(versions[0], GONE_IN_35, GONE_IN_36)]
    code, found = check(world, versions)
    by_version = steps(found)
    assert code == 1
    errors = {version: step["errors"] for version, step in by_version.items()}
    assert {version: len(texts) for version, texts in errors.items()} == {
        "1.35": 1, "1.36": 1, "1.37": 0,
    }  # fmt: skip
    assert GONE_IN_35 in errors["1.35"][0]
    assert GONE_IN_36 in errors["1.36"][0]
    assert by_version["1.36"]["program"]["error"].endswith(f"feature gate: {GONE_IN_36}")
    assert by_version["1.36"]["program"]["withoutFeatureGates"] == [GONE_IN_35]
    assert by_version["1.37"]["program"]["withoutFeatureGates"] == [GONE_IN_36, GONE_IN_35]
    waiting = {
        version: step["placements"][0]["newlyWaiting"] for version, step in by_version.items()
    }
    assert [version for version, found in waiting.items() if found] == ["1.36"]
