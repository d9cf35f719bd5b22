"""Files that are neither YAML nor JSON, and how to get a configuration from them.

Their syntax errors as YAML are about places that are right in their own language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ....base.source.tree import Position

_COMPRESSED: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"))
"""(first bytes, the program that decompresses the file)."""
_LANGUAGES: Final = tuple(
    (re.compile(pattern, re.MULTILINE), what, fix)
    for pattern, what, fix in (
        (
            r"\A\s*<(?:!DOCTYPE|html|\?xml|[A-Za-z]+>)",
            "an HTML or XML page, perhaps the answer to a failed download",
            "download the file itself: curl -fLO URL",
        ),
        (
            r"^(?:diff --git |@@ -\d)",
            "a diff",
            "apply it first: patch < FILE",
        ),
        (
            r'^[ \t]*(?:resource|data|module|variable|provider)[ \t]+"[^"\n]+"[^\n]*\{[ \t]*$',
            "Terraform",
            "copy the text of the configuration to a file of its own, or check what terraform "
            "applied: kubectl get configmap NAME -o yaml",
        ),
        (
            r"^[ \t]*[^#\s][^\n]*<<[-~]?[ \t]*[\"']?[A-Za-z_]\w*[\"']?",
            "a shell script with a here-document",
            "copy the text between the command and the end mark to a file of its own",
        ),
        (
            r"\A(?:\s*#[^\n]*\n)*\s*(?:\[[\w.\"-]+\][ \t]*$|[\w.-]+[ \t]*=[ \t]*[\"'\[\d])",
            "TOML",
            "write it as YAML, with a colon and a space after each key",
        ),
    )
)
"""(what shows the language, its name, how to get YAML)."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    position: Position  # of what shows it
    message: str  # what it is
    fix: str  # how to get a file that can be checked


def foreign_file(data: bytes) -> ForeignFile | None:
    """Recognize the language of a file that is neither YAML nor JSON; None: unknown."""
    for mark, program in _COMPRESSED:
        if data.startswith(mark):
            fix = f"decompress it first: {program} -d FILE"
            return ForeignFile(Position(1, 1), f"this is compressed with {program}", fix)
    text = data.decode("utf-8", "replace")
    for pattern, what, fix in _LANGUAGES:
        if (match := pattern.search(text)) is not None:
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            return ForeignFile(
                Position(text.count("\n", 0, start) + 1, 1), f"this is {what}, not YAML", fix
            )
    return None
