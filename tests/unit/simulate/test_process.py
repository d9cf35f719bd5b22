"""A kube-scheduler of this machine is a child with limits and a folder of its own."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

import pytest

from kube_scheduler_operator.simulate import process
from kube_scheduler_operator.simulate.process import (
    KubeSchedulerProcess,
    SimulationError,
    binary_version,
)

URL = "http://127.0.0.1:1"


def script(folder: Path, text: str) -> Path:
    path = folder / "kube-scheduler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def log_of(binary: Path) -> list[str]:
    """All lines that a program writes."""
    lines: list[bytes] = []
    made = KubeSchedulerProcess(binary, lines.append)
    await made.start({"profiles": []}, URL, ["--v=2"])
    await asyncio.wait_for(made.ended.wait(), 20)
    await made.stop()
    return [line.decode() for line in lines]


async def test_it_has_a_limit_of_data_and_a_folder_that_is_deleted(tmp_path: Path) -> None:
    text = 'ulimit -d >&2; echo "$HOME" >&2; echo "$@" >&2; cat "${1#--config=}" >&2'
    limit, home, arguments, config = await log_of(script(tmp_path, text))
    assert int(limit) * 1024 == process._MEMORY
    assert arguments == f"--config={home}/config.json --secure-port=0 --v=2"
    assert json.loads(config)["clientConnection"]["kubeconfig"] == f"{home}/kubeconfig"
    assert not Path(home).exists()  # noqa: ASYNC240  # at the end


async def test_a_program_that_does_not_start_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = KubeSchedulerProcess(tmp_path / "nothing", lambda _: None)
    with pytest.raises(FileNotFoundError):
        await made.start({}, URL)
    await made.stop()
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240  # at the end


def test_its_version_is_what_it_writes(tmp_path: Path) -> None:
    binary = script(tmp_path, "echo Kubernetes v1.35.4")
    assert str(binary_version(binary)) == "v1.35.4"
    with pytest.raises(SimulationError, match="'nothing' is not a Kubernetes version"):
        binary_version(script(tmp_path, "echo nothing"))
    with pytest.raises(SimulationError, match="does not report its version: Command"):
        binary_version(script(tmp_path, "exit 1"))
