r"""Arguments that kube-scheduler does not decode and cannot print when it starts.

With -v=2 or more, kube-scheduler encodes the completed configuration as JSON, reads that as YAML,
and exits if it cannot (cmd/kube-scheduler/app/options, LogOrWriteConfig). Decoded values are valid
YAML, apart from control characters. Arguments of plugins without a type are printed as they were
written, and not all JSON is YAML: `\/`, `\ud83d`, bytes that are not UTF-8, and keys of 1,023
characters are not.
"""

from __future__ import annotations

import json
import re
from typing import Final

from ....base.findings import Path
from ....base.objects import entries, mapping
from ....base.source.reader import Document, read
from ..schema import args_struct
from .in_tree_plugins import PLUGINS
from .profile_lists import configured_plugins

_TEXT_OR_SPACE: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[ \t\r\n]+', re.DOTALL)
_ESCAPED: Final = {
    b"<": rb"\u003c", b">": rb"\u003e", b"&": rb"\u0026",
    "\u2028".encode(): rb"\u2028", "\u2029".encode(): rb"\u2029",
}  # fmt: skip
"""Characters that Go's JSON encoder escapes."""


def unprintable_arguments(document: Document, minor: int) -> list[tuple[Path, str]]:
    """Return (path, error) of each value that kube-scheduler 1.`minor` cannot print."""
    problems: list[tuple[Path, str]] = []
    for number, profile in enumerate(entries(mapping(document.root.data).get("profiles"))):
        for path, entry in configured_plugins(mapping(profile)):
            name, where = entry.get("name"), ("profiles", number, *path, "args")
            if not isinstance(name, str) or name not in PLUGINS or args_struct(name, minor):
                continue
            text = document.texts.get(where)
            if text is None:
                value = entry.get("args")
                text = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
            _, error = read(b'--- {"args":' + _compact(text) + b"}")
            if error is not None:
                problems.append((where, error.message))
    return problems


def _compact(text: bytes) -> bytes:
    """Format JSON as Go's encoder writes a json.RawMessage."""
    text = _TEXT_OR_SPACE.sub(lambda part: part[0] if part[0].startswith(b'"') else b"", text)
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text
