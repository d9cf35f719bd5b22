"""Flags as forms write them: words of a command line, maps, lists of pairs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...base.findings import Path
from ...base.objects import mapping
from ...schedulerconfig.command_line import flag_text, normalized_name
from ...schedulerconfig.flags import BOOLEANS
from .form import CommandLineFlag


def of_words(words: Sequence[tuple[str, Path]]) -> Iterator[CommandLineFlag]:
    """Flags of a command line; other words, such as the program's name, are ignored."""
    pending: CommandLineFlag | None = None
    for word, path in words:
        if pending is not None:
            yield CommandLineFlag(pending.name, word, pending.path)
            pending = None
        elif word.startswith("-") and word.strip("-"):
            name, equals, value = word.lstrip("-").partition("=")
            name = normalized_name(name.strip())
            if equals:
                yield CommandLineFlag(name, value, path)
            elif name in BOOLEANS:
                yield CommandLineFlag(name, "true", path)
            else:
                pending = CommandLineFlag(name, "", path)
    if pending is not None:
        yield pending


def of_pairs(value: Any, path: Path) -> Iterator[CommandLineFlag]:
    """Flags of a list of `NAME=VALUE`, with or without dashes; a single text is a list of one."""
    entries = value if isinstance(value, list) else [value]
    for index, entry in enumerate(entries):
        if isinstance(entry, str):
            at = (*path, index) if isinstance(value, list) else path
            name, equals, rest = entry.lstrip("-").partition("=")
            if name:
                yield CommandLineFlag(normalized_name(name), rest if equals else "true", at)


def of_map(value: Any, path: Path) -> Iterator[CommandLineFlag]:
    """Flags of a map NAME -> VALUE; a list as value repeats the flag."""
    for key, each in mapping(value).items():
        name, at = normalized_name(str(key).lstrip("-")), (*path, key)
        if isinstance(each, Mapping):  # kops and Gardener write gates as a map
            text = ",".join(f"{gate}={flag_text(on)}" for gate, on in each.items())
            yield CommandLineFlag(name, text, at)
            continue
        for index, one in enumerate(each if isinstance(each, list) else [each]):
            text_ = flag_text(one)
            if text_ is not None:
                yield CommandLineFlag(name, text_, (*at, index) if isinstance(each, list) else at)


def of_names(value: Any, path: Path, key: str = "name") -> Iterator[CommandLineFlag]:
    """Flags of a list of {name: NAME, value: VALUE}."""
    for index, each in enumerate(value if isinstance(value, list) else ()):
        entry = mapping(each)
        name, text = flag_text(entry.get(key)), flag_text(entry.get("value"))
        if name:
            flag = normalized_name(name.lstrip("-"))
            yield CommandLineFlag(flag, text or "", (*path, index, "value" if text else key))


def split(text: str) -> list[str]:
    """The words of a shell's command; those between spaces if the quotes are unbalanced."""
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()
