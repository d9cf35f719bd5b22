"""A serving certificate with a certificate authority of its own, made by the program openssl.

The authority's key signs one certificate and is then deleted: no stored key can sign another.
Python's standard library cannot create certificates.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...serving.certificate import CertificateError

_OPENSSL_SECONDS: Final = 30
_NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate, its key and its authority, PEM."""

    authority: str
    certificate: str
    key: str


def issue(host: str, days: int) -> Issued:
    """Return a certificate for the DNS name `host`, valid for `days`; blocks for about 0.1 s.

    Raises:
        CertificateError: openssl is missing or failed.
    """
    if shutil.which("openssl") is None:
        raise CertificateError("cannot create a certificate without the program openssl")
    with tempfile.TemporaryDirectory(prefix="webhook-cert-") as name:
        directory = Path(name)
        # The common name is limited to 64 characters; clients read subjectAltName.
        _openssl(
            directory, "req", "-x509", *_NEW_KEY, "-sha256", "-days", str(days),
            "-subj", "/CN=kube-scheduler-operator webhook",
            "-addext", "basicConstraints=critical,CA:TRUE,pathlen:0",
            "-addext", "keyUsage=critical,keyCertSign",
            "-keyout", "ca.key", "-out", "ca.crt",
        )  # fmt: skip
        _openssl(
            directory, "req", "-new", *_NEW_KEY, "-sha256", "-subj", "/CN=webhook",
            "-keyout", "tls.key", "-out", "tls.csr",
        )  # fmt: skip
        extensions = (
            f"subjectAltName=DNS:{host}\nextendedKeyUsage=serverAuth\n"
            "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
        )
        (directory / "extensions").write_text(extensions)
        _openssl(
            directory, "x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-CAcreateserial", "-sha256", "-days", str(days), "-extfile", "extensions",
            "-out", "tls.crt",
        )  # fmt: skip
        return Issued(
            (directory / "ca.crt").read_text(),
            (directory / "tls.crt").read_text(),
            (directory / "tls.key").read_text(),
        )


def _openssl(directory: Path, *arguments: str) -> None:
    try:
        done = subprocess.run(
            ["openssl", *arguments],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=_OPENSSL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CertificateError(f"openssl cannot create a certificate: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise CertificateError(f"openssl cannot create a certificate: {lines[-1]}")
