r"""Text that others wrote, made safe to show: one line, without invisible or control characters.

Kubernetes validates few texts: neither `spec.schedulerName` of a Pod, nor most of an Event, nor the
messages of statuses and webhooks. An escape sequence in one changes a terminal, a line break
forges a line of this program, and a bidirectional control reorders what is read.

Text is escaped where it enters (`foreign`), and again where it leaves (`visible`). Comparisons use
the text as it was read: two texts that look alike here remain different.

A character is escaped as `\n`, `\r`, `\t`, `\u001b` or `\U000e0041`: YAML reads all of them in
double quotes, JSON those of four digits. A backslash is not escaped: paths, patterns and quoted
texts have them, and doubled they could not be copied. The original may therefore contain the six
characters `\u001b`; either way, the result is harmless. A second run changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

_PLANES: Final = "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0xE0000, 0x10000)
)
_CHARACTERS: Final = (
    "\x00-\x1f\x7f-\x9f"  # controls (Cc)
    # Format characters (Cf: bidirectional controls, zero width, soft hyphen, tags) and what Unicode
    # calls default ignorable (fillers of Hangul, variation selectors): invisible, and some reorder.
    "\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u2028\u2029"  # line and paragraph separator, which end lines as well
    "\ud800-\udfff"  # halves of surrogate pairs, which UTF-8 cannot encode
    "\ue000-\uf8ff\U000f0000-\U0010ffff"  # private use: every font shows something else
    f"\ufdd0-\ufdef\ufffe\uffff{_PLANES}"  # never characters
)
"""The characters that are escaped.

The list is fixed, so that the result does not depend on the Unicode version of an interpreter.
Other unassigned characters stay: they are visible, as boxes, and may be new emoji. So do other
spaces and combining marks, which languages need.
"""

_SYMBOL: Final = "\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_LETTER: Final = "\u0620-\u064a\u066e-\u06d3\u0900-\u0dff\u1000-\u109f\u1780-\u17b3"
"""Letters of scripts whose words contain joiners: Arabic, those of India, Burmese, Khmer."""

_NOT_NEEDED: Final = (
    f"(?<![{_SYMBOL}]\ufe0f)"  # the form of an emoji
    f"(?!(?<=[{_SYMBOL}\ufe0f]\u200d)[{_SYMBOL}])"  # a sequence of emoji
    f"(?!(?<=[{_LETTER}][\u200c\u200d])[{_LETTER}])"
)
"""Follows a character that no emoji or word needs. Names in Kubernetes contain none of them."""

_SHORT: Final[Mapping[str, str]] = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CUT_OFF: Final = re.compile(r"\\(?:u[0-9a-f]{0,3}|U[0-9a-f]{0,7})?\Z")
"""The beginning of an escaped character."""

_ELLIPSIS: Final = "…"


def foreign(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters; `limits.py` has the limits."""
    shown = one_line(text[: limit + 1])
    if len(shown) <= limit:
        return shown
    return _CUT_OFF.sub("", shown[: limit - 1]) + _ELLIPSIS


def one_line(text: str, escape: Callable[[str], str] | None = None) -> str:
    """Escape line breaks and invisible characters, with `escape` if it is given."""
    if _is_plain(text):
        return text
    if escape is None:
        return _hidden().sub(_escaped, text)
    return _hidden().sub(lambda match: escape(match[0]), text)


def foreign_lines(lines: Iterable[str], limit: int) -> str:
    """Return several texts, each as one line of at most `limit` characters."""
    return "\n".join(foreign(line, limit) for line in lines)


def visible(text: str) -> str:
    """Escape invisible characters, but not the line breaks of our own text."""
    return text if _has_plain_lines(text) else _hidden(in_lines=True).sub(_escaped, text)


def is_visible(text: str) -> bool:
    """Return whether the text consists of lines of visible characters."""
    return _has_plain_lines(text) or _hidden(in_lines=True).search(text) is None


def json_text(
    value: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None
) -> str:
    """Encode JSON, with invisible characters escaped and other alphabets readable."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=default)
    return text if _has_plain_lines(text) else _hidden(in_lines=True).sub(_in_json, text)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _has_plain_lines(text: str) -> bool:
    return _is_plain(text.replace("\n", ""))


@cache
def _hidden(*, in_lines: bool = False) -> re.Pattern[str]:
    """Match what is escaped. Made when a text is not plain: that takes milliseconds."""
    own_break = "(?!\n)" if in_lines else ""
    return re.compile(f"{own_break}[{_CHARACTERS}]{_NOT_NEEDED}")


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _SHORT.get(character) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def _in_json(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
