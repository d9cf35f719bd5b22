"""The serving certificate: read from files and followed when they change, or made on the spot.

A rotated certificate is tried in a TLS context of its own and only then used, for new handshakes
only. A pair that does not fit (the key of one, the certificate of the other, caught in the middle
of a rotation) therefore changes nothing: the last good one goes on serving.
"""

from __future__ import annotations

import logging
import shutil
import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..base import x509
from ..base.klog import kv

if TYPE_CHECKING:
    from datetime import datetime

log = logging.getLogger(__name__)

_SELF_SIGNED_DAYS: Final = 3650  # nobody can verify it anyway, and it is remade at every start


class CertificateError(Exception):
    """There is no usable serving certificate. The message says how to get one."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A certificate chain and its private key, PEM."""

    certificate: bytes
    key: bytes


class ServingCertificate:
    """A TLS context for servers whose certificate can change while it is in use.

    Attributes:
        context: hand this to the server, once.
    """

    def __init__(self, certificate_file: Path | None, key_file: Path | None) -> None:
        """Load the certificate.

        Args:
            certificate_file: PEM, the server's own certificate first.
            key_file: PEM. If both are None, or neither exists, a self-signed certificate is made.

        Raises:
            CertificateError: only one is given or exists, they do not belong together, or none can
                be made.
        """
        self._files = _files(certificate_file, key_file)
        self._loaded = _read(*self._files) if self._files else _self_signed()
        self._refused: _Pair | None = None
        self._current = _context(self._loaded)
        self.context = _bare_context()
        self.context.sni_callback = self._choose

    def reload(self) -> bool:
        """Read the files again; whether new handshakes get another certificate from now on.

        A pair that cannot be used is logged once and otherwise ignored.
        """
        if self._files is None:
            return False
        try:
            pair = _read(*self._files)
        except CertificateError as error:
            log.warning("Keeping the serving certificate", extra=kv(err=str(error)))
            return False
        if pair in (self._loaded, self._refused):
            return False
        try:
            self._current = _context(pair)
        except CertificateError as error:
            self._refused = pair
            log.warning("Keeping the serving certificate", extra=kv(err=str(error)))
            return False
        self._loaded = pair
        log.info("Using a new serving certificate", extra=kv(file=str(self._files[0])))
        return True

    @property
    def expires(self) -> datetime | None:
        """When the one in use expires; None if that cannot be read."""
        return x509.expires(self._loaded.certificate)

    def _choose(
        self, connection: ssl.SSLObject, _server_name: str | None, _context: ssl.SSLContext
    ) -> None:
        # Called in every handshake, with or without a server name, before a certificate is chosen.
        connection.context = self._current


def _files(certificate_file: Path | None, key_file: Path | None) -> tuple[Path, Path] | None:
    if certificate_file is None and key_file is None:
        return None
    if certificate_file is None or key_file is None:
        raise CertificateError(
            "a serving certificate and its key belong together: give both files or neither"
        )
    present = [file for file in (certificate_file, key_file) if file.exists()]
    if not present:
        log.info(
            "No serving certificate yet, using a self-signed one until the next start",
            extra=kv(file=str(certificate_file)),
        )
        return None
    return certificate_file, key_file


def _read(certificate_file: Path, key_file: Path) -> _Pair:
    try:
        return _Pair(certificate_file.read_bytes(), key_file.read_bytes())
    except OSError as error:
        raise CertificateError(
            f"cannot read the serving certificate: {error.filename}: {error.strerror}"
        ) from error


def _bare_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _context(pair: _Pair) -> ssl.SSLContext:
    """A context that serves exactly `pair`; OpenSSL reads only files, so through private ones."""
    context = _bare_context()
    with tempfile.TemporaryDirectory(prefix="serving-cert-") as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.touch(0o600)
        key.write_bytes(pair.key)
        try:
            # Without a password function OpenSSL would ask on the terminal and block for ever.
            context.load_cert_chain(certificate, key, password=lambda: "")
        except (ssl.SSLError, ValueError) as error:
            raise CertificateError(
                f"the serving certificate and its key cannot be used: {error}: they must be "
                "unencrypted PEM and belong together"
            ) from error
    return context


def _self_signed() -> _Pair:
    """A new key and a certificate for localhost, made by the program openssl.

    Python's standard library can use certificates and cannot make them.
    """
    openssl = shutil.which("openssl")
    if openssl is None:
        raise CertificateError(
            "there is no serving certificate, and none can be made because the program openssl is "
            "missing: give --tls-cert-file and --tls-private-key-file"
        )
    with tempfile.TemporaryDirectory(prefix="serving-cert-") as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        command = [
            openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-sha256", "-days", str(_SELF_SIGNED_DAYS), "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout", str(key), "-out", str(certificate),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise CertificateError(
                f"openssl could not make a serving certificate: {lines[-1]}: give --tls-cert-file "
                "and --tls-private-key-file"
            )
        return _read(certificate, key)
