"""Files that are neither YAML nor JSON, and how to get a configuration from them.

Their syntax errors as YAML are about places that are right in their own language. Templates of
Helm, Jinja and envsubst are among them, as long as they are not rendered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ....base.source.tree import Position

NOT_RENDERED: Final = "NotRendered"

RENDERED: Final = "kubectl scheduler validate -"
"""The command that checks what a template is rendered to."""
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
_TEMPLATES: Final = tuple(
    (re.compile(pattern), what, f"{fix} | {RENDERED}")
    for pattern, what, fix in (
        (
            r"\{\{-?\s*(?:\.|\$|/\*|(?:include|template|define|toYaml|tpl|with|range|if|else|end|"
            r"printf|default|required|quote|block)\b)|-\}\}",
            "a template of Helm or another Go template",
            "render it first: helm template CHART",
        ),
        (
            r"\{%|\{\{.*?\}\}|\{#.*?#\}",
            "a Jinja template",
            "render it first, for example: jinja2 FILE VALUES",
        ),
        (r"<%[=\-#]?", "an ERB template", "render it first: erb FILE"),
        (
            r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::?[-=?+][^}\n]*)?\}",
            "a template for envsubst",
            "substitute the variables first: envsubst < FILE",
        ),
    )
)
"""(the expressions of a template, its name, how to render it)."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    position: Position  # of what shows it; of a template its first expression
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


def template_of(text: str) -> ForeignFile | None:
    """Recognize the template that a text is; None: no known one.

    Expressions in comments do not count.
    """
    if "{{" not in text and "{%" not in text and "${" not in text and "<%" not in text:
        return None
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        for pattern, what, fix in _TEMPLATES:
            match = pattern.search(line)
            if match:
                position = Position(number, match.start() + 1)
                return ForeignFile(position, f"this is {what} that is not rendered", fix)
    return None
