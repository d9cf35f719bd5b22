"""Fixtures: certificates, created once per test process because openssl is slow; virtual time."""

from __future__ import annotations

import asyncio
import selectors
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The duration of an example depends more on the machine than on the code.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@dataclass(frozen=True)
class CertificateFiles:
    certificate: Path
    key: Path


def make_certificate(directory: Path, name: str) -> CertificateFiles:
    files = CertificateFiles(directory / f"{name}.crt", directory / f"{name}.key")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout", str(files.key), "-out", str(files.certificate),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return files


@pytest.fixture(scope="session")
def first_certificate(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return make_certificate(tmp_path_factory.mktemp("first"), "first")


@pytest.fixture(scope="session")
def second_certificate(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return make_certificate(tmp_path_factory.mktemp("second"), "second")


@pytest.fixture
def served(tmp_path: Path, first_certificate: CertificateFiles) -> CertificateFiles:
    """The certificate files of a server under test, with the first certificate."""
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    files.certificate.write_bytes(first_certificate.certificate.read_bytes())
    files.key.write_bytes(first_certificate.key.read_bytes())
    return files


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the clock instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("deadlock: all tasks wait and no timer runs")
        if not ready and timeout:
            self.now += timeout
        return ready


@pytest.fixture
def virtual_time() -> Iterator[asyncio.Runner]:
    """A runner with virtual time: sleeps return at once."""

    def loop() -> asyncio.AbstractEventLoop:
        selector = _JumpingSelector()
        made = asyncio.SelectorEventLoop(selector)
        made.time = lambda: selector.now  # type: ignore[method-assign]
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        yield runner
