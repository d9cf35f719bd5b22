"""Which Go builds a version of Kubernetes: that of PATH, or a newer one from PyPI."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cluster import golang
from cluster.console import SandboxError
from versions import sources


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Go 1.26 is on PATH; the arguments of pip are noted instead of run."""
    monkeypatch.setenv("KUBE_SCHEDULER_OPERATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shutil, "which", lambda _name: "/usr/bin/go")
    calls: list[str] = []

    def run(*command: str | Path, **_: Any) -> str:
        words = [str(word) for word in command]
        if words == ["/usr/bin/go", "version"]:
            return "go version go1.26.8 linux/amd64\n"
        calls.append(" ".join(words[1:]))
        target = next(Path(word.partition("=")[2]) for word in words if "--target=" in word)
        (target / "go/bin").mkdir(parents=True)
        (target / "go/bin/go").touch()
        return ""

    monkeypatch.setattr(golang, "run", run)
    return calls


@pytest.mark.parametrize("needed", ["1", "1.9", "1.26"])
def test_the_go_of_the_machine_is_taken_if_it_is_new_enough(
    needed: str, installed: list[str]
) -> None:
    assert golang.provide(needed) == "/usr/bin/go"
    assert installed == []


def test_a_newer_go_is_installed_once_by_its_checksum(installed: list[str], tmp_path: Path) -> None:
    path = golang.provide("1.27")
    assert path
    assert Path(path).is_relative_to(tmp_path / "cache/go")
    assert Path(path).exists()
    assert golang.provide("1.27") == path
    (call,) = installed
    assert "--require-hashes" in call


def test_a_go_that_is_newer_than_both_is_named(installed: list[str]) -> None:
    with pytest.raises(SandboxError, match=r"older than Go 1\.99, .*install Go 1\.99 or newer"):
        golang.provide("1.99")
    assert installed == []


def test_a_machine_without_go_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert golang.provide("1.27") is None


@pytest.mark.parametrize(
    "text", ["m requires go >= 1.27.0", '"Error": "m requires go \\u003e= 1.27.0"']
)
def test_a_module_that_requires_a_newer_go_is_read_with_that(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {"1": f"echo '{text}'; exit 1", "1.27": "echo read"}
    for needed, body in programs.items():
        (tmp_path / needed).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / needed).chmod(0o755)
    monkeypatch.setattr(golang, "provide", lambda needed: str(tmp_path / needed))
    assert sources.go("mod", "download", cwd=tmp_path) == "read\n"
    (tmp_path / "1.27").write_text((tmp_path / "1").read_text())
    with pytest.raises(SandboxError, match="go mod download"):
        sources.go("mod", "download", cwd=tmp_path)
