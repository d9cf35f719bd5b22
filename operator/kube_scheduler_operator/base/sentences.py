"""Several sentences in one line of text, from which each can be read again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_BETWEEN: Final = "; "


def in_one_line(sentences: Iterable[str]) -> str:
    """Join sentences; a semicolon within one, as between a Pod's reasons, becomes a comma."""
    return _BETWEEN.join(sentence.replace(_BETWEEN, ", ") for sentence in sentences if sentence)


def from_one_line(text: str) -> list[str]:
    return text.split(_BETWEEN) if text else []
