"""The expiry of a certificate, with the standard library alone.

Python's ssl only decodes certificates of connections and of certificate authorities. The expiry
needs little DER (X.690, RFC 5280 section 4.1): `validity` is a pair of times in the first field of
the certificate.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

_PEM: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----"
)
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0  # absent in certificates of version 1
_FORMATS: Final = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}  # UTCTime, GeneralizedTime
_VALIDITY: Final = 3  # after serial number, signature algorithm and issuer


def expires(pem: bytes) -> datetime | None:
    """Return the expiry of the first certificate in `pem`, UTC; None if it cannot be read."""
    match = _PEM.search(pem)
    if match is None:
        return None
    try:
        (certificate,) = _fields(base64.b64decode(match[1]))
        to_be_signed = next(_fields(_content(certificate)))
        fields = [field for field in _fields(_content(to_be_signed)) if field[0] != _VERSION]
        _, (tag, text) = _fields(_content(fields[_VALIDITY]))
        moment = datetime.strptime(text.decode("ascii"), _FORMATS[tag]).replace(tzinfo=UTC)
    except (ValueError, LookupError, StopIteration, binascii.Error):
        return None
    # In RFC 5280 two-digit years from 50 on belong to the twentieth century, in Python from 69 on.
    return moment.replace(year=moment.year - 100) if tag == 0x17 and moment.year > 2049 else moment


def _content(field: tuple[int, bytes]) -> bytes:
    tag, content = field
    if tag != _SEQUENCE:
        raise ValueError(f"tag {tag:#x} instead of a SEQUENCE")
    return content


def _fields(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (tag, content) of every field."""
    position = 0
    while position < len(der):
        tag, size = der[position], der[position + 1]
        position += 2
        if size & 0x80:
            more = size & 0x7F
            size = int.from_bytes(der[position : position + more], "big")
            position += more
        if position + size > len(der):
            raise ValueError("truncated data")
        yield tag, der[position : position + size]
        position += size
