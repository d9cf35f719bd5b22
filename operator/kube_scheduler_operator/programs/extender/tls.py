"""TLS for the extender's port; certificates and the CA of clients may change at any time.

A context cannot forget a CA, so what changes is put into a new one, and every handshake is given
the newest. Files that do not fit (the key of one, the certificate of the other, caught in the
middle of a rotation) change nothing: the last good ones go on serving.
"""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING

from ...base.klog import kv
from ...kube.credentials import fingerprint

if TYPE_CHECKING:
    from .config import Tls

log = logging.getLogger(__name__)


class TlsError(Exception):
    """The certificate, its key or the CA of clients cannot be used."""


class Context:
    """TLS contexts that follow their files.

    Attributes:
        context: hand this to the server, once.
    """

    def __init__(self, tls: Tls) -> None:
        """Load the files.

        Raises:
            TlsError: they cannot be used.
        """
        self._tls = tls
        self._files = tuple(filter(None, (tls.cert_file, tls.key_file, tls.client_ca_file)))
        self._seen = fingerprint(self._files)
        self._current = _context(tls)
        self.context = _context(tls)
        self.context.sni_callback = self._choose

    def reload(self) -> bool:
        """Read the files again if they have changed; whether new handshakes get others."""
        seen = fingerprint(self._files)
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            self._current = _context(self._tls)
        except TlsError as error:
            log.warning("Keeping the certificates", extra=kv(err=str(error)))
            return False
        log.info("Using new certificates", extra=kv(cert=self._tls.cert_file))
        return True

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _old: ssl.SSLContext) -> None:
        connection.context = self._current


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # Without a password function OpenSSL would ask on the terminal and block for ever.
        context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: "")
    except (OSError, ssl.SSLError, ValueError) as error:
        raise TlsError(
            f"certificate {tls.cert_file} with key {tls.key_file} cannot be used: {error}"
        ) from error
    if tls.client_ca_file:
        try:
            context.load_verify_locations(tls.client_ca_file)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise TlsError(f"client CA {tls.client_ca_file} cannot be used: {error}") from error
        # Kubelets have no certificate for probes: who has none may ask how it is going (routes).
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
