"""TLS for the extender's port, with certificates and a client CA that are reloaded.

An SSL context cannot forget a CA, so a change results in a new context, which every new handshake
uses. Files that do not match, such as a key and a certificate read during a rotation, are ignored
until they match: the last valid ones stay in use.
"""

from __future__ import annotations

import logging
import ssl

from ...base.klog import kv
from ...kube.credentials import fingerprint
from .config import Tls

log = logging.getLogger(__name__)


class TlsError(Exception):
    """The certificate, its key or the client CA is invalid."""


class ReloadingTlsContext:
    """TLS contexts that follow their files. Raises TlsError if these are invalid at first."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._seen = fingerprint(tls.files)
        self._current = _context(tls)
        self.context = _context(tls)  # the context for the server
        self.context.sni_callback = self._choose

    def reload(self) -> bool:
        """Reload the files if they have changed; return whether new handshakes use them."""
        seen = fingerprint(self._tls.files)
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            self._current = _context(self._tls)
        except TlsError as error:
            log.warning(
                "Keeping the current certificates: the new files are invalid",
                extra=kv(err=str(error)),
            )
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
        # Without a password function OpenSSL would prompt on the terminal and block.
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
        # Kubelet probes have no certificate; routes.py requires one for verbs.
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
