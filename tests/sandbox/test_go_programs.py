"""Programs in Go that are built for tests: what is reported without Go, and what is kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cluster import binaries, go_programs, paths
from cluster.console import SandboxError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "cache_dir", lambda: tmp_path)
    return tmp_path


def test_without_go_the_error_has_the_alternative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(SandboxError, match=r"hack/openshift-client .* or run the other tests"):
        go_programs.provide("openshift-client", "run the other tests")


def test_a_program_is_built_once(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    built: list[Path] = []

    def build(_go: str, source: Path, _package: str, _link: str, target: Path) -> None:
        built.append(source)
        target.parent.mkdir(parents=True)
        target.write_text("program")

    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/go")
    monkeypatch.setattr(binaries, "go_build", build)
    first = go_programs.provide("openshift-client", "")
    assert go_programs.provide("openshift-client", "") == first
    assert first.is_relative_to(cache)
    assert [source.name for source in built] == ["openshift-client"]
