"""A private key and certificate are made once per test process: openssl takes a while."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


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
