"""Schedulers are found by the pod UID and the revision in their mounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.node.static_pod.processes import (
    SchedulerProcess,
    operands,
    parse_mounts,
    parse_start_time,
)

STATIC = "0123456789abcdef0123456789abcdef"
OTHER = "11111111-2222-3333-4444-555555555555"


def mountinfo(uid: Any, revision: Any = None, suffix: str = "") -> Any:
    lines = [
        "1 0 0:1 / / rw - overlay overlay rw",
        f"2 1 8:1 /var/lib/kubelet/pods/{uid}/containers/kube-scheduler/1a2b /dev/termination-log"
        " rw - ext4 /dev/sda1 rw",
    ]
    if revision:
        lines.append(
            f"3 1 8:1 /etc/kubernetes/static-pod-resources/kube-scheduler-pod-{revision}{suffix}"
            " /etc/kubernetes/static-pod-resources ro - ext4 /dev/sda1 rw"
        )
    return "\n".join(lines) + "\n"


def process(proc: Any, pid: Any, cmdline: Any, mounts: Any, start: int = 1000) -> None:
    directory = proc / str(pid)
    directory.mkdir(parents=True)
    (directory / "cmdline").write_bytes(cmdline.replace(" ", "\0").encode())
    (directory / "mountinfo").write_text(mounts)
    (directory / "stat").write_text(f"{pid} (a (b) c) S " + " ".join(["0"] * 18) + f" {start} 0\n")


def test_finds_only_schedulers_of_the_static_pod(tmp_path: Path) -> None:
    process(tmp_path, 10, "kube-scheduler --config=x", mountinfo(STATIC, 7), start=77)
    process(tmp_path, 11, "kube-scheduler --config=x", mountinfo(OTHER, 7))
    process(tmp_path, 12, "/pause", mountinfo(STATIC))
    process(tmp_path, 13, "kube-scheduler-operator run", "1 0 0:1 / / rw - ext4 x rw\n")
    (tmp_path / "sys").mkdir()
    (tmp_path / "14").mkdir()  # ended while being looked at
    assert operands(tmp_path, {STATIC}, "kube-scheduler") == (SchedulerProcess(10, 77, STATIC, 7),)


def test_the_other_containers_of_openshifts_pod_are_not_schedulers(tmp_path: Path) -> None:
    syncer = "cluster-kube-scheduler-operator cert-syncer --namespace=openshift-kube-scheduler"
    process(tmp_path, 10, "hyperkube kube-scheduler --config=x", mountinfo(STATIC, 7), start=77)
    process(tmp_path, 11, syncer, mountinfo(STATIC, 7))
    process(tmp_path, 12, f"/bin/bash -c exec {syncer}", mountinfo(STATIC, 7))
    assert [found.pid for found in operands(tmp_path, {STATIC}, "kube-scheduler")] == [10]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(mountinfo(STATIC), (STATIC, None), id="stock"),
        pytest.param(mountinfo(STATIC, 12), (STATIC, 12), id="ours"),
        pytest.param(mountinfo(STATIC, 12, "//deleted"), (STATIC, 12), id="directory replaced"),
        pytest.param(mountinfo(OTHER, 12), (OTHER, 12), id="a pod of the API"),
        pytest.param("1 0 0:1 / / rw - ext4 x rw\n", ("", None), id="no pod"),
        pytest.param("garbage\n", ("", None), id="garbage"),
        pytest.param(
            "1 0 8:2 /pods/" + STATIC + "/etc-hosts /etc/hosts rw - ext4 x rw\n",
            (STATIC, None),
            id="the kubelet has a file system of its own",
        ),
    ],
)
def test_parse_mounts(text: Any, expected: Any) -> None:
    assert parse_mounts(text) == expected


def test_start_time_with_spaces_and_parentheses_in_the_command() -> None:
    assert parse_start_time("5 (x) y) z) R " + " ".join(str(n) for n in range(4, 30))) == 22
