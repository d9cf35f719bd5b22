"""Strict decoding like kube-scheduler's: unknown fields and type errors of a document.

`null` is decoded as Go does it: an absent field, or the zero value in a list. A duration cannot be
null unless its field is optional.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ..base.findings import Path, Problem, did_you_mean
from .go_values import nanoseconds
from .literal_fixes import duration_fix, list_fix, object_fix, type_fix
from .relocations import PLUGIN, field_fix
from .schema import BOOL, DURATION, INT32, INT64, STRING, List, Map, Scalar, Struct, Type
from .source_culprit import first_culprit

INVALID: Final = "InvalidConfiguration"
UNKNOWN_FIELD: Final = "UnknownField"
INVALID_TYPE: Final = "InvalidType"
INVALID_VALUE: Final = "InvalidValue"

_LIMITS: Final = {INT32: 2**31, INT64: 2**63}
_LARGEST_FLOAT: Final = (2 - 2**-24) * 2.0**127
"""The limit from which Go rounds a float32 to infinity."""


def decode_problems(
    value: Any, kind: Type, path: Path, minor: int, *, strict: bool = True
) -> Iterator[Problem]:
    """The errors of decoding `value` as `kind` in kube-scheduler 1.`minor`.

    `strict=False` allows unknown fields: a newer or custom scheduler may have them.
    """
    # One generator for each list and object: this is most of the time of a check.
    if isinstance(kind, Struct):
        return _decode_struct(value, kind, path, minor, strict=strict)
    if isinstance(kind, List):
        return _decode_list(value, kind, path, minor, strict=strict)
    if isinstance(kind, Map):
        return _decode_map(value, kind, path, minor, strict=strict)
    problem = _SCALARS[kind](value, kind, path)
    return iter(()) if problem is None else iter((problem,))


def _decode_struct(
    value: Any, kind: Struct, path: Path, minor: int, *, strict: bool
) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield _wrong_type(value, "an object", path, object_fix(value, kind))
        return
    known = kind.known(minor)
    for key, item in value.items():
        if key not in known:
            if strict:
                problem = _unknown_field(key, item, kind, path, minor)
                name = value.get("name")  # of the plugin, if it is an entry for one
                if isinstance(name, str) and name:
                    problem = replace(problem, fix=problem.fix.replace(PLUGIN, name))
                yield problem
        elif item is not None:
            yield from decode_problems(item, kind.fields[key], (*path, key), minor, strict=strict)
        elif kind.fields[key] == DURATION and key not in kind.optional:
            # metav1.Duration decodes null itself, as the string "".
            message = "null is not a duration; set one such as 15s or remove the field"
            yield Problem(INVALID_VALUE, (*path, key), message)


def _decode_list(
    value: Any, kind: List, path: Path, minor: int, *, strict: bool
) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield _wrong_type(value, "a list", path, list_fix(value, kind))
        return
    for index, item in enumerate(value):
        if item is not None:
            yield from decode_problems(item, kind.item, (*path, index), minor, strict=strict)


def _decode_map(
    value: Any, kind: Map, path: Path, minor: int, *, strict: bool
) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield _wrong_type(value, "an object", path)
        return
    for key, item in value.items():
        if item is not None:
            yield from decode_problems(item, kind.item, (*path, key), minor, strict=strict)


def decoded(value: Any, kind: Type, minor: int) -> Any:
    """A copy of a valid document as Go decodes it: without nulls and unknown fields.

    A null in a list is the item type's zero value: `{}`, `[]`, `""`, 0 or false.
    """
    if isinstance(kind, Struct):
        known = kind.known(minor)
        return {
            key: decoded(item, kind.fields[key], minor)
            for key, item in value.items()
            if item is not None and key in known
        }
    if isinstance(kind, List):
        return [
            zero(kind.item) if item is None else decoded(item, kind.item, minor) for item in value
        ]
    if isinstance(kind, Map):
        return {
            key: zero(kind.item) if item is None else decoded(item, kind.item, minor)
            for key, item in value.items()
        }
    if kind == "bytes":
        return base64.b64encode(_bytes(value)).decode()
    return value


def zero(kind: Type) -> Any:
    """Go's zero value of a type."""
    if isinstance(kind, Struct | Map):
        return {}
    if isinstance(kind, List):
        return []
    if kind == BOOL:
        return False
    return 0 if kind in (INT32, INT64, "float") else "0s" if kind == DURATION else ""


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


def _decode_bytes(value: Any, _: Scalar, path: Path) -> Problem | None:
    # Go also decodes a list of numbers as bytes.
    if not isinstance(value, str | list):
        return _wrong_type(value, "base64 in a string", path)
    try:
        _bytes(value)
    except (binascii.Error, ValueError, TypeError):
        return Problem(INVALID_VALUE, path, "is not base64; encode the value")
    return None


def _decode_string(value: Any, _: Scalar, path: Path) -> Problem | None:
    return None if isinstance(value, str) else _wrong_type(value, "a string", path)


def _decode_duration(value: Any, _: Scalar, path: Path) -> Problem | None:
    if not isinstance(value, str):
        return _wrong_type(value, "a duration such as 15s", path)
    try:
        nanoseconds(value)
    except ValueError as error:
        return Problem(INVALID_VALUE, path, f"{error}; {duration_fix(value)}")
    return None


def _decode_bool(value: Any, _: Scalar, path: Path) -> Problem | None:
    return None if isinstance(value, bool) else _wrong_type(value, "true or false", path)


def _decode_float(value: Any, _: Scalar, path: Path) -> Problem | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong_type(value, "a number", path)
    if not -_LARGEST_FLOAT < value < _LARGEST_FLOAT:
        message = f"{value} does not fit into a float32; use a smaller number"
        return Problem(INVALID_VALUE, path, message)
    return None


def _decode_integer(value: Any, kind: Scalar, path: Path) -> Problem | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return _wrong_type(value, "an integer", path)
    limit = _LIMITS[kind]
    if not -limit <= value < limit:
        message = f"{value} does not fit into an {kind}; use a smaller number"
        return Problem(INVALID_VALUE, path, message)
    return None


_SCALARS: Final[Mapping[Scalar, Callable[[Any, Scalar, Path], Problem | None]]] = {
    "bytes": _decode_bytes,
    STRING: _decode_string,
    DURATION: _decode_duration,
    BOOL: _decode_bool,
    "float": _decode_float,
    INT32: _decode_integer,
    INT64: _decode_integer,
    "any": lambda *_: None,
}


def _bytes(value: str | list[Any]) -> bytes:
    if isinstance(value, list):
        if any(isinstance(item, bool | float) for item in value):
            raise TypeError(value)
        return bytes(0 if item is None else item for item in value)
    return base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)


def _wrong_type(value: Any, expected: str, path: Path, fix: str = "") -> Problem:
    names = {bool: "a boolean", str: "a string", dict: "an object", list: "a list"}
    actual = names.get(type(value), "a number")
    if isinstance(value, str) and (culprit := first_culprit(value)):
        what = f" with {culprit}"
    else:
        what = f"; {fix or type_fix(value, expected)}"
    return Problem(INVALID_TYPE, path, f"must be {expected}, not {actual}{what}")
