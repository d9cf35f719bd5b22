"""Environment variables that must not be copied into the API."""

from __future__ import annotations

import re
from typing import Final

_SECRET_NAME: Final = re.compile(
    r"passw|secret|token|credential|(access|api|private|auth)_?key$", re.IGNORECASE
)
_SECRET_VALUE: Final = re.compile(r"://[^/\s@]+@|-----BEGIN ")


def holds_credentials(name: str, value: str) -> bool:
    """Decide by the name and the value of a variable; a path is not a credential."""
    if _SECRET_VALUE.search(value):
        return True
    return bool(_SECRET_NAME.search(name)) and bool(value) and not value.startswith("/")
