"""Decoding of JSON and YAML into typed values: one decoder for all mappings.

A declaration states what is accepted. It is a dataclass, whose fields have types and defaults, or a
type composed of those below:

    @dataclass(frozen=True, slots=True)
    class Listen:
        address: str = "127.0.0.1"
        port: Annotated[int, Number(whole=True, least=0, most=65535)] = 5401

    decode(type_of(Listen), document)

A field without a default is required. A method `inconsistencies(self)` of a dataclass yields the
problems of its fields in combination. All problems are reported together, each with the path of its
field and, where one is known, a fix. field_types.py reads the dataclasses.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from .findings import Path, Problem, did_you_mean, format_path, listing

INVALID_TYPE: Final = "InvalidType"
INVALID_VALUE: Final = "InvalidValue"
UNKNOWN_FIELD: Final = "UnknownField"
MISSING_FIELD: Final = "MissingField"

_LARGEST: Final = sys.float_info.max
"""Larger integers have no float, and infinity is not a number."""


class Absent:
    """The type of REFUSED, which no document contains."""


REFUSED: Final = Absent()
"""The result for a value with problems."""


class DecodeError(ValueError):
    """A document does not match its declaration; each of the `problems` has its path and fix."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(sentence, self.problems)))


def sentence(problem: Problem) -> str:
    """Format the path, the message and the fix."""
    return f"{format_path(problem.path)}: {problem.sentence}" if problem.path else problem.sentence


Type: TypeAlias = "Callable[[Any, Path, DecodingRun], Any]"
"""Reads a value at a path: returns the typed value, or reports problems and returns REFUSED."""


class DecodingRun:
    """One run: collects the problems, and words those that depend on the format."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []  # errors and warnings, in the order of the document

    def report(self, problem: Problem) -> Absent:
        self.problems.append(problem)
        return REFUSED

    def invalid(self, path: Path, message: str) -> Absent:
        """Report a value that has the right type."""
        return self.report(Problem(INVALID_VALUE, path, message))

    def wrong_type(
        self,
        path: Path,
        value: Any,  # noqa: ARG002 - for subclasses
        expected: str,
        fix: str = "",  # noqa: ARG002 - for subclasses
    ) -> Absent:
        return self.report(Problem(INVALID_TYPE, path, f"this must be {expected}"))

    def missing(self, path: Path) -> Absent:
        return self.report(Problem(MISSING_FIELD, path, "this is missing"))

    def unknown_field(
        self,
        path: Path,
        key: str,
        parent: Mapping[str, Any],  # noqa: ARG002 - for subclasses
        record: Record,
    ) -> None:
        hint = did_you_mean(str(key), record.fields) or (
            f"; use {listing(record.fields)}" if record.fields else "; remove it"
        )
        self.report(Problem(UNKNOWN_FIELD, (*path, key), f"unknown field{hint}"))


class FirstProblem(DecodingRun):
    """A run that ends with its first problem, and can ignore unknown fields."""

    def __init__(self, *, ignore_unknown: bool = False) -> None:
        super().__init__()
        self._ignores_unknown = ignore_unknown

    def report(self, problem: Problem) -> Absent:
        raise DecodeError([problem])

    def unknown_field(
        self, path: Path, key: str, parent: Mapping[str, Any], record: Record
    ) -> None:
        if not self._ignores_unknown:
            super().unknown_field(path, key, parent, record)


def decode(kind: Type, value: Any, path: Path = (), run: DecodingRun | None = None) -> Any:
    """Read a document, or the part of it at `path`.

    The default `run` collects all problems, and reports unknown fields.

    Raises:
        DecodeError: the value does not match its declaration.
    """
    run = run or DecodingRun()
    typed = kind(value, path, run)
    if run.problems:
        raise DecodeError(run.problems)
    return typed


# --- values -------------------------------------------------------------------------------------
# The types are plain classes: a dataclass takes four times as long to create, at every start.


class Anything:
    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:  # noqa: ARG002 - as all types
        return value


class Null:
    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        return None if value is None else run.wrong_type(path, value, "null")


class Boolean:
    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if value is True or value is False:
            return value
        return run.wrong_type(path, value, "true or false")


class Number:
    """A finite number."""

    def __init__(
        self,
        whole: bool = False,  # whether it must be an integer
        least: float = -math.inf,
        most: float = math.inf,
        above: bool = False,  # whether `least` itself is excluded
        converted: bool = True,  # 5.0 becomes 5 if `whole`; otherwise 5 becomes 5.0
    ) -> None:
        self.whole = whole
        self.least = least
        self.most = most
        self.above = above
        self.converted = converted

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return run.wrong_type(path, value, f"{self._name}{self._within}")
        is_exact = (
            isinstance(value, int) or not self.whole or (self.converted and value.is_integer())
        )
        if not is_exact or not -_LARGEST <= value <= _LARGEST:
            return run.invalid(path, f"{value} is not {self._name}")
        is_low = value <= self.least if self.above else value < self.least
        if is_low or value > self.most:
            return run.invalid(path, f"{value} is not{self._within}")
        if self.whole:
            return int(value)
        return float(value) if self.converted else value

    @property
    def _name(self) -> str:
        return "an integer" if self.whole else "a number"

    @property
    def _within(self) -> str:
        least, most = self.least, self.most
        if math.isfinite(least) and math.isfinite(most):
            between = f" between {least:g} and {most:g}"
            return f"{between}, without {least:g} itself" if self.above else between
        if math.isfinite(least):
            return f" greater than {least:g}" if self.above else f" {least:g} or more"
        return f" {most:g} or less" if math.isfinite(most) else ""


class String:
    def __init__(
        self,
        choices: tuple[str, ...] = (),  # the accepted strings; empty: all
        longest: int | None = None,  # in characters
    ) -> None:
        self.choices = choices
        self.longest = longest

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if not isinstance(value, str):
            return run.wrong_type(path, value, "a string")
        if self.choices and value not in self.choices:
            hint = did_you_mean(value, self.choices) or f"; use {listing(self.choices)}"
            return run.invalid(path, f'"{value}" is not known{hint}')
        if self.longest is not None and len(value) > self.longest:
            return run.invalid(path, f"this must have at most {self.longest} characters")
        return value


class Converted:
    """A value of the type `kind`, which `convert` converts.

    `convert` may raise a ValueError with the message for the value, or a DecodeError, whose paths
    are relative to the value.
    """

    def __init__(self, kind: Type, convert: Callable[[Any], Any]) -> None:
        self.kind = kind
        self.convert = convert

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        typed = self.kind(value, path, run)
        if typed is REFUSED:
            return REFUSED
        try:
            return self.convert(typed)
        except DecodeError as error:
            return report_below(error.problems, path, run)
        except ValueError as error:
            return run.invalid(path, str(error))


def report_below(problems: Iterable[Problem], path: Path, run: DecodingRun) -> Absent:
    """Report problems of a part of the document, whose paths are relative to `path`."""
    for problem in problems:
        run.report(problem.below(path))
    return REFUSED


# --- containers ---------------------------------------------------------------------------------


class ListOf:
    def __init__(
        self,
        item: Type,
        made: Callable[[list[Any]], Any] = list,  # converts the list of typed entries
        most: int | None = None,  # entries
        expected: str = "a list",  # the noun in messages
        null: Callable[[], Any] | None = None,  # creates the value of a null entry; None: `item`
    ) -> None:
        self.item = item
        self.made = made
        self.most = most
        self.expected = expected
        self.null = null

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if not isinstance(value, list | tuple):
            return self.refuse(value, path, run)
        if self.most is not None and len(value) > self.most:
            return run.invalid(path, f"this must have at most {self.most} entries")
        read, null = self.item, self.null
        entries = [
            null() if entry is None and null else read(entry, (*path, index), run)
            for index, entry in enumerate(value)
        ]
        return REFUSED if run.problems and REFUSED in entries else self.made(entries)

    def refuse(self, value: Any, path: Path, run: DecodingRun) -> Absent:
        return run.wrong_type(path, value, self.expected)


class TupleOf:
    """A list of a fixed length, each of whose entries has its own type."""

    def __init__(self, items: tuple[Type, ...]) -> None:
        self.items = items

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(self.items):
            return run.wrong_type(path, value, f"a list of {len(self.items)}")
        entries = [
            item(entry, (*path, index), run)
            for index, (item, entry) in enumerate(zip(self.items, value, strict=True))
        ]
        return REFUSED if run.problems and REFUSED in entries else tuple(entries)


_STRING: Final = String()


class MapOf:
    """An object with any keys."""

    def __init__(
        self,
        item: Type,
        key: Type = _STRING,
        most: int | None = None,  # keys
        expected: str = "an object",  # the noun in messages
        null: Callable[[], Any] | None = None,  # creates the value of a null; None: `item`
    ) -> None:
        self.item = item
        self.key = key
        self.most = most
        self.expected = expected
        self.null = null

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if not isinstance(value, Mapping):
            return run.wrong_type(path, value, self.expected)
        if self.most is not None and len(value) > self.most:
            return run.invalid(path, f"this must have at most {self.most} keys")
        read, null = self.item, self.null
        entries = {
            self._key(key, path, run): null()
            if item is None and null
            else read(item, (*path, key), run)
            for key, item in value.items()
        }
        has_invalid = run.problems and (REFUSED in entries or REFUSED in entries.values())
        return REFUSED if has_invalid else entries

    def _key(self, key: Any, path: Path, run: DecodingRun) -> Any:
        """Read a key; its problem has the path of the object, because a key may be long."""
        try:
            return self.key(key, (), FirstProblem())
        except DecodeError as error:
            return run.invalid(path, f"a key is not valid: {error}")


class RecordField:
    def __init__(
        self,
        attribute: str,  # its name in the class
        kind: Type,
        is_required: bool = False,
        null_is_absent: bool = True,
    ) -> None:
        self.attribute = attribute
        self.kind = kind
        self.is_required = is_required
        self.null_is_absent = null_is_absent


class Record:
    """An object with declared fields, by their names in a document.

    `make` creates the value from the attributes that the document sets.
    """

    def __init__(self, fields: Mapping[str, RecordField], make: Callable[..., Any] = dict) -> None:
        self.fields = fields
        self.make = make
        # As tuples: they are read for each field of each object.
        self._fields = {
            name: (field.attribute, field.kind, field.null_is_absent)
            for name, field in fields.items()
        }
        self._required = tuple(
            (name, field.attribute) for name, field in fields.items() if field.is_required
        )
        self._inconsistencies: Callable[[Any], Iterable[Problem]] | None
        self._inconsistencies = getattr(make, "inconsistencies", None)

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        # Nearly all are dicts, and asking whether one is a Mapping takes longer than most of them.
        if type(value) is not dict and not isinstance(value, Mapping):
            return self.refuse(value, path, run)
        fields = self._fields
        attributes: dict[str, Any] = {}
        for key, item in value.items():
            declared = fields.get(key)
            if declared is None:
                run.unknown_field(path, key, value, self)
                continue
            attribute, kind, null_is_absent = declared
            if item is not None or not null_is_absent:
                attributes[attribute] = kind(item, (*path, key), run)
        for name, attribute in self._required:
            if attribute not in attributes:
                attributes[attribute] = run.missing((*path, name))
        if run.problems and REFUSED in attributes.values():
            return REFUSED
        return attributes if self.make is dict else self._made(attributes, path, run)

    def refuse(self, value: Any, path: Path, run: DecodingRun) -> Absent:
        names = f" with {listing(self.fields)}" if self.fields else ""
        return run.wrong_type(path, value, f"an object{names}")

    def _made(self, attributes: dict[str, Any], path: Path, run: DecodingRun) -> Any:
        try:
            made = self.make(**attributes)
        except DecodeError as error:
            return report_below(error.problems, path, run)
        except ValueError as error:  # of a combination of fields
            return run.invalid(path, str(error))
        if self._inconsistencies is not None and (problems := tuple(self._inconsistencies(made))):
            return report_below(problems, path, run)
        return made


class Nullable:
    def __init__(self, kind: Type) -> None:
        self.kind = kind

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        return None if value is None else self.kind(value, path, run)


class UnlessEmpty:
    """A value that may also be empty, of any type; `empty` then takes its place, or None."""

    def __init__(self, kind: Type, empty: Any = None) -> None:
        self.kind = kind
        self.empty = empty

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        value = value or self.empty
        return None if value is None else self.kind(value, path, run)


class Either:
    """A value of one of several types; the first that accepts it counts."""

    def __init__(self, kinds: tuple[Type, ...]) -> None:
        self.kinds = kinds

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        errors = []
        for kind in self.kinds:
            try:
                return kind(value, path, FirstProblem())
            except DecodeError as error:
                errors.append(error)
        return report_below(errors[0].problems, (), run)
