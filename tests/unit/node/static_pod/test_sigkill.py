"""Real processes, a real disk and SIGKILL at every operation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kube_scheduler_operator

from .fake_node import pod_json

DRIVER = Path(__file__).with_name("sigkill_driver.py")
PACKAGE = Path(kube_scheduler_operator.__file__).parents[1]


@pytest.mark.timeout(300)  # dozens of processes, one after the other
@pytest.mark.parametrize(
    ("bad", "result", "left"),
    [pytest.param([], "Installed", 2, id="good"), pytest.param([2], "RolledBack", 1, id="bad")],
)
def test_sigkill_at_every_operation(tmp_path: Path, bad: Any, result: Any, left: Any) -> None:
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path), pod_json().decode(), json.dumps(bad)],
        env={"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(kills) > 50
    assert {kill["status"] for kill in kills[:-1]} == {9}
    assert kills[-1]["status"] == 0, "the last one was not killed"
    for kill in kills:
        if kill["killed"] != "nothing":
            assert kill["killed"]["whole"], kill
            assert kill["killed"]["files"] == ["kube-scheduler.yaml"], kill
        assert kill["result"] == result, kill
        assert kill["after"] == {
            "files": ["kube-scheduler.yaml"], "revision": left, "whole": True
        }, kill  # fmt: skip
        assert ".kube-scheduler-staging" not in kill["left"], kill
        assert ".kube-scheduler.yaml" not in kill["left"], kill
        assert ("kube-scheduler-pod-1" in kill["left"]) is (left == 1), kill
        assert "kube-scheduler-swap.json" not in kill["left"], kill
