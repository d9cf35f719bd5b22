"""Strict decoding like kube-scheduler's: unknown fields and type errors of a document.

As in Go, `null` is an absent field, or the zero value in a list. A duration cannot be null unless
its field is optional.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from ...base.decoding import (
    INVALID_TYPE,
    UNKNOWN_FIELD,
    Absent,
    Anything,
    Boolean,
    DecodingRun,
    ListOf,
    MapOf,
    Record,
    RecordField,
    String,
)
from ...base.decoding import Type as DecodedType
from ...base.findings import Path, Problem, did_you_mean
from ...base.go_values import nanoseconds
from ...base.source.culprit import first_culprit
from .literal_fixes import duration_fix, list_fix, object_fix, type_fix
from .relocations import PLUGIN, field_fix
from .schema import BOOL, DURATION, INT32, INT64, STRING, List, Map, Scalar, Struct, Type

INVALID: Final = "InvalidConfiguration"

_LARGEST_FLOAT: Final = (2 - 2**-24) * 2.0**127
"""From this number on, Go rounds a float32 to infinity."""


def decode_problems(
    value: Any, kind: Type, path: Path, minor: int, *, strict: bool = True
) -> Iterator[Problem]:
    """Return the errors of decoding `value` as `kind` in kube-scheduler 1.`minor`.

    `strict=False` allows unknown fields: a newer or custom scheduler may have them.
    """
    return iter(read(value, kind, path, minor, strict=strict)[1])


def read(
    value: Any, kind: Type, path: Path, minor: int, *, strict: bool = True
) -> tuple[Any, list[Problem]]:
    """Return (what `decoded` returns, without meaning if a type is wrong, and all errors)."""
    run = _GoRun(minor, strict=strict)
    return _decoder(kind, minor)(value, path, run), run.problems


def decoded(value: Any, kind: Type, minor: int) -> Any:
    """Copy a valid document as Go decodes it: without nulls and unknown fields.

    A null in a list becomes the item type's zero value: `{}`, `[]`, `""`, 0 or false.
    """
    return read(value, kind, (), minor, strict=False)[0]


def zero(kind: Type) -> Any:
    """Return Go's zero value of a type."""
    if isinstance(kind, Struct | Map):
        return {}
    if isinstance(kind, List):
        return []
    if kind == BOOL:
        return False
    return 0 if kind in (INT32, INT64, "float") else "0s" if kind == DURATION else ""


class _GoRun(DecodingRun):
    def __init__(self, minor: int, *, strict: bool) -> None:
        super().__init__()
        self._minor, self._is_strict = minor, strict

    def wrong_type(self, path: Path, value: Any, expected: str, fix: str = "") -> Absent:
        names = {bool: "a boolean", str: "a string", dict: "an object", list: "a list"}
        actual = names.get(type(value), "a number")
        if isinstance(value, str) and (culprit := first_culprit(value)):
            what = f" with {culprit}"
        else:
            what = f"; {fix or type_fix(value, expected)}"
        message = f"must be {expected}, not {actual}{what}"
        return self.report(Problem(INVALID_TYPE, path, message))

    def unknown_field(
        self, path: Path, key: str, parent: Mapping[str, Any], record: Record
    ) -> None:
        if not (self._is_strict and isinstance(record, _GoStruct)):
            return
        problem = _unknown_field(key, parent[key], record.struct, path, self._minor)
        name = parent.get("name")  # of the plugin, if it is an entry for one
        if isinstance(name, str) and name:
            problem = replace(problem, fix=problem.fix.replace(PLUGIN, name))
        self.report(problem)


class _GoStruct(Record):
    """A struct, in which a null field is absent, but a null duration is a value."""

    def __init__(self, struct: Struct, minor: int) -> None:
        self.struct = struct
        super().__init__(
            {
                name: RecordField(
                    name,
                    _decoder(struct.fields[name], minor),
                    null_is_absent=struct.fields[name] != DURATION or name in struct.optional,
                )
                for name in struct.known(minor)
            }
        )

    def refuse(self, value: Any, path: Path, run: DecodingRun) -> Absent:
        return run.wrong_type(path, value, "an object", object_fix(value, self.struct))


class _GoList(ListOf):
    """A list, in which null is the zero value of its items."""

    def __init__(self, kind: List, minor: int) -> None:
        self._kind = kind
        super().__init__(_decoder(kind.item, minor), null=partial(zero, kind.item))

    def refuse(self, value: Any, path: Path, run: DecodingRun) -> Absent:
        return run.wrong_type(path, value, "a list", list_fix(value, self._kind))


@cache
def _decoder(kind: Type, minor: int) -> DecodedType:
    if isinstance(kind, Struct):
        return _GoStruct(kind, minor)
    if isinstance(kind, List):
        return _GoList(kind, minor)
    if isinstance(kind, Map):
        return MapOf(_decoder(kind.item, minor), Anything(), null=partial(zero, kind.item))
    return _SCALARS[kind]


def _unknown_field(key: str, value: Any, kind: Struct, path: Path, minor: int) -> Problem:
    message = f'kube-scheduler 1.{minor} has no field "{key}" here'
    if kind.since and key in kind.since:
        fix = f", which was added in 1.{kind.since[key]}; remove it"
    elif culprit := first_culprit(key):
        fix = f": the name contains {culprit}"
    elif place := field_fix(key, value, kind, path, minor):
        return Problem(UNKNOWN_FIELD, (*path, key), message, place)
    else:
        fix = did_you_mean(key, kind.known(minor)) or "; remove it"
    return Problem(UNKNOWN_FIELD, (*path, key), f"{message}{fix}")


def _bytes_text(value: Any, path: Path, run: DecodingRun) -> Any:
    # Go also decodes a list of numbers as bytes.
    if not isinstance(value, str | list):
        return run.wrong_type(path, value, "base64 in a string")
    try:
        return base64.b64encode(_bytes(value)).decode()
    except (binascii.Error, ValueError, TypeError):
        return run.invalid(path, "is not base64; encode the value")


def _duration(value: Any, path: Path, run: DecodingRun) -> Any:
    if value is None:
        # metav1.Duration decodes null as the string "".
        message = "null is not a duration; set one such as 15s or remove the field"
        return run.invalid(path, message)
    if not isinstance(value, str):
        return run.wrong_type(path, value, "a duration such as 15s")
    try:
        nanoseconds(value)
    except ValueError as error:
        return run.invalid(path, f"{error}; {duration_fix(value)}")
    return value


def _float32(value: Any, path: Path, run: DecodingRun) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return run.wrong_type(path, value, "a number")
    if not -_LARGEST_FLOAT < value < _LARGEST_FLOAT:
        return run.invalid(path, f"{value} does not fit into a float32; use a smaller number")
    return value


class _Integer:
    def __init__(self, kind: str, limit: int) -> None:
        self._kind, self._limit = kind, limit

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            return run.wrong_type(path, value, "an integer")
        if not -self._limit <= value < self._limit:
            message = f"{value} does not fit into an {self._kind}; use a smaller number"
            return run.invalid(path, message)
        return value


_SCALARS: Final[Mapping[Scalar, DecodedType]] = {
    "bytes": _bytes_text,
    STRING: String(),
    DURATION: _duration,
    BOOL: Boolean(),
    "float": _float32,
    INT32: _Integer(INT32, 2**31),
    INT64: _Integer(INT64, 2**63),
    "any": Anything(),
}


def _bytes(value: str | list[Any]) -> bytes:
    if isinstance(value, list):
        if any(isinstance(item, bool | float) for item in value):
            raise TypeError(value)
        return bytes(0 if item is None else item for item in value)
    return base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
