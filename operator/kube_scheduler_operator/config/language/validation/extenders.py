"""Rules for extenders, for configurations with valid types.

Certificates and keys in tlsConfig are checked without writing files.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from ....base.findings import Path, Problem
from ....base.go_values import is_extended_resource
from .profiles import DUPLICATE

INVALID_EXTENDER: Final = "InvalidExtender"

_BLOCK: Final = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\s*?\n([A-Za-z0-9+/=\s]*?)-----END \1-----"
)
_KEYS: Final = ("PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY")
_NO_CERTIFICATE: Final = "contains no certificate; encode a PEM file that contains one"


def validate_extenders(extenders: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield problems of all extenders; files that they name are not read."""
    binder: int | None = None
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path: Path = ("extenders", index)
        if extender.get("prioritizeVerb") and extender.get("weight", 0) <= 0:
            message = "an extender with a prioritizeVerb needs a weight; set 1 or more"
            yield Problem(INVALID_EXTENDER, (*path, "weight"), message)
        if extender.get("bindVerb"):
            if binder is not None:
                message = f"extenders[{binder}] also has a bindVerb, and only one can; remove one"
                yield Problem(INVALID_EXTENDER, (*path, "bindVerb"), message)
            binder = index if binder is None else binder
        yield from _tls(extender, (*path, "tlsConfig"))
        for position, resource in enumerate(extender.get("managedResources", ())):
            name = resource.get("name", "")
            where = (*path, "managedResources", position, "name")
            if not is_extended_resource(name):
                message = f'"{name}" is not an extended resource; write one such as example.com/gpu'
                yield Problem(INVALID_EXTENDER, where, message)
            if name in managed:
                yield Problem(
                    DUPLICATE, where, f'"{name}" is listed twice in managedResources; remove one'
                )
            managed.add(name)


def _tls(extender: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Yield errors of client-go when it creates the extender's client, even without TLS."""
    tls = extender.get("tlsConfig") or {}
    authority = bool(tls.get("caFile") or tls.get("caData"))
    if tls.get("insecure") and authority:
        message = "insecure cannot be combined with a CA; remove insecure or the CA"
        yield Problem(INVALID_EXTENDER, (*path, "insecure"), message)
        return
    if tls.get("caData") and (error := unusable_authority(_data(tls, "caData"))):
        yield Problem(INVALID_EXTENDER, (*path, "caData"), error)
    # Data takes precedence over a file; half a pair is ignored.
    if tls.get("certData") and tls.get("keyData"):
        error = unusable_pair(_data(tls, "certData"), _data(tls, "keyData"))
        if error:
            field = "keyData" if error.startswith("keyData") else "certData"
            yield Problem(INVALID_EXTENDER, (*path, field), error)


def _data(tls: Mapping[str, Any], field: str) -> bytes:
    return base64.b64decode(tls[field])


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
