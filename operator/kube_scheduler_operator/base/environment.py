"""Environment variables that must not be copied into the API, or set by authors of objects."""

from __future__ import annotations

import re
from typing import Final

CODE_PREFIXES: Final = (
    "PYTHON", "LD_", "GLIBC_", "GCONV_", "MALLOC_", "PERL5", "RUBY", "DOTNET_", "CORECLR_",
)  # fmt: skip
CODE_NAMES: Final = frozenset({
    "PATH", "BASH_ENV", "CLASSPATH", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS",
})  # fmt: skip
_TRUST: Final = ("KUBERNETES_", "KUBE", "SSL", "OPENSSL")
_PLACES: Final = frozenset({"HOME", "TMPDIR", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN"})

_SECRET_NAME: Final = re.compile(
    r"passw|secret|token|credential|(access|api|private|auth)_?key$", re.IGNORECASE
)
SECRET_FORM: Final = re.compile(
    r"://[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY-----|LS0tLS1CRUdJTi(?!BDRVJUSUZJQ0FUR)"
    r"|\beyJ[\w-]+\.eyJ[\w-]+\."
)
"""Matches a URL with a user, a private key, in base64 as well, and a JSON Web Token."""
_PEM: Final = "-----BEGIN "


def chooses_code(name: str) -> bool:
    """Whether a variable, or all with this prefix, make a program run other code than its own."""
    upper = name.upper()
    return upper.startswith(CODE_PREFIXES) or upper in CODE_NAMES


def is_of_the_process(name: str) -> bool:
    """Whether a variable chooses the code of a process, its API server or whom it trusts."""
    upper = name.upper()
    return (
        chooses_code(name)
        or upper.startswith(_TRUST)
        or upper.endswith("_PROXY")
        or upper in _PLACES
    )


def holds_credentials(name: str, value: str) -> bool:
    """Decide by the name and the value of a variable; a path is not a credential."""
    if SECRET_FORM.search(value) or _PEM in value:
        return True
    return bool(_SECRET_NAME.search(name)) and bool(value) and not value.startswith("/")
