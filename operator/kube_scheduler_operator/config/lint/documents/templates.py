"""Templates that are not rendered: of Helm, Jinja and envsubst."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ....base.source.tree import Position

NOT_RENDERED: Final = "NotRendered"

RENDERED: Final = "kubectl scheduler validate -"
"""The command that checks what a template is rendered to."""
_HELM: Final = re.compile(
    r"\{\{-?\s*(?:\.|\$|/\*|(?:include|template|define|toYaml|tpl|with|range|if|else|end|printf|"
    r"default|required|quote|block)\b)|-\}\}"
)
_JINJA: Final = re.compile(r"\{%|\{\{.*?\}\}|\{#.*?#\}")
_ENVSUBST: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::?[-=?+][^}\n]*)?\}")
_ERB: Final = re.compile(r"<%[=\-#]?")


@dataclass(frozen=True, slots=True)
class UnrenderedTemplate:
    position: Position  # of the first expression
    message: str  # what it is
    fix: str  # how to render it


_KINDS: Final = (
    (
        _HELM,
        "a template of Helm or another Go template",
        f"render it first: helm template CHART | {RENDERED}",
    ),
    (
        _JINJA,
        "a Jinja template",
        f"render it first, for example: jinja2 FILE VALUES | {RENDERED}",
    ),
    (_ERB, "an ERB template", f"render it first: erb FILE | {RENDERED}"),
    (
        _ENVSUBST,
        "a template for envsubst",
        f"substitute the variables first: envsubst < FILE | {RENDERED}",
    ),
)


def template_of(text: str) -> UnrenderedTemplate | None:
    """Recognize the template that a text is; None: no known one.

    Expressions in comments do not count.
    """
    if "{{" not in text and "{%" not in text and "${" not in text and "<%" not in text:
        return None
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        for pattern, what, fix in _KINDS:
            match = pattern.search(line)
            if match:
                position = Position(number, match.start() + 1)
                return UnrenderedTemplate(position, f"this is {what} that is not rendered", fix)
    return None
