"""The annotator as a program: its policy file, its flags and its imports."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.scheduling.load.policy import LoadPolicy, LoadPolicyError
from kube_scheduler_operator.scheduling.load.policy_follower import PolicyFollower

OPERATOR = Path(__file__).resolve().parents[4] / "operator"


def follow(path: Any) -> PolicyFollower:
    return PolicyFollower(path, lambda: 0.0, interval=0.0, required=True)


def test_changed_policy_is_used(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(LoadPolicy().text())
    file = follow(path)
    assert file.policy == LoadPolicy()
    assert file.digest == hashlib.sha256(path.read_bytes()).hexdigest()[:10]
    assert not file.changed()
    path.write_text(LoadPolicy(cycle=30.0).text())
    assert file.changed()
    assert file.policy.cycle == 30
    assert not file.changed()


def test_invalid_policy_is_logged_once_and_the_previous_one_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "policy.json"
    path.write_text(LoadPolicy().text())
    file = follow(path)
    before = file.digest
    path.write_text(json.dumps({"cycleSeconds": "often"}))
    with caplog.at_level(logging.INFO):
        assert not file.changed()
        assert not file.changed()
    assert len(caplog.records) == 1
    assert "cycleSeconds" in file.error
    assert file.digest == before
    path.unlink()
    assert not file.changed()
    assert "No such file" in file.error
    path.write_text(LoadPolicy().text())
    assert not file.changed()
    assert not file.error


def test_start_requires_a_valid_policy(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text("{")
    with pytest.raises(LoadPolicyError):
        follow(path)


def test_cranes_file_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "apiVersion: scheduler.policy.crane.io/v1alpha1\nkind: DynamicSchedulerPolicy\n"
        "spec: {predicate: [{name: cpu_usage_avg_5m, maxLimitPecent: 0.5}],"
        " syncPolicy: [{name: cpu_usage_avg_5m, period: 3m}]}\n"
    )
    assert follow(path).policy.rules.predicates[0].limit == 0.5


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("kube_scheduler_operator.scheduling.annotator.program", {"numpy", "kopf", "kubernetes"}),
        (
            "kube_scheduler_operator.scheduling.annotator.annotation",
            {"numpy", "orjson", "aiohttp", "yaml"},
        ),
        ("kube_scheduler_operator.cli.programs.annotator", {"numpy", "orjson", "aiohttp", "yaml"}),
    ],
)
def test_imports_only_what_it_needs(module: Any, absent: Any) -> None:
    code = f"import sys, {module}; print(sorted({absent!r} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(OPERATOR)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--listen-address=here", "--namespace=x"], "is not HOST:PORT"),
        (["--cleanup", "--namespace=x"], "--annotations requires"),
        (["--cleanup", "--namespace=x", "--annotations=everything"], "own, crane, safe"),
        ([], "--namespace is required"),
    ],
)
def test_invalid_flags_are_explained(
    flags: Any, message: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["annotator", *flags])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_missing_policy_file_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["annotator", f"--config={tmp_path / 'none'}", "--namespace=x"]) == 1
    assert "No such file" in capsys.readouterr().err
