"""The scheduler's own kubeconfig, which a scheduler reads only when it starts."""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ...base import files, x509
from .manifest import Probe

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

_SERVER: Final = re.compile(r"""\bserver["']?\s*:\s*["']?(https://[^\s"',}]+)""")
_CERTIFICATE: Final = re.compile(r"""\bclient-certificate-data["']?\s*:\s*["']?([\w+/=]+)""")


def fingerprint(path: Path) -> str:
    """What tells one content of the file from another, in 16 hex digits; empty if there is none.

    It holds a private key, and a part of a hash says nothing about that.
    """
    data = files.read(path)
    return sha256(data).hexdigest()[:16] if data else ""


def expires(path: Path) -> datetime | None:
    """When the client certificate in it expires; None if it has none, or several.

    One that it only names is not looked for: what is in a file beside it can be renewed alone.
    """
    found = set(_CERTIFICATE.findall((files.read(path) or b"").decode(errors="replace")))
    if len(found) != 1:
        return None
    try:
        return x509.expires(base64.b64decode(found.pop()))
    except ValueError:
        return None


def api_server(path: Path) -> Probe | None:
    """How to ask the API server that it names whether it is ready.

    Found without parsing, for which this program has no library. None: it names none, or several.
    """
    servers = set(_SERVER.findall((files.read(path) or b"").decode(errors="replace")))
    if len(servers) != 1:
        return None
    try:
        parts = urlsplit(servers.pop())
        port = parts.port or 443
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return Probe(parts.hostname, port, f"{parts.path.rstrip('/')}/readyz")
