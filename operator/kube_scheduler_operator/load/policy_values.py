"""Values of a load policy: what they must be, and what is said where they are not."""

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
    """Reads values and remembers all that is wrong with them.

    Attributes:
        durations: times are durations such as `3m` instead of numbers of seconds.
        lenient: a field that nobody knows is passed over, with a note.
        problems: what is wrong.
        notes: what is passed over, or was not read as it is written.
    """

    def __init__(self, *, durations: bool, lenient: bool = False) -> None:
        self.durations, self.lenient = durations, lenient
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []

    def wrong(self, at: Path, message: str, reason: str = INVALID_VALUE) -> None:
        """Remember a mistake."""
        self.problems.append(Problem(reason, at, message))

    def void(self, at: Path, message: str) -> None:
        """Remember something that counts for nothing."""
        self.notes.append(Problem(WITHOUT_EFFECT, at, message, severity=WARNING))

    def number(self, value: Any, at: Path, wanted: str) -> float | None:
        """A finite number; None and a problem if it is none."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            self.wrong(at, f"this must be {wanted}", INVALID_TYPE)
            return None
        return float(value)

    def seconds(self, value: Any, at: Path) -> float | None:
        """A time in seconds; None and a problem if it is none."""
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
        """A field's time in seconds, or the default; a field without a name is absent."""
        if not key or document.get(key) is None:
            return default
        value = self.seconds(document[key], (*path, key))
        if value is not None and value < least:
            self.wrong((*path, key), f"{value:g} s is too short; use {least:g} s or more")
        return default if value is None else value

    def word(self, value: Any, at: Path, known: Sequence[str]) -> str:
        """One of some words."""
        if value not in known:
            self.wrong(at, f'"{value}" is not known; use {listing(known)}')
        return str(value)

    def words(
        self, document: Mapping[str, Any], key: str, path: Path, known: Sequence[str]
    ) -> Iterator[str]:
        """A field's list of words, each once."""
        value = document.get(key)
        if value is not None and not isinstance(value, list):
            self.wrong((*path, key), f"this must be a list of {listing(known)}", INVALID_TYPE)
            return
        said = [self.word(word, (*path, key, i), known) for i, word in enumerate(value or ())]
        yield from dict.fromkeys(said)

    def known(self, document: Mapping[str, Any], path: Path, fields: Sequence[str]) -> None:
        """Remember every field that is not one of `fields`."""
        for key in document:
            if key in fields:
                continue
            hint = did_you_mean(key, fields)
            if self.lenient:
                self.void((*path, key), f"crane has no such field and passes it over{hint}")
            else:
                message = f'there is no field "{key}" here{hint or "; remove it"}'
                self.wrong((*path, key), message, UNKNOWN_FIELD)

    def entries(
        self, document: Mapping[str, Any], key: str, path: Path, default: Sequence[Any]
    ) -> list[tuple[Any, Path]]:
        """(entry, its path) of a field's list, or of the default."""
        value = document.get(key)
        if value is None:
            value = list(default)
        if not isinstance(value, list):
            self.wrong((*path, key), "this must be a list", INVALID_TYPE)
            return []
        return [(item, (*path, key, index)) for index, item in enumerate(value)]

    def fields(self, item: Any, at: Path, fields: Sequence[str]) -> Mapping[str, Any]:
        """An entry's fields."""
        if not isinstance(item, Mapping):
            self.wrong(at, f"this must be an object with {' and '.join(fields)}", INVALID_TYPE)
            return {}
        self.known(item, at, fields)
        return item
