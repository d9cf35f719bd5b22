"""The types of values in a load policy, for its decoder."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...base.decoding import INVALID_TYPE, UNKNOWN_FIELD, Absent, DecodingRun, Record, Type
from ...base.findings import WARNING, Path, Problem, did_you_mean, listing
from ...base.go_values import seconds

WITHOUT_EFFECT: Final = "WithoutEffect"


class PolicyRun(DecodingRun):
    def __init__(self, *, is_lenient: bool = False) -> None:
        super().__init__()
        self.notes: list[Problem] = []  # warnings about ignored or reinterpreted values
        self._is_lenient = is_lenient

    def void(self, path: Path, message: str) -> None:
        """Add a warning about an ignored value."""
        self.notes.append(Problem(WITHOUT_EFFECT, path, message, severity=WARNING))

    def missing(self, path: Path) -> Absent:
        return self.report(Problem(INVALID_TYPE, path, "this is missing; add it"))

    def unknown_field(
        self,
        path: Path,
        key: str,
        parent: Mapping[str, Any],  # noqa: ARG002 - as in DecodingRun
        record: Record,
    ) -> None:
        """Add an error, or a warning if crane ignores the field."""
        hint = did_you_mean(key, record.fields)
        if self._is_lenient:
            self.void((*path, key), f"crane ignores this unknown field{hint}")
        else:
            message = f'unknown field "{key}"{hint or "; remove it"}'
            self.report(Problem(UNKNOWN_FIELD, (*path, key), message))


class Placed(NamedTuple):
    """A value with its path; also of a rejected value, so that the others are checked."""

    value: Any
    path: Path


class RuleEntry(Record):
    """The decoder of an object in a list of rules."""

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Placed:
        return Placed(super().__call__(value, path, run), path)

    def refuse(self, value: Any, path: Path, run: DecodingRun) -> Absent:
        return run.wrong_type(path, value, f"an object with {' and '.join(self.fields)}")


class Finite:
    """The decoder of a finite number; `expected` describes it in messages."""

    def __init__(self, expected: str) -> None:
        self._expected = expected

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not -sys.float_info.max <= value <= sys.float_info.max:
            return run.wrong_type(path, value, self._expected)
        return value


_SECONDS: Final = Finite("a number of seconds")


class Time:
    """The decoder of a time in seconds: a duration such as `3m`, or a number."""

    def __init__(self, *, durations: bool) -> None:
        self._durations = durations

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if not self._durations:
            number = _SECONDS(value, path, run)
            return number if isinstance(number, Absent) else float(number)
        if not isinstance(value, str):
            return run.wrong_type(path, value, "a duration; write one such as 3m")
        try:
            return seconds(value)
        except ValueError as error:
            return run.invalid(path, f"{error}; write one such as 3m")


class Setting:
    """The decoder of a value; null and an empty string become None."""

    def __init__(self, kind: Type, least: float = -math.inf) -> None:
        self._kind, self._least = kind, least

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if value in (None, ""):
            return None
        read = self._kind(value, path, run)
        if isinstance(read, float) and read < self._least:
            return run.invalid(path, f"{read:g} s is too short; use {self._least:g} s or more")
        return read


class Word:
    """The decoder of a known word."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if value in self._known:
            return value
        return run.invalid(path, f'"{value}" is not supported; use {listing(self._known)}')
