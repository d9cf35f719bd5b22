"""TLS handshakes with a server's context, without a network in between."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...conftest import CertificateFiles


@dataclass(frozen=True)
class Agreed:
    """What client and server agreed on."""

    certificate: bytes  # the server's, DER
    version: str | None  # the TLS version
    cipher: str  # the cipher suite, by OpenSSL's name
    client: Any  # the client's certificate as the server sees it; None: it has none


def handshake(
    server: ssl.SSLContext,
    *,
    server_name: str | None = "localhost",
    version: ssl.TLSVersion | None = None,
    ciphers: str = "ALL",
    client: CertificateFiles | None = None,
) -> Agreed:
    """A handshake by a client that knows one version (None: all), and any old cipher suite.

    Raises:
        ssl.SSLError: one side refuses.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = version or ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = version or ssl.TLSVersion.MAXIMUM_SUPPORTED
    context.set_ciphers(f"{ciphers}:@SECLEVEL=0")  # otherwise the client refuses old versions
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = context.wrap_bio(to_client, to_server, server_hostname=server_name)
    peer = server.wrap_bio(to_server, to_client, server_side=True)
    pending = [ours, peer]
    for _ in range(10):
        for side in list(pending):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            pending.remove(side)
        if not pending:
            break
    assert not pending
    der, cipher = ours.getpeercert(binary_form=True), ours.cipher()
    assert der is not None
    assert cipher is not None
    return Agreed(der, ours.version(), cipher[0], peer.getpeercert())
