"""The installer continues once the preflight of its own pod has written its result and exited."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.node.static_pod.installer import wait_for_preflight

from .test_processes import OTHER, STATIC, mountinfo, process

CHECK = "kube-scheduler --config=x --write-config-to=/preflight/effective-config.yaml"


@pytest.fixture
def proc(tmp_path: Path) -> Any:
    directory = tmp_path / "proc"
    (directory / "self").mkdir(parents=True)
    (directory / "self" / "mountinfo").write_text(mountinfo(STATIC))
    return directory


class Waiting:
    """An installer that waits, in a thread."""

    def __init__(self, effective: Any, proc: Any) -> None:
        self.found = b""
        self.thread = threading.Thread(target=self._wait, args=(effective, proc), daemon=True)
        self.thread.start()

    def _wait(self, effective: Any, proc: Any) -> None:
        self.found = wait_for_preflight(effective, proc)

    def is_over(self, seconds: Any) -> Any:
        self.thread.join(seconds)
        return not self.thread.is_alive()


def test_waits_for_the_result(tmp_path: Path, proc: Any) -> None:
    effective = tmp_path / "effective.yaml"
    waiting = Waiting(effective, proc)
    assert not waiting.is_over(0.2)
    effective.write_bytes(b"")  # created, and not written yet
    assert not waiting.is_over(0.2)
    effective.write_bytes(b"a: 1\n")
    assert waiting.is_over(10)
    assert waiting.found == b"a: 1\n"


def test_waits_until_the_writer_has_exited(tmp_path: Path, proc: Any) -> None:
    effective = tmp_path / "effective.yaml"
    effective.write_bytes(b"a:")
    process(proc, 77, CHECK, mountinfo(STATIC))
    waiting = Waiting(effective, proc)
    assert not waiting.is_over(0.2)
    effective.write_bytes(b"a: 1\n")
    (proc / "77" / "cmdline").write_bytes(b"")  # what an ended process has
    assert waiting.is_over(10)
    assert waiting.found == b"a: 1\n"


def test_preflights_of_other_pods_are_ignored(tmp_path: Path, proc: Any) -> None:
    effective = tmp_path / "effective.yaml"
    effective.write_bytes(b"a: 1\n")
    process(proc, 77, CHECK, mountinfo(OTHER))
    assert Waiting(effective, proc).is_over(10)
