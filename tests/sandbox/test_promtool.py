"""Getting promtool: what is taken, and what is not."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from cluster import binaries, promtool
from cluster.console import SandboxError

NAME = "prometheus-3.12.0.linux-amd64.tar.gz"


def archive(member: str) -> tuple[bytes, str]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        info = tarfile.TarInfo(member)
        info.size = 4
        tar.addfile(info, io.BytesIO(b"tool"))
    content = packed.getvalue()
    return content, f"0123  other.tar.gz\n{hashlib.sha256(content).hexdigest()}  {NAME}\n"


def test_the_program_comes_out_of_the_release() -> None:
    content, sums = archive("prometheus-3.12.0.linux-amd64/promtool")
    assert promtool.unpack(content, NAME, sums) == b"tool"


@pytest.mark.parametrize("sums", ["", f"0123  {NAME}\n"], ids=["missing", "another"])
def test_an_archive_with_another_checksum_is_rejected(sums: str) -> None:
    content, _ = archive("prometheus-3.12.0.linux-amd64/promtool")
    with pytest.raises(SandboxError, match="does not match its checksum"):
        promtool.unpack(content, NAME, sums)


def test_a_release_without_the_program_is_named() -> None:
    content, sums = archive("prometheus-3.12.0.linux-amd64/prometheus")
    with pytest.raises(SandboxError, match="has no"):
        promtool.unpack(content, NAME, sums)


@pytest.mark.parametrize(
    ("output", "taken"),
    [
        ("promtool, version 3.5.0 (branch: HEAD)", True),
        ("promtool, version 2.53.1 (branch: HEAD)", False),
        ("promtool, version  (branch: )", False),
    ],
)
def test_the_machines_own_is_taken_if_it_is_of_our_major_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, taken: bool
) -> None:
    own = tmp_path / "promtool"
    own.write_text(f"#!/bin/sh\necho '{output}'\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert (promtool._installed() == own) is taken


def test_the_error_without_network_and_go_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(url: str) -> bytes:
        raise OSError("unreachable")

    monkeypatch.setenv("KUBE_SCHEDULER_OPERATOR_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(binaries, "fetch", unreachable)
    with pytest.raises(SandboxError, match="put promtool of Prometheus 3 on PATH"):
        promtool.provide()


def test_the_module_is_of_the_version_that_would_be_downloaded() -> None:
    minor = promtool.VERSION.split(".")[1]
    modules = (promtool._SOURCE / "go.mod").read_text()
    assert f"github.com/prometheus/prometheus v0.3{minor}." in modules
