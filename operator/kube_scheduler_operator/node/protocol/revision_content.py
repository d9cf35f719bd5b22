"""The content of a revision, which the operator makes and installers verify and complete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

PLACEHOLDER: Final = "REVISION"
"""Placeholder for the revision number in a pod that is not yet part of a revision."""


def digest(data: bytes) -> str:
    """Return the SHA-256: 64 hex digits."""
    return sha256(data).hexdigest()


def content_hash(parts: Mapping[str, Mapping[str, str]]) -> str:
    """Hash a revision's ConfigMap names, keys and texts: its identity, 64 hex digits."""
    canonical = json.dumps(
        {name: dict(data) for name, data in parts.items()}, sort_keys=True, separators=(",", ":")
    )
    return digest(canonical.encode())
