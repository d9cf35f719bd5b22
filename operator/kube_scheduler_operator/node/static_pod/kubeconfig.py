"""The scheduler's own kubeconfig, which a scheduler reads only when it starts."""

from __future__ import annotations

import base64
import re
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ...base import files, x509
from .manifest import Probe

_SERVER: Final = re.compile(r"""\bserver["']?\s*:\s*["']?(https://[^\s"',}]+)""")
_CERTIFICATE: Final = re.compile(r"""\bclient-certificate-data["']?\s*:\s*["']?([\w+/=]+)""")


def fingerprint(path: Path) -> str:
    """Hash the file's content: 16 hex digits; empty if the file is missing or empty.

    The file has a private key; a truncated hash reveals nothing about it.
    """
    data = files.read(path)
    return sha256(data).hexdigest()[:16] if data else ""


def expires(path: Path) -> datetime | None:
    """Return the expiry of the embedded client certificate; None without exactly one.

    A certificate in a separate file is ignored: it can be renewed without the kubeconfig.
    """
    certificates = set(_CERTIFICATE.findall((files.read(path) or b"").decode(errors="replace")))
    if len(certificates) != 1:
        return None
    try:
        return x509.expires(base64.b64decode(certificates.pop()))
    except ValueError:
        return None


def api_server(path: Path) -> Probe | None:
    """Return the readiness probe of the API server in the file; None without exactly one.

    Read by pattern: the standard library has no YAML parser.
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
