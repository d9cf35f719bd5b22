"""SIGUSR2 reaches the scheduler of this static pod and no other process."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.node.static_pod import dump_signal

STATIC = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"
HANDLED = "SigCgt:\tffffffffffffffff\n"
BARE = f"SigCgt:\t{0xFFFFFFFFFFFFFFFF & ~(1 << (signal.SIGUSR2 - 1)):016x}\n"


def process(proc: Any, pid: Any, cmdline: Any, uid: Any = STATIC, status: Any = HANDLED) -> None:
    directory = proc / str(pid)
    directory.mkdir()
    (directory / "cmdline").write_bytes(cmdline.replace(" ", "\0").encode() + b"\0")
    (directory / "mountinfo").write_text(
        f"2 1 8:1 /var/lib/kubelet/pods/{uid}/containers/x/1 /dev/termination-log rw - ext4 x rw\n"
    )
    (directory / "stat").write_text(f"{pid} (x) S " + " ".join(["0"] * 18) + " 1 0\n")
    (directory / "status").write_text(f"Name:\tx\n{status}")


def send(proc: Any) -> Any:
    sent = []
    problem = dump_signal.send(STATIC, proc, lambda pid, number: sent.append((pid, number)))
    return problem, sent


def test_signals_only_the_scheduler_of_this_pod(tmp_path: Path) -> None:
    process(tmp_path, 10, "/usr/local/bin/kube-scheduler --config=x")
    process(tmp_path, 11, "kube-scheduler --config=x", uid=OTHER)
    process(tmp_path, 12, "kube-scheduler-operator cert-syncer --name=kube-scheduler")
    process(tmp_path, 13, "sh -c kube-scheduler")
    assert send(tmp_path) == ("", [(10, signal.SIGUSR2)])


def test_hyperkube_is_recognized(tmp_path: Path) -> None:
    process(tmp_path, 10, "hyperkube kube-scheduler --config=x")
    assert send(tmp_path)[1] == [(10, signal.SIGUSR2)]


@pytest.mark.parametrize("status", [BARE, ""])
def test_process_without_a_handler_is_not_signalled(tmp_path: Path, status: Any) -> None:
    process(tmp_path, 10, "kube-scheduler --config=x", status=status)
    problem, sent = send(tmp_path)
    assert sent == []
    assert "no process" in problem


def test_ambiguous_processes_are_not_signalled(tmp_path: Path) -> None:
    process(tmp_path, 10, "kube-scheduler --config=x")
    process(tmp_path, 11, "kube-scheduler --config=x")
    problem, sent = send(tmp_path)
    assert sent == []
    assert "found 2 processes [10, 11] of static pod" in problem


def test_permission_error_is_reported(tmp_path: Path) -> None:
    def refuse(pid: Any, number: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    process(tmp_path, 10, "kube-scheduler --config=x")
    assert dump_signal.send(STATIC, tmp_path, refuse) == (
        "sending SIGUSR2 to process 10 failed: Operation not permitted"
    )


def test_error_becomes_the_termination_message(tmp_path: Path) -> None:
    options = dump_signal.DumpSignalOptions("no such pod", tmp_path / "log")
    assert dump_signal.main(options) == 1
    assert "static pod no such pod" in (tmp_path / "log").read_text()
