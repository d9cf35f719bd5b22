"""Files of nodes as cloud-init and Ignition encode them.

Sources: cloud-init 25, module write_files (`encoding`); Ignition's specification 3.5 (`source`, a
URL of RFC 2397, and `compression`).
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote_to_bytes

LARGEST: Final = 1 << 20
"""Bytes of a compressed file that are read: a ConfigMap of Kubernetes cannot be larger."""
_URL: Final = "data:"
_BASE64: Final = ("b64", "base64")
_GZIP: Final = ("gz", "gzip")


def decoded(content: str, siblings: Mapping[str, Any]) -> str:
    """The text that is encoded in a field; the field itself if it is not encoded.

    Args:
        content: the field.
        siblings: the map that has it, with the fields `encoding` and `compression`.
    """
    encodings = str(siblings.get("encoding") or "").lower().split("+")
    if content.startswith(_URL):
        head, _, rest = content.partition(",")
        encodings = [str(siblings.get("compression") or "")]
        if head.endswith(";base64"):
            encodings.append("base64")
        data = unquote_to_bytes(rest)
    else:
        data = content.encode()
    try:
        for encoding in reversed(encodings):
            if encoding in _BASE64:
                data = base64.b64decode(data)
            elif encoding in _GZIP:
                data = zlib.decompressobj(wbits=31).decompress(data, LARGEST)
        return data.decode()
    except (binascii.Error, ValueError, zlib.error):
        return content
