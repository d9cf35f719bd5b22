"""`kubectl scheduler check --upgrade` with the real kube-schedulers of several versions.

Device taints are ignored up to 1.35 and count from 1.36 on; 1.36 has no gate CSIMigrationPortworx,
and 1.35 none for SizeMemoryBackedVolumes.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.upgrades import recorded
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.upgrades import FilesUpgrade
from kube_scheduler_operator.simulate import upgrade_check
from kube_scheduler_operator.simulate.launcher_files import copy_launcher, launcher_command
from kube_scheduler_operator.simulate.process import LaunchedProgram
from kube_scheduler_operator.simulate.questions import (
    NO_BINARY,
    read_answer,
    read_request,
    request,
)
from kube_scheduler_operator.simulate.read_files import read_files
from kube_scheduler_operator.simulate.run_options import RunOptions

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


# --- in a Pod with two kube-schedulers ------------------------------------------------------------


@pytest.fixture
def launched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], LaunchedProgram]]:
    """Starts the launcher of a container with the kube-scheduler of a version."""
    copy_launcher(tmp_path / "launcher")
    started: list[subprocess.Popen[bytes]] = []
    run = secrets.token_hex(8)
    monkeypatch.setattr(upgrade_check, "NEXT_ADDRESS", f"@test-{run}-next")

    def launch(which: str, version: str) -> LaunchedProgram:
        address, folders = f"@test-{run}-{which}", tmp_path / which
        folders.mkdir()
        command = [str(binaries.provide_scheduler(version))]
        # Each has its own volume at the same path.
        program = LaunchedProgram(address, str(folders))
        started.append(
            subprocess.Popen(launcher_command(tmp_path / "launcher", address, command), cwd="/")
        )
        return program

    yield launch
    for process in started:
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize("gate", [GONE_IN_36, ""])
async def test_a_pod_reports_what_the_command_reports(
    check: Callable[..., Any],
    launched: Callable[[str, str], LaunchedProgram],
    tmp_path: Path,
    gate: str,
) -> None:
    objects = [node("a", "x"), *devices(), scheduler(OLD, *filter(None, (gate,)))]
    _, found = await asyncio.to_thread(check, objects, [OLD, NEW])
    options = CheckOptions(Gates(Version.parse(OLD)), KUBEADM)
    upgrade = FilesUpgrade([("cluster", (tmp_path / "cluster.json").read_bytes())], options)
    world = read_files([tmp_path / "cluster.json"]).world
    sent = request(
        upgrade_check.check_upgrade,
        world,
        RunOptions(NO_BINARY, {}, seconds=120.0),
        {
            "upgrades": [recorded(upgrade, Version(1, 36))],
            "target": Version(1, 36),
            "next_program": upgrade_check.NextProgram("image", named=False),
            "extenders": [],
            "load_policies": [],
        },
    )
    before = launched("before", OLD)
    launched("next", NEW)
    await before.wait(20)
    answer = b'{"answer":%b}' % await read_request((sent,)).answer(before)
    report = read_answer(upgrade_check.check_upgrade, answer)
    own, other = steps(report.document())["1.36"], steps(found)["1.36"]
    for one in (own, other):
        # The command reads files with their names.
        one["errors"] = [text[text.index("kube-scheduler") :] for text in one["errors"]]
    assert own["placements"] == other["placements"]
    assert own["program"]["version"] == other["program"]["version"] == NEW
    assert own["program"]["error"][-30:] == other["program"]["error"][-30:]
    assert bool(own["program"]["error"]) == bool(gate)
    assert own["notKnown"] == other["notKnown"] == []
    assert [GONE_IN_36 in text for text in own["errors"]] == [True] * bool(gate)
    assert f"compared with {OLD}: 1 waiting pod could no longer" in report.described()
