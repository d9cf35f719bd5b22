"""The certificate of a simulation's Pod: made there, and known by its hash.

The operator learns the hash from the termination message of the container that made it, which only
the kubelet writes. So it sends the world to no other Pod and accepts no other Pod's answer,
without a Secret, a token or an authority.
"""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path
from typing import Final

from ..serving.certificate import self_signed

_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"


def make_identity(directory: Path) -> str:
    """Write a new certificate and its key; return the certificate's SHA-256, in hex.

    Raises:
        CertificateError: the program openssl is missing or failed.
    """
    pair = self_signed()
    key = directory / _KEY
    key.touch(0o600)
    key.write_bytes(pair.key)
    (directory / _CERTIFICATE).write_bytes(pair.certificate)
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pair.certificate.decode())).hexdigest()


def tls_context(directory: Path) -> ssl.SSLContext:
    """Return the server's side of the connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(directory / _CERTIFICATE, directory / _KEY)
    return context
