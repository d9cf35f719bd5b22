"""Values of dataclasses as JSON, and back by their annotations.

The other process may be of another version, so what does not have the annotated type is an error.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import orjson

_SEQUENCES = (list, collections.abc.Sequence, collections.abc.Collection)
_MAPPINGS = (dict, collections.abc.Mapping)


def to_json(value: Any) -> bytes:
    """Dataclasses, mappings, sequences, sets and plain values as JSON.

    Raises:
        TypeError: it contains something else.
    """
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def _plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def read_value(hint: Any, value: Any, at: str = "value") -> Any:
    """A value of the annotated type from what `orjson.loads` returned.

    Args:
        hint: the type: of plain values, dataclasses, containers and unions of them.
        value: the JSON value.
        at: where it is, for error messages.

    Raises:
        ValueError: it does not have this type; the message has the place.
    """
    origin = get_origin(hint) or hint
    if origin is Any or origin is object:
        return value
    if origin in (Union, types.UnionType):
        return _one_of(get_args(hint), value, at)
    if origin is type(None):
        return _checked(value is None, value, "null", at)
    if dataclasses.is_dataclass(origin):
        return _dataclass(origin, value, at)
    arguments = get_args(hint)
    if origin in _MAPPINGS:
        _checked(isinstance(value, dict), value, "object", at)
        key, item = arguments or (Any, Any)
        return {
            _key(key, name, at): read_value(item, each, f"{at}.{name}")
            for name, each in value.items()
        }
    if origin is tuple:
        return _tuple(arguments, value, at)
    if origin in (*_SEQUENCES, set, frozenset):
        _checked(isinstance(value, list), value, "array", at)
        (item,) = arguments or (Any,)
        items = [read_value(item, each, f"{at}[{index}]") for index, each in enumerate(value)]
        return origin(items) if origin in (set, frozenset) else items
    if origin is float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(_checked(is_number, value, "number", at))
    is_same = isinstance(value, origin) and (origin is bool or not isinstance(value, bool))
    return _checked(is_same, value, origin.__name__, at)


def _checked(valid: bool, value: Any, expected: str, at: str) -> Any:
    if not valid:
        raise ValueError(f"{at} is not of type {expected}")
    return value


def _one_of(hints: tuple[Any, ...], value: Any, at: str) -> Any:
    if value is None and type(None) in hints:
        return None
    errors = []
    for hint in hints:
        try:
            return read_value(hint, value, at)
        except ValueError as error:
            errors.append(str(error))
    raise ValueError(errors[0])


def _key(hint: Any, name: str, at: str) -> Any:
    if hint is int:
        try:
            return int(name)
        except ValueError:
            raise ValueError(f"the key {name!r} of {at} is not an integer") from None
    return name


def _tuple(hints: tuple[Any, ...], value: Any, at: str) -> tuple[Any, ...]:
    _checked(isinstance(value, list), value, "array", at)
    if len(hints) == 2 and hints[1] is Ellipsis:
        hints = (hints[0],) * len(value)
    _checked(not hints or len(hints) == len(value), value, f"array of {len(hints)}", at)
    pairs = zip(hints or (Any,) * len(value), value, strict=True)
    return tuple(
        read_value(hint, each, f"{at}[{index}]") for index, (hint, each) in enumerate(pairs)
    )


def _dataclass(made: Any, value: Any, at: str) -> Any:
    _checked(isinstance(value, dict), value, "object", at)
    hints = hints_of(made)
    found = {}
    for each in dataclasses.fields(made):
        if each.name in value:
            found[each.name] = read_value(hints[each.name], value[each.name], f"{at}.{each.name}")
    if unknown := sorted(value.keys() - hints.keys()):
        raise ValueError(f"{at} has the unknown fields {', '.join(unknown)}")
    try:
        return made(**found)
    except TypeError as error:
        raise ValueError(f"{at}: {error}") from None


@cache
def hints_of(what: type | Callable[..., Any]) -> Mapping[str, Any]:
    """The resolved annotations of a dataclass or a function."""
    return get_type_hints(what)
