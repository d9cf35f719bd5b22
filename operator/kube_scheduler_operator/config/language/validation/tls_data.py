"""Validation of the certificates and keys in an extender's tlsConfig, without writing files."""

from __future__ import annotations

import base64
import binascii
import os
import re
from functools import lru_cache
from typing import Final

_BLOCK: Final = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\s*?\n([A-Za-z0-9+/=\s]*?)-----END \1-----"
)
_KEYS: Final = ("PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY")
_NO_CERTIFICATE: Final = "contains no certificate; encode a PEM file that contains one"


@lru_cache(maxsize=16)
def unusable_authority(pem: bytes) -> str:
    """Explain why a CA bundle cannot be used; empty if it contains a valid certificate."""
    import ssl  # rarely needed, and slower to import than all validation

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for kind, der in _blocks(pem):
        if kind != "CERTIFICATE":
            continue
        try:
            context.load_verify_locations(cadata=der)
        except (ssl.SSLError, ValueError):
            continue
        return ""
    return _NO_CERTIFICATE


@lru_cache(maxsize=16)
def unusable_pair(certificate: bytes, key: bytes) -> str:
    """Explain why a client certificate and its key cannot be used together; empty if they can."""
    chain = [der for kind, der in _blocks(certificate) if kind == "CERTIFICATE"]
    keys = [der for kind, der in _blocks(key) if kind.endswith("PRIVATE KEY")]
    if not chain:
        return _NO_CERTIFICATE
    if not keys:
        return "keyData contains no private key; encode a PEM file that contains one"
    # OpenSSL trusts the type in the key's PEM block, Go tries all three.
    if hasattr(os, "memfd_create") and not any(_match(chain, kind, keys[0]) for kind in _KEYS):
        return "certData and keyData do not match or are damaged; encode a matching pair"
    return ""


def _match(chain: list[bytes], kind: str, key: bytes) -> bool:
    """Return whether OpenSSL accepts the pair, from a file in memory (Linux)."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # Go accepts keys that are too weak for OpenSSL
    body = base64.encodebytes(key).decode()
    text = "".join(map(ssl.DER_cert_to_PEM_cert, chain))
    text += f"-----BEGIN {kind}-----\n{body}-----END {kind}-----\n"
    file = os.memfd_create("pair")
    try:
        os.write(file, text.encode())
        # Go reads no encrypted keys; without a password OpenSSL would prompt for one.
        context.load_cert_chain(f"/proc/self/fd/{file}", password=lambda: b"")
    except (ssl.SSLError, ValueError):
        return False
    finally:
        os.close(file)
    return True


def _blocks(pem: bytes) -> list[tuple[str, bytes]]:
    """Return (type, content) of the PEM blocks that are valid base64."""
    blocks = []
    for kind, text in _BLOCK.findall(pem):
        try:
            blocks.append((kind.decode(), base64.b64decode(b"".join(text.split()), validate=True)))
        except (binascii.Error, ValueError):
            continue
    return blocks
