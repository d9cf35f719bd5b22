"""Expiry of certificates, compared with OpenSSL."""

from __future__ import annotations

import ssl
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kube_scheduler_operator.base import x509

if TYPE_CHECKING:
    from pathlib import Path

    from ..conftest import CertificateFiles


def openssl_expiry(path: Path) -> datetime:
    command = ["openssl", "x509", "-enddate", "-noout", "-in", str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds = ssl.cert_time_to_seconds(output.strip().removeprefix("notAfter="))
    return datetime.fromtimestamp(seconds, UTC)


@pytest.mark.parametrize("days", [1, 3650, 36500], ids=["utc-time", "ten-years", "general-time"])
@pytest.mark.parametrize("key", ["rsa:2048", "ec"])
def test_expiry_equals_openssls(tmp_path: Path, days: int, key: str) -> None:
    curve = ["-pkeyopt", "ec_paramgen_curve:prime256v1"] if key == "ec" else []
    made = tmp_path / "tls.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", key, *curve, "-nodes", "-days", str(days),
         "-subj", "/O=a/CN=b", "-keyout", str(tmp_path / "tls.key"), "-out", str(made)],
        check=True, capture_output=True,
    )  # fmt: skip
    assert x509.expires(made.read_bytes()) == openssl_expiry(made)


def test_the_first_certificate_of_a_chain_is_read(
    first_certificate: CertificateFiles, second_certificate: CertificateFiles
) -> None:
    chain = b"leaf\n" + first_certificate.certificate.read_bytes()
    chain += second_certificate.certificate.read_bytes()
    assert x509.expires(chain) == openssl_expiry(first_certificate.certificate)


def test_invalid_certificate_has_no_expiry(first_certificate: CertificateFiles) -> None:
    whole = first_certificate.certificate.read_bytes()
    head, *lines, foot = whole.decode().splitlines()
    for text in ("", "-----BEGIN CERTIFICATE-----", f"{head}\nAAAA\n{foot}", f"{head}\nA\n{foot}"):
        assert x509.expires(text.encode()) is None
    for cut in range(1, len(lines)):
        broken = "\n".join([head, *lines[:cut], foot])
        assert x509.expires(broken.encode()) is None


def test_two_digit_years_from_50_belong_to_the_20th_century() -> None:
    def der(tag: int, content: bytes) -> bytes:
        return bytes([tag, len(content)]) + content

    times = der(0x30, der(0x17, b"490101000000Z") + der(0x17, b"500101000000Z"))
    body = der(0x30, der(2, b"1") + der(0x30, b"") + der(0x30, b"") + times)
    pem = ssl.DER_cert_to_PEM_cert(der(0x30, body + der(0x30, b"") + der(3, b"")))
    assert x509.expires(pem.encode()) == datetime(1950, 1, 1, tzinfo=UTC)
