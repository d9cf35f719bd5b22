"""Parses and validates values of a load policy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.findings import WARNING, Path, Problem, did_you_mean, listing
from ..schedulerconfig.go_values import seconds

INVALID_TYPE: Final = "InvalidType"
INVALID_VALUE: Final = "InvalidValue"
UNKNOWN_FIELD: Final = "UnknownField"
WITHOUT_EFFECT: Final = "WithoutEffect"


class Values:
    """Parses values and collects all errors.

    Attributes:
        durations: whether times are durations such as `3m` instead of numbers of seconds.
        lenient: whether unknown fields are warnings instead of errors.
        problems: errors.
        notes: warnings about ignored or reinterpreted values.
    """

    def __init__(self, *, durations: bool, lenient: bool = False) -> None:
        self.durations, self.lenient = durations, lenient
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []

    def wrong(self, at: Path, message: str, reason: str = INVALID_VALUE) -> None:
        """Add an error."""
        self.problems.append(Problem(reason, at, message))

    def void(self, at: Path, message: str) -> None:
        """Add a warning about an ignored value."""
        self.notes.append(Problem(WITHOUT_EFFECT, at, message, severity=WARNING))

    def number(self, value: Any, at: Path, expected: str) -> float | None:
        """A finite number; None and a problem otherwise."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            self.wrong(at, f"this must be {expected}", INVALID_TYPE)
            return None
        return float(value)

    def seconds(self, value: Any, at: Path) -> float | None:
        """A time in seconds; None and a problem otherwise."""
        if not self.durations:
            return self.number(value, at, "a number of seconds")
        if not isinstance(value, str):
            self.wrong(at, "this must be a duration; write one such as 3m", INVALID_TYPE)
            return None
        try:
            return seconds(value)
        except ValueError as error:
            self.wrong(at, f"{error}; write one such as 3m")
            return None

    def time(
        self, document: Mapping[str, Any], key: str, path: Path, default: float, *, least: float
    ) -> float:
        """A field's time in seconds, or the default; a format without the field has no `key`."""
        if not key or document.get(key) in (None, ""):
            return default
        value = self.seconds(document[key], (*path, key))
        if value is not None and value < least:
            self.wrong((*path, key), f"{value:g} s is too short; use {least:g} s or more")
        return default if value is None else value

    def word(self, value: Any, at: Path, known: Sequence[str]) -> str:
        """One of the known words."""
        if value not in known:
            self.wrong(at, f'"{value}" is not supported; use {listing(known)}')
        return str(value)

    def words(
        self, document: Mapping[str, Any], key: str, path: Path, known: Sequence[str]
    ) -> Iterator[str]:
        """A field's list of words, without duplicates."""
        value = document.get(key)
        if value is not None and not isinstance(value, list):
            self.wrong((*path, key), f"this must be a list of {listing(known)}", INVALID_TYPE)
            return
        words = [self.word(word, (*path, key, i), known) for i, word in enumerate(value or ())]
        yield from dict.fromkeys(words)

    def known(self, document: Mapping[str, Any], path: Path, fields: Sequence[str]) -> None:
        """Check for fields other than `fields`."""
        for key in document:
            if key in fields:
                continue
            hint = did_you_mean(key, fields)
            if self.lenient:
                self.void((*path, key), f"crane ignores this unknown field{hint}")
            else:
                message = f'unknown field "{key}"{hint or "; remove it"}'
                self.wrong((*path, key), message, UNKNOWN_FIELD)

    def entries(
        self, document: Mapping[str, Any], key: str, path: Path, default: Sequence[Any]
    ) -> list[tuple[Any, Path]]:
        """(entry, path) of a field's list, or of the default."""
        value = document.get(key)
        if value is None:
            value = list(default)
        if not isinstance(value, list):
            self.wrong((*path, key), "this must be a list", INVALID_TYPE)
            return []
        return [(item, (*path, key, index)) for index, item in enumerate(value)]

    def fields(self, item: Any, at: Path, fields: Sequence[str]) -> Mapping[str, Any]:
        """The fields of an entry."""
        if not isinstance(item, Mapping):
            self.wrong(at, f"this must be an object with {' and '.join(fields)}", INVALID_TYPE)
            return {}
        self.known(item, at, fields)
        return item
