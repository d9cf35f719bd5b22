"""Keys and certificates, made once per test process because openssl takes a while; virtual time."""

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

# How long an example takes says more about the machine than about the code.
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
    """The files that a server under test reads; they hold the first certificate."""
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    files.certificate.write_bytes(first_certificate.certificate.read_bytes())
    files.key.write_bytes(first_certificate.key.read_bytes())
    return files


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting, moves the clock to when the wait would end."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("dead-lock: everything waits and no timer runs")
        if not ready and timeout:
            self.now += timeout
        return ready


@pytest.fixture
def virtual_time() -> Iterator[asyncio.Runner]:
    """A runner whose loop never waits: sleeping an hour takes no time."""

    def loop() -> asyncio.AbstractEventLoop:
        selector = _JumpingSelector()
        made = asyncio.SelectorEventLoop(selector)
        made.time = lambda: selector.now  # type: ignore[method-assign]
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        yield runner
