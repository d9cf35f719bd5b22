"""Dataclasses as declarations for decoding.py: the type of each field, from its annotation.

`Annotated[int, Number(whole=True, least=0)]` names the type itself. A field's name in a document is
its name in the class as `Naming` spells it, or the one given with `named`. `document_of` writes
what such a declaration reads.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from .decoding import (
    Anything,
    Boolean,
    Converted,
    Either,
    ListOf,
    MapOf,
    Null,
    Nullable,
    Number,
    Record,
    RecordField,
    String,
    TupleOf,
    Type,
)

_NAME: Final = "name"
_SEQUENCES: Final = (list, collections.abc.Sequence, collections.abc.Collection)
_MAPPINGS: Final = (dict, collections.abc.Mapping)
_SCALARS: Final[dict[Any, Type]] = {
    Any: Anything(),
    object: Anything(),
    type(None): Null(),
    bool: Boolean(),
    int: Number(whole=True, converted=False),
    float: Number(),
    str: String(),
}


def camel_case(name: str) -> str:
    """Spell `print_table` as `printTable`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


class Naming(NamedTuple):
    """How the fields of dataclasses appear in documents."""

    name: Callable[[str], str]  # the name of an attribute
    null_is_absent: bool  # whether null means that a field is absent
    has_own_names: bool  # whether `named` counts

    def of(self, field: dataclasses.Field[Any]) -> str:
        own: str | None = field.metadata.get(_NAME) if self.has_own_names else None
        return self.name(field.name) if own is None else own


KUBERNETES: Final = Naming(camel_case, null_is_absent=True, has_own_names=True)
PYTHON: Final = Naming(str, null_is_absent=False, has_own_names=False)
"""For documents between processes of this project."""


def named(
    name: str,
    default: Any = dataclasses.MISSING,
    *,
    default_factory: Any = dataclasses.MISSING,
) -> Any:
    """Declare a field whose name in documents does not follow its `Naming`.

    With the name "", documents do not have it.
    """
    metadata = {_NAME: name}
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def document_of(value: Any) -> Any:
    """Return dataclasses and what they contain as a document.

    A dataclass may name in `DERIVED` properties that its documents have as well.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        own = {KUBERNETES.of(field): getattr(value, field.name) for field in fields}
        own.pop("", None)
        derived = {camel_case(name): getattr(value, name) for name in getattr(value, "DERIVED", ())}
        return {name: document_of(item) for name, item in (own | derived).items()}
    if isinstance(value, collections.abc.Mapping):
        return {str(key): document_of(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [document_of(item) for item in value]
    return value


@cache
def hints_of(what: type | Callable[..., Any]) -> dict[str, Any]:
    return typing.get_type_hints(what, include_extras=True)


@cache
def type_of(hint: Any, naming: Naming = KUBERNETES) -> Type:
    """Return the type that an annotation declares.

    Raises:
        TypeError: values of this type are not read from documents.
    """
    origin = typing.get_origin(hint) or hint
    arguments = typing.get_args(hint)
    if origin is typing.Annotated:
        return _annotated(arguments, naming)
    if origin in _SCALARS:
        return _SCALARS[origin]
    if origin is typing.Literal:
        return String(choices=arguments)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments, naming)
    if dataclasses.is_dataclass(origin):
        return _record(origin, naming)
    if origin in _MAPPINGS:
        key, item = arguments or (str, Any)
        return MapOf(type_of(item, naming), _key(key, naming))
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        return TupleOf(tuple(type_of(item, naming) for item in arguments))
    if origin in (*_SEQUENCES, tuple, set, frozenset):
        made = list if origin in _SEQUENCES else origin
        return ListOf(type_of(arguments[0] if arguments else Any, naming), made)
    raise TypeError(f"{hint} cannot be read from a document")


def _annotated(arguments: tuple[Any, ...], naming: Naming) -> Type:
    hint, *extras = arguments
    kinds: list[Type] = [extra for extra in extras if callable(extra)]
    return kinds[0] if kinds else type_of(hint, naming)


def _union(hints: tuple[Any, ...], naming: Naming) -> Type:
    kinds = tuple(type_of(hint, naming) for hint in hints if hint is not type(None))
    kind = kinds[0] if len(kinds) == 1 else Either(kinds)
    return Nullable(kind) if type(None) in hints else kind


def _key(hint: Any, naming: Naming) -> Type:
    return Converted(String(), _integer) if hint is int else type_of(hint, naming)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("this must be an integer") from None


def _record(made: Any, naming: Naming) -> Record:
    hints = hints_of(made)
    fields = {}
    for field in dataclasses.fields(made):
        if field.init and (name := naming.of(field)):
            kind = type_of(hints[field.name], naming)
            is_required = (
                field.default is dataclasses.MISSING
                and field.default_factory is dataclasses.MISSING
            )
            is_absent = naming.null_is_absent and not isinstance(kind, Nullable)
            fields[name] = RecordField(field.name, kind, is_required, is_absent)
    return Record(fields, made)
