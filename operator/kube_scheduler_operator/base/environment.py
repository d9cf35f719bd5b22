"""Environment variables that must not be copied into the API."""

from __future__ import annotations

import re
from typing import Final

_SECRET_NAME: Final = re.compile(
    r"passw|secret|token|credential|(access|api|private|auth)_?key$", re.IGNORECASE
)
SECRET_FORM: Final = re.compile(
    r"://[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY-----|LS0tLS1CRUdJTi(?!BDRVJUSUZJQ0FUR)"
    r"|\beyJ[\w-]+\.eyJ[\w-]+\."
)
"""Matches a URL with a user, a private key, in base64 as well, and a JSON Web Token."""
_PEM: Final = "-----BEGIN "


def holds_credentials(name: str, value: str) -> bool:
    """Decide by the name and the value of a variable; a path is not a credential."""
    if SECRET_FORM.search(value) or _PEM in value:
        return True
    return bool(_SECRET_NAME.search(name)) and bool(value) and not value.startswith("/")
