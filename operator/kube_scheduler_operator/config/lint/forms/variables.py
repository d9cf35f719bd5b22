"""The variables of a container in the words of its command line, which the kubelet replaces.

Sources: k8s.io/kubernetes v1.35.4, third_party/forked/golang/expansion/expand.go and
pkg/kubelet/kubelet_pods.go, `makeEnvironmentVariables`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...language.command_line import flag_text
from .document_fields import objects, text

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
LONGEST: Final = 128 * 1024
"""The longest argument or variable of a program on Linux, in bytes (MAX_ARG_STRLEN, execve(2))."""
_OF_SERVICES: Final = ("_SERVICE_HOST", "_SERVICE_PORT", "_PORT")
"""What the names of variables have that the kubelet adds for each Service."""


@dataclass(frozen=True, slots=True)
class Variables:
    values: Mapping[str, str | None]  # None: only the cluster has the value
    has_others: bool = False  # whether ConfigMaps or Secrets add variables of unknown names

    def expanded(self, word: str) -> str:
        """Return a word with the values in it; a variable without a known value stays as $(NAME).

        No program starts with a longer word than LONGEST: the rest of one is cut off.
        """
        parts: list[str] = []
        length = end = 0
        for match in _REFERENCE.finditer(word):
            name = match[1]
            value = "$" if name is None else self.values.get(name)
            parts += (word[end : match.start()], match[0] if value is None else value)
            length += len(parts[-2]) + len(parts[-1])
            end = match.end()
            if length > LONGEST:
                break
        return "".join((*parts, word[end:]))[: LONGEST + 1]

    def is_unknown(self, word: str) -> bool:
        """Report whether only the cluster knows the value of a variable in an expanded word."""
        return any(self._is_elsewhere(name) for name in _references(word))

    def is_unresolved(self, word: str) -> bool:
        """Report whether an expanded word has a variable without a value in the file."""
        return self.is_unknown(word) or bool(self.undefined(word))

    def undefined(self, word: str) -> str:
        """Return the first variable of an expanded word that the container does not have, or ""."""
        return next(
            (
                name
                for name in _references(word)
                if name not in self.values and not self._is_elsewhere(name)
            ),
            "",
        )

    def _is_elsewhere(self, name: str) -> bool:
        if name in self.values:
            return self.values[name] is None
        return self.has_others or any(part in name for part in _OF_SERVICES)


def variables_of(container: Mapping[str, Any]) -> Variables:
    """Return the variables of a container, the last one of a name; each may use those before it."""
    values: dict[str, str | None] = {}
    has_others = bool(container.get("envFrom"))
    for _, variable in objects(container.get("env")):
        name = text(variable.get("name"))
        if not name:
            continue
        if variable.get("valueFrom") is not None:
            values[name] = None
            continue
        before = Variables(values, has_others)
        value = before.expanded(flag_text(variable.get("value")) or "")
        values[name] = None if before.is_unknown(value) or len(value) > LONGEST else value
    return Variables(values, has_others)


def _references(word: str) -> Iterator[str]:
    return (match[1] for match in _REFERENCE.finditer(word) if match[1])
