"""Causes of YAML errors: a character that looks like another one, or a frequent mistake.

A cause is only named if the file can be read further without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from .encoding import LINE_BREAK, position_of
from .tree import ParseError, Position

_SPACES: Final = dict.fromkeys("\xa0\u1680\u2007\u202f\u205f\u3000", " ") | {
    chr(code): " " for code in range(0x2000, 0x200B)
}
_INVISIBLE: Final = dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\xad", "")
_QUOTES: Final = dict.fromkeys("\u201c\u201d\u201e\u201f\xab\xbb", '"') | dict.fromkeys(
    "\u2018\u2019\u201a\u201b", "'"
)
_OTHERS: Final = {"\uff1a": ": ", "\u2013": "-", "\u2014": "-", "\u2212": "-", "\t": "  "}
_MEANT: Final = _SPACES | _INVISIBLE | _QUOTES | _OTHERS
"""Character -> its replacement in YAML."""
_NAMES: Final = {
    "\xa0": "a no-break space", "\t": "a tab", "\ufeff": "a byte order mark",
    "\uff1a": "a full-width colon",
    **dict.fromkeys("\u2013\u2014", "a dash"), "\u2212": "a minus sign",
    **dict.fromkeys(_QUOTES, "a typographic quote"),
}  # fmt: skip
_CORRECT: Final = {"  ": "spaces", " ": "a space"}
_ANY: Final = re.compile(f"[{re.escape(''.join(_MEANT))}]")

TEMPLATE: Final = "a template that is not rendered; render it first, for example with helm template"
_KEY: Final = r"^(?P<key>[ ]*(?:-[ ]+)*[A-Za-z][\w.-]*)"
_SLIPS: Final = tuple(
    (re.compile(pattern, re.MULTILINE), correct, message)
    for pattern, correct, message in (
        (r"^(?:<{7}|={7}|>{7})(?: .*)?$", "",
         "a conflict marker; keep one of the versions and remove the markers"),
        (r"^[ ]*\{\{.*\}\}[ ]*$", "", TEMPLATE),
        (r"\{\{.*?\}\}", "0", TEMPLATE),
        (r"^[ ]*```.*$", "", "a Markdown code fence; remove this line"),
        (r"^(?!-?$|---$)[ ]*[-\u2013\u2014\u2212]+[ ]*$", "---",
         "dashes that do not separate documents; write --- at the beginning of the line"),
        (r"^---[ ]+(?=\w+:)", "---\n", "text follows --- on the same line; begin a new line"),
        (f"{_KEY}[ ]*=[ ]*", r"\g<key>: ", "an equals sign after a key; write a colon and a space"),
        (f"{_KEY}:(?=[^\\s/:])", r"\g<key>: ", "a colon without a space after it; add the space"),
    )
)  # fmt: skip
"""(pattern, its correction, the name of the mistake and how to correct it)."""

_STRUCTURAL: Final = (
    "a second colon", "a line without a colon", "expected ", "a value cannot begin with",
)  # fmt: skip
"""Prefixes of the messages that such a mistake causes; others name the cause themselves."""

_Parse = Callable[[str], ParseError | None]


def named(character: str) -> str:
    """Name a character that looks like another one, and its correction."""
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
    """Name the first character in a text that looks like another one; empty if none does."""
    match = _ANY.search(text)
    return named(match[0]) if match else ""


def explained(error: ParseError, text: str, parse: _Parse) -> ParseError:
    """Return the error of the cause, or the error itself.

    `parse` returns the error of a text; None if it can be read.
    """
    cause = _of_a_character(error, text, parse)
    if cause is None and error.message.startswith(_STRUCTURAL):
        cause = _of_a_slip(error, text, parse) or _of_indentation(error, text, parse)
    return cause or error


def _of_a_character(error: ParseError, text: str, parse: _Parse) -> ParseError | None:
    """Find a character without which, and without others like it, the file is parsed further."""
    matches = list(_ANY.finditer(text))
    for meant in dict.fromkeys(_MEANT[match[0]] for match in matches):
        alike = [match for match in matches if _MEANT[match[0]] == meant]
        kinds = {ord(match[0]): meant for match in alike}
        if _is_further(parse(text.translate(kinds)), error):
            cause = _nearest(alike, text, error)
            return ParseError(position_of(text, cause.start()), named(cause[0]))
    return None


def _of_a_slip(error: ParseError, text: str, parse: _Parse) -> ParseError | None:
    for pattern, correct, message in _SLIPS:
        matches = list(pattern.finditer(text))
        if matches and _is_further(parse(pattern.sub(correct, text)), error):
            return ParseError(position_of(text, _nearest(matches, text, error).start()), message)
    return None


def _of_indentation(error: ParseError, text: str, parse: _Parse) -> ParseError | None:
    """Find a line that fits if it is indented like the one above it."""
    lines = text.splitlines(keepends=True)
    number = min(error.position.line, len(lines)) - 1
    above = next((at for at in range(number - 1, -1, -1) if lines[at].strip()), None)
    if number < 1 or above is None:
        return None
    both = (lines[number], lines[above])
    depths = [len(line) - len(line.lstrip(" ")) for line in both]
    if depths[0] == depths[1]:
        return None
    aligned = " " * depths[1] + lines[number].lstrip(" ")
    corrected = "".join((*lines[:number], aligned, *lines[number + 1 :]))
    if not _is_further(parse(corrected), error):
        return None
    message = (
        f"this line is indented by {depths[0]} and line {above + 1} by {depths[1]}; indent both "
        "equally"
    )
    return ParseError(Position(number + 1, depths[0] + 1), message)


def _is_further(corrected: ParseError | None, error: ParseError) -> bool:
    """Return whether a corrected text is read beyond the line of the error."""
    return corrected is None or corrected.position.line > error.position.line


def _nearest(matches: Sequence[re.Match[str]], text: str, error: ParseError) -> re.Match[str]:
    """Return the last match before the error, or the first one."""
    lines = [0, *(match.end() for match in LINE_BREAK.finditer(text))]
    line = min(error.position.line, len(lines))
    at = lines[line - 1] + error.position.column - 1
    before = [match for match in matches if match.start() <= at]
    return before[-1] if before else matches[0]
