"""A kube-scheduler of this machine is a child with limits and a folder of its own."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

import pytest

from kube_scheduler_operator.config.language.versions import DEFAULT_VERSION
from kube_scheduler_operator.simulate import process
from kube_scheduler_operator.simulate.find_program import find_binary
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


async def test_a_program_that_panics_ended_with_that_and_not_with_its_stack(tmp_path: Path) -> None:
    binary = script(
        tmp_path,
        "echo 'panic: nil map [recovered]' >&2\n"
        "for line in $(seq 100); do echo 'k8s.io/x.go:76 +0x1fc' >&2; done; exit 2",
    )
    made = KubeSchedulerProcess(binary, lambda _: None)
    await made.start({}, "http://127.0.0.1:1")
    await asyncio.wait_for(made.ended.wait(), 20)
    assert made.failure() == "panic: nil map [recovered]"
    await made.stop()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with three versions, and nothing on the PATH."""
    for version in ("1.34.4", "1.36.3", "1.37.2"):
        folder = tmp_path / "cache" / "build" / f"v{version}-0123"
        folder.mkdir(parents=True)
        script(folder, f"echo Kubernetes v{version}")
    monkeypatch.setenv("KUBE_SCHEDULER_OPERATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [("v1.34.9", "v1.34.4"), ("v1.36.0", "v1.36.3"),
     ("v1.35.4", "v1.36.3"), ("v1.30.0", "v1.34.4"), ("v1.40.0", "v1.37.2")],
)  # fmt: skip
def test_the_program_with_the_nearest_version_is_chosen(
    programs: Path, wanted: str, chosen: str
) -> None:
    assert find_binary(None, wanted).parent.name.startswith(f"{chosen}-")


def test_a_program_of_the_version_for_which_files_are_checked_decides_where_nothing_shows_one(
    programs: Path,
) -> None:
    """So `why` and `validate` are about the same version, unless the $PATH has a program."""
    for version in ("1.35.1", "1.35.4"):
        folder = programs / "cache" / "build" / f"v{version}-0123"
        folder.mkdir()
        script(folder, f"echo Kubernetes v{version}")
    assert find_binary(None).parent.name.startswith(f"v{DEFAULT_VERSION}.")
    other = script(programs, "echo Kubernetes v1.37.2")
    assert find_binary(None) == other


def test_what_the_user_names_comes_before_the_version(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = script(programs, "echo Kubernetes v1.35.4")
    assert find_binary(None, "v1.35.1") == other, "that of the PATH"
    assert find_binary(None, "v1.36.0") != other
    assert find_binary(str(other), "v1.36.0") == other
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(programs))
    assert find_binary(None, "v1.36.0") == other
