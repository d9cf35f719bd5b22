"""TLS contexts of a port, whose PEM files are reloaded when they change.

An SSL context cannot forget a CA, so a change results in a new context, which every new handshake
uses. Files that do not match, such as a key and a certificate read during a rotation, are ignored
until they match: the last valid ones stay in use.
"""

from __future__ import annotations

import ssl
from functools import cached_property

from ..base.files import fingerprint


class TlsError(OSError):
    """The certificate, its key or the client CA is invalid."""


class TlsFiles:
    """TLS contexts that follow their files. Raises TlsError if these are invalid at first.

    Without a key file, the key is in the certificate's. `clients` is whether clients need a
    certificate of the client CA, if there is one.
    """

    def __init__(self, clients: ssl.VerifyMode, certificate: str, key: str, client_ca: str) -> None:
        self.certificate, self._key, self._client_ca = certificate, key or certificate, client_ca
        self._clients = clients
        self._files = tuple(filter(None, (certificate, key, client_ca)))
        self._seen = fingerprint(self._files)
        self._problem = ""
        self.current = self._load()  # the context for a new handshake

    @cached_property
    def context(self) -> ssl.SSLContext:
        """The context for a server that keeps one; each handshake uses `current`."""
        context = self._load()
        context.sni_callback = self._choose
        return context

    def reload(self) -> bool:
        """Reload the files if they have changed; return whether new handshakes use them.

        Raises:
            TlsError: they are invalid, or cannot be read now; the same error is not raised again.
        """
        seen = fingerprint(self._files)
        if seen == self._seen:
            return False
        try:
            self.current = self._load()
        except TlsError as error:
            if isinstance(error.__cause__, ssl.SSLError | ValueError):
                self._seen = seen  # only other files can be valid
            known, self._problem = self._problem, str(error)
            if self._problem == known:
                return False
            raise
        self._seen, self._problem = seen, ""
        return True

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _old: ssl.SSLContext) -> None:
        connection.context = self.current

    def _load(self) -> ssl.SSLContext:
        context = bare_context()
        try:
            # Without a password function OpenSSL would prompt on the terminal and block.
            context.load_cert_chain(self.certificate, self._key, password=lambda: "")
        except (OSError, ValueError) as error:
            message = f"certificate {self.certificate} with key {self._key} cannot be used: {error}"
            raise TlsError(message) from error
        if self._client_ca:
            try:
                context.load_verify_locations(self._client_ca)
            except (OSError, ValueError) as error:
                raise TlsError(f"client CA {self._client_ca} cannot be used: {error}") from error
            context.verify_mode = self._clients
        return context


def bare_context() -> ssl.SSLContext:
    """Return a context for servers that has no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
