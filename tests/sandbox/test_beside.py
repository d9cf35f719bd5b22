"""`hack/beside`: two commands at a time, the second on what the first leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "hack/beside"


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize(
    ("other", "command", "code"),
    [("true", "true", 0), ("exit 3", "true", 3), ("true", "exit 4", 4), ("exit 3", "exit 4", 4)],
)
def test_both_have_to_succeed(other: str, command: str, code: int) -> None:
    running = start(other, "sh", "-c", command)
    running.communicate()
    assert running.returncode == code


def test_the_other_commands_output_is_printed_at_the_end() -> None:
    output, _ = start(
        "echo a; sleep 0.3; echo b >&2", "sh", "-c", "echo 1; sleep 0.1; echo 2"
    ).communicate()
    lines = [line for line in output.splitlines() if "wait" not in line]
    assert lines[:4] == ["1", "2", "a", "b"]
    assert lines[-1].endswith("exit code 0")


def test_the_other_command_has_the_lowest_priority() -> None:
    policy = "import os; print(os.sched_getscheduler(0) == os.SCHED_IDLE)"
    output, _ = start(f"nice; {sys.executable} -c '{policy}'", "true").communicate()
    assert output.splitlines()[-3:-1] == ["19", "True"]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", ["the command fails", "a signal"])
def test_the_other_command_is_ended_too(tmp_path: Path, how: str) -> None:
    note = tmp_path / "pid"
    wait = f"while ! test -s {note}; do sleep 0.01; done"
    command = f"{wait}; exit 1" if how == "the command fails" else f"{wait}; exec sleep 60"
    running = start(f"sleep 60 & echo $! > {note}; wait", "sh", "-c", command)
    if how == "a signal":
        while not (note.exists() and note.read_text()):
            time.sleep(0.01)
        os.kill(running.pid, signal.SIGTERM)
    running.communicate()
    assert running.returncode == (1 if how == "the command fails" else 128 + signal.SIGTERM)
    pid = int(note.read_text())
    deadline = time.monotonic() + 30  # it ends on idle processor time
    while _is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_alive(pid)
