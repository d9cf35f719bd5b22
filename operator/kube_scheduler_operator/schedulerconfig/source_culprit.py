"""Which character that looks like another one breaks a YAML file."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .source_encoding import LINE_BREAK, position_of
from .source_tree import ParseError

_SPACES: Final = dict.fromkeys("\xa0\u1680\u2007\u202f\u205f\u3000", " ") | {
    chr(code): " " for code in range(0x2000, 0x200B)
}
_INVISIBLE: Final = dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\xad", "")
_QUOTES: Final = dict.fromkeys("\u201c\u201d\u201e\u201f\xab\xbb", '"') | dict.fromkeys(
    "\u2018\u2019\u201a\u201b", "'"
)
_OTHERS: Final = {"\uff1a": ": ", "\u2013": "-", "\u2014": "-", "\u2212": "-", "\t": "  "}
_MEANT: Final = _SPACES | _INVISIBLE | _QUOTES | _OTHERS
"""Character -> what YAML has for it."""
_NAMES: Final = {
    "\xa0": "a no-break space", "\t": "a tab", "\ufeff": "a byte order mark",
    "\uff1a": "a full-width colon",
    **dict.fromkeys("\u2013\u2014", "a dash"), "\u2212": "a minus sign",
    **dict.fromkeys(_QUOTES, "a typographic quote"),
}  # fmt: skip
_CORRECT: Final = {"  ": "spaces", " ": "a space"}
_ANY: Final = re.compile(f"[{re.escape(''.join(_MEANT))}]")


def named(character: str) -> str:
    """The name of a character that looks like another one, and how to correct it."""
    code = f"U+{ord(character):04X}"
    if character in _NAMES:
        name = _NAMES[character]
    else:
        name = "an invisible character" if character in _INVISIBLE else "a special space"
    if character in _INVISIBLE:
        return f"{name} ({code}); remove it"
    correct = _CORRECT.get(_MEANT[character], _MEANT[character].strip())
    return f"{name} ({code}); write {correct}"


def first_culprit(text: str) -> str:
    """The name of the first character in a text that looks like another one; empty: none."""
    found = _ANY.search(text)
    return named(found[0]) if found else ""


def explained(
    error: ParseError, text: str, parse: Callable[[str], ParseError | None]
) -> ParseError:
    """The error, or the one of the character that causes it.

    A character is the cause if the file, without it and others like it, is parsed further.
    """
    found = list(_ANY.finditer(text))
    for meant in dict.fromkeys(_MEANT[each[0]] for each in found):
        alike = [each for each in found if _MEANT[each[0]] == meant]
        kinds = {ord(each[0]): meant for each in alike}
        corrected = parse(text.translate(kinds))
        if corrected is not None and corrected.position.line <= error.position.line:
            continue
        lines = [0, *(each.end() for each in LINE_BREAK.finditer(text))]
        line = min(error.position.line, len(lines))
        at = lines[line - 1] + error.position.column - 1
        before = [each for each in alike if each.start() <= at]
        cause = before[-1] if before else alike[0]
        return ParseError(position_of(text, cause.start()), named(cause[0]))
    return error
