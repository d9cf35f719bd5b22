"""Flags as forms write them: words of a command line, maps, lists of pairs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ....base.findings import Path
from ....base.objects import entries, mapping
from ...language.command_line import flag_text, normalized_name
from ...language.flags import BOOLEANS
from .form import CommandLineFlag

_LEVEL: Final = re.compile(r"-v\d+")
_OPERATOR: Final = re.compile(r"[;|&<>()]+")
DASHES: Final = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""The hyphen, and what word processors make of one or two."""


def of_words(
    words: Sequence[tuple[str, Path]], booleans: Collection[str] = BOOLEANS
) -> Iterator[CommandLineFlag]:
    """Yield the flags of a command line; other words, such as the program's name, are ignored.

    What `word_problems` reports is read as intended, so that the rest can be checked.

    Args:
        words: each with its path.
        booleans: the flags that take no value from the next word.
    """
    pending: CommandLineFlag | None = None
    parts = ((part, path) for word, path in words for part in flags_in(word))
    for word, path in parts:
        if pending is not None:
            yield CommandLineFlag(pending.name, word, pending.path)
            pending = None
        elif word.startswith("-") and word.strip("-"):
            name, equals, value = word.lstrip(DASHES).partition("=")
            if name.split()[1:]:  # the flag and its value in one word, without =
                name, rest = name.split(maxsplit=1)
                equals, value = "=", f"{rest}{equals}{value}"
            if _LEVEL.fullmatch(word):
                name, equals, value = "v", "=", word[2:]
            elif name == "h":
                name = "help"
            name = normalized_name(name.strip())
            if equals:
                yield CommandLineFlag(name, value, path)
            elif name in booleans:
                yield CommandLineFlag(name, "true", path)
            else:
                pending = CommandLineFlag(name, "", path)


def with_unknown_values(
    words: Sequence[tuple[str, Path]],
    is_unknown: Callable[[str], bool],
    booleans: Collection[str] = BOOLEANS,
) -> tuple[CommandLineFlag, ...]:
    """Return the flags in words; `is_unknown` recognizes values that the document does not have."""
    flags = of_words(words, booleans)
    return tuple(replace(flag, is_known=not is_unknown(flag.value)) for flag in flags)


def flags_in(word: str) -> list[str]:
    """Split a word into the flags that it contains, separated by spaces."""
    return re.split(r"\s+(?=--)", word) if word.startswith("-") else [word]


def of_pairs(value: Any, path: Path) -> Iterator[CommandLineFlag]:
    """Yield flags of a list of `NAME=VALUE`, with or without dashes, or of a single string."""
    pairs = value if isinstance(value, list) else [value]
    for index, entry in enumerate(pairs):
        if isinstance(entry, str):
            at = (*path, index) if isinstance(value, list) else path
            name, equals, rest = entry.lstrip("-").partition("=")
            if name:
                yield CommandLineFlag(normalized_name(name), rest if equals else "true", at)


def of_map(value: Any, path: Path) -> Iterator[CommandLineFlag]:
    """Yield flags of a map NAME -> VALUE; a list as value repeats the flag."""
    for key, setting in mapping(value).items():
        name, at = normalized_name(str(key).lstrip("-")), (*path, key)
        if isinstance(setting, Mapping):  # kops and Gardener write gates as a map
            gates = ",".join(f"{gate}={flag_text(on)}" for gate, on in setting.items())
            yield CommandLineFlag(name, gates, at)
            continue
        is_list = isinstance(setting, list)
        for index, item in enumerate(setting if is_list else [setting]):
            text = flag_text(item)
            if text is not None:
                yield CommandLineFlag(name, text, (*at, index) if is_list else at)


def of_names(value: Any, path: Path, key: str = "name") -> Iterator[CommandLineFlag]:
    """Yield flags of a list of {name: NAME, value: VALUE}."""
    for index, entry in enumerate(map(mapping, entries(value))):
        name, text = flag_text(entry.get(key)), flag_text(entry.get("value"))
        if name:
            flag = normalized_name(name.lstrip("-"))
            yield CommandLineFlag(flag, text or "", (*path, index, "value" if text else key))


def split(text: str) -> list[str]:
    """Split a shell's text into words and operators; at spaces if quotes are unbalanced.

    A line break is the operator `;`.
    """
    lexer = shlex.shlex(
        text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True
    )
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def first_command(words: Sequence[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Return the words of `split` before the first operator, without what it redirects."""
    end = next((at for at, (word, _) in enumerate(words) if _OPERATOR.fullmatch(word)), len(words))
    redirected = end < len(words) and {"<", ">"} & set(words[end][0])
    if redirected and end and words[end - 1][0].isdigit():
        end -= 1
    return list(words[:end])
