"""The TLS contexts of a port: its certificate, its settings and the clients' CA.

The certificate comes from files, and is reloaded when they change, or is self-signed until they
exist.

A rotated certificate is first loaded into a TLS context of its own, and then used for new
handshakes. An invalid pair, such as a new certificate with the old key in the middle of a rotation,
changes nothing: the last valid one stays in use.
"""

from __future__ import annotations

import logging
import shutil
import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from ..base import x509
from ..base.klog import kv
from .tls_files import bare_context
from .tls_settings import TLSSettings

log = logging.getLogger(__name__)

NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
"""Arguments of openssl."""

_SELF_SIGNED_DAYS: Final = 3650  # clients cannot verify it, and every start creates a new one
_OPENSSL_SECONDS: Final = 30


class CertificateError(Exception):
    """No usable serving certificate. The message contains the remedy."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate chain and its private key, PEM."""

    certificate: bytes
    key: bytes


class ServingCertificate:
    """A TLS context for servers whose certificate can change while it is in use."""

    def __init__(
        self,
        certificate_file: Path | None = None,
        key_file: Path | None = None,
        pair: KeyPair | None = None,
    ) -> None:
        """Load the certificate.

        Args:
            certificate_file: PEM, the server's own certificate first.
            key_file: PEM. If both are None, or while neither exists, `pair` is used.
            pair: None: a self-signed one.

        Raises:
            CertificateError: only one is set or exists, they do not match, or a self-signed one
                cannot be created.
        """
        self._files = _files(certificate_file, key_file)
        self._self_signed = self._files is None or not _exist(self._files)
        if self._files is None or self._self_signed:
            self._loaded = pair or self_signed()
        else:
            self._loaded = _read(*self._files)
        if self._files is not None and self._self_signed:
            log.info(
                "Serving certificate not found, using a self-signed one until it exists",
                extra=kv(file=str(certificate_file)),
            )
        self._refused: KeyPair | None = None
        self._problem = ""
        self._settings = TLSSettings()
        self._client_ca = ""
        self._current = self._context(self._loaded, self._settings, self._client_ca)
        self.context = bare_context()  # for the server; follows the certificate
        self.context.sni_callback = self._choose

    def reload(self) -> bool:
        """Read the files again; return whether new handshakes now use another certificate.

        An invalid pair is logged once and otherwise ignored. An error that is not the pair's, such
        as a full disk, is retried by the next call.
        """
        if self._files is None:
            return False
        if self._self_signed and not _exist(self._files):
            return False
        pair: KeyPair | None = None
        try:
            pair = _read(*self._files)
            if pair in (self._loaded, self._refused):
                return False
            self._current = self._context(pair, self._settings, self._client_ca)
        except (CertificateError, OSError) as error:
            if pair is not None and isinstance(error, CertificateError):
                self._refused = pair
            if str(error) != self._problem:
                log.warning(
                    "Cannot load the new serving certificate, keeping the old one",
                    extra=kv(err=str(error)),
                )
            self._problem = str(error)
            return False
        self._loaded, self._self_signed, self._problem = pair, False, ""
        log.info("Serving certificate reloaded", extra=kv(file=str(self._files[0])))
        return True

    def load(self, pair: KeyPair) -> None:
        """Use another certificate for new handshakes.

        Raises:
            CertificateError: they do not belong together; the one in use stays.
            OSError: they cannot be loaded now; the one in use stays.
        """
        self._current = self._context(pair, self._settings, self._client_ca)
        self._loaded, self._self_signed = pair, False

    def use(self, settings: TLSSettings, client_ca: str = "") -> bool:
        """Set TLS versions, cipher suites and the CA of client certificates for new handshakes.

        Clients need no certificate. Return whether something changed; a CA that cannot be loaded
        is logged and means that no client certificate is accepted. Raises OSError, after which
        nothing has changed.
        """
        if (settings, client_ca) == (self._settings, self._client_ca):
            return False
        current = self._context(self._loaded, settings, client_ca)
        self._current, self._settings, self._client_ca = current, settings, client_ca
        # OpenSSL takes versions and the request for a certificate from the context of the
        # connection's start, cipher suites and CAs from the one that is chosen below.
        settings.apply(self.context)
        self.context.verify_mode = current.verify_mode
        return True

    @property
    def expires(self) -> datetime | None:
        """Expiry of the certificate in use; None if it cannot be read."""
        return x509.expires(self._loaded.certificate)

    def _choose(
        self, connection: ssl.SSLObject, _server_name: str | None, _context: ssl.SSLContext
    ) -> None:
        # Called in every handshake, also without a server name, before a certificate is chosen.
        connection.context = self._current

    @staticmethod
    def _context(pair: KeyPair, settings: TLSSettings, client_ca: str) -> ssl.SSLContext:
        """Make a context with `pair`, by way of private files: OpenSSL loads only files."""
        context = bare_context()
        settings.apply(context)
        if client_ca:
            try:
                context.load_verify_locations(cadata=client_ca)
                context.verify_mode = ssl.CERT_OPTIONAL
            except (ssl.SSLError, ValueError) as error:
                log.warning("Cannot load the CA of client certificates: %s", error)
        _load_pair(context, pair)
        return context


def _files(certificate_file: Path | None, key_file: Path | None) -> tuple[Path, Path] | None:
    if certificate_file is None and key_file is None:
        return None
    if certificate_file is None or key_file is None:
        raise CertificateError("set both --tls-cert-file and --tls-private-key-file, or neither")
    return certificate_file, key_file


def _exist(files: tuple[Path, Path]) -> bool:
    return any(file.exists() for file in files)


def _read(certificate_file: Path, key_file: Path) -> KeyPair:
    try:
        return KeyPair(certificate_file.read_bytes(), key_file.read_bytes())
    except OSError as error:
        raise CertificateError(
            f"cannot read the serving certificate: {error.filename}: {error.strerror}"
        ) from error


def _load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    with tempfile.TemporaryDirectory(prefix="serving-cert-") as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.touch(0o600)
        key.write_bytes(pair.key)
        try:
            # Without a password function OpenSSL prompts on the terminal and blocks.
            context.load_cert_chain(certificate, key, password=lambda: "")
        except (ssl.SSLError, ValueError) as error:
            raise CertificateError(
                f"cannot load the serving certificate and its key: {error}: they must be "
                "unencrypted PEM and belong together"
            ) from error


def self_signed() -> KeyPair:
    """Return a new key and a certificate for localhost."""
    with tempfile.TemporaryDirectory(prefix="serving-cert-") as name:
        directory = Path(name)
        try:
            run_openssl(
                directory, "req", "-x509", *NEW_KEY, "-sha256", "-days", str(_SELF_SIGNED_DAYS),
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout", "tls.key", "-out", "tls.crt",
                kind="self-signed serving certificate",
            )  # fmt: skip
        except CertificateError as error:
            message = f"{error}: set --tls-cert-file and --tls-private-key-file"
            raise CertificateError(message) from error
        return _read(directory / "tls.crt", directory / "tls.key")


def run_openssl(directory: Path, *arguments: str, kind: str = "certificate") -> None:
    """Run the program openssl, which creates a certificate; Python's standard library cannot.

    Raises:
        CertificateError: openssl is missing or failed.
    """
    openssl = shutil.which("openssl")
    if openssl is None:
        raise CertificateError(f"cannot create a {kind} without the program openssl")
    try:
        done = subprocess.run(
            [openssl, *arguments],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=_OPENSSL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CertificateError(f"openssl cannot create a {kind}: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise CertificateError(f"openssl cannot create a {kind}: {lines[-1]}")
