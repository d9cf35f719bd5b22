"""Texts of strangers in fields that Kubernetes does not validate, and what is harmless."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

FORGED: Final = ("error: forged", "note: forged", "FORGED 1/1", "E0101 00:00:00.000000 1 forged")
"""Lines as this program writes them."""

TEXTS: Final = {
    "title": "\x1b]0;title\x07",
    "colour": "\x1b[2J\x1b[31m",
    "one-byte-csi": "\x9b31m\x85",
    "newline": "x" + "".join(f"\n{line}" for line in FORGED) + "\n",
    "return": "\r" + "\r".join(FORGED),
    "line-separators": "\u2028" + "\u2029".join(FORGED),
    "bidi": "\u202egnp.\u2066x\u2069\u200f\u061c",
    "invisible": "a\u200b\ufeff\u00ad\u3164\U000e0041\ufe0f",
    "tab-and-delete": "a\tb\x7f\x08",
    "nul": "a\x00b",
    "surrogate": "a\ud800b",
    "long": "\x1b" * 100_000,
}
"""What Kubernetes stores in fields that it does not validate; a lone surrogate is in files only."""

HOSTILE: Final = "".join(text for name, text in TEXTS.items() if name != "long")
"""All of them in one text."""

STORED: Final = HOSTILE.replace("\ud800", "\ufffd")
"""The same as an API server stores it."""

_SHOWN_CATEGORIES: Final = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_INVISIBLE: Final = re.compile("[\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f]")


def expect_harmless(text: str, *, indented: bool = True) -> None:
    """No character acts or is invisible, and no line is forged, not even an indented one.

    In YAML, an indented line continues a text.
    """
    acting = {
        character
        for character in set(text) - {"\n"}
        if unicodedata.category(character) in _SHOWN_CATEGORIES or _INVISIBLE.match(character)
    }
    assert not acting, sorted(map(ascii, acting))
    forged = [
        line for line in text.split("\n") if (line.strip() if indented else line).startswith(FORGED)
    ]
    assert not forged, forged


def poisoned(value: Any, *kept: str) -> Any:
    """The object with HOSTILE at the end of every text, apart from the fields that are `kept`."""
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, dict):
        return {key: item if key in kept else poisoned(item, *kept) for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item, *kept) for item in value]
    return value
