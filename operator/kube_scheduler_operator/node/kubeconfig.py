"""The scheduler's own kubeconfig on this node, which a scheduler reads only when it starts."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from . import files

if TYPE_CHECKING:
    from pathlib import Path


def fingerprint(path: Path) -> str:
    """What tells one content of the file from another, in 16 hex digits; empty if there is none.

    It holds a private key, and a part of a hash says nothing about that.
    """
    data = files.read(path)
    return sha256(data).hexdigest()[:16] if data else ""
