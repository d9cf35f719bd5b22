"""The arguments of a policy: their declaration, and validation with errors that propose a fix.

A policy declares a frozen dataclass:

    @dataclass(frozen=True, slots=True)
    class Arguments:
        utilization: float = argument(90.0, "…", least=0, most=100)

Configurations use camelCase names as Kubernetes does: `print_table` is `printTable`.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from ...base.decoding import (
    UNKNOWN_FIELD,
    Anything,
    Converted,
    DecodeError,
    DecodingRun,
    FirstProblem,
    ListOf,
    MapOf,
    Number,
    Record,
    RecordField,
    String,
    Type,
    decode,
    report_below,
)
from ...base.field_types import camel_case, hints_of, type_of
from ...base.findings import Path, Problem, did_you_mean, listing
from ...base.klog import kv

log = logging.getLogger(__name__)

_KEY: Final = "argument"
_PATH: Final[Path] = ("arguments",)


@dataclass(frozen=True, slots=True)
class Meaning:
    text: str = ""  # documentation, with the unit
    least: float = -math.inf  # bounds of a number
    most: float = math.inf
    above: bool = False  # whether `least` itself is excluded
    choices: tuple[str, ...] = ()  # allowed strings
    # converts the configured value; raises ValueError, whose message follows the field's name.
    # None: the type of the field determines the conversion.
    read: Callable[[Any], Any] | None = None


def argument(
    default: Any,
    text: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: bool = False,
    choices: Sequence[str] = (),
    read: Callable[[Any], Any] | None = None,
) -> Any:
    """Return a field of an argument class with its default and description (see Meaning)."""
    meaning = Meaning(text, least, most, above, tuple(choices), read)
    if isinstance(default, dict | list):
        return field(default_factory=lambda: default, metadata={_KEY: meaning})
    return field(default=default, metadata={_KEY: meaning})


class ArgumentsError(DecodeError):
    """Arguments are invalid; the paths of its problems begin with `arguments`."""


@dataclass(frozen=True, slots=True)
class Described:
    """One argument, for documentation and validation."""

    name: str  # name in configurations
    attribute: str  # name in the class
    default: Any
    meaning: Meaning
    type: Any


def described(arguments: type) -> Iterator[Described]:
    types = hints_of(arguments)
    for declared in dataclasses.fields(arguments):
        default = declared.default
        if default is dataclasses.MISSING and declared.default_factory is not dataclasses.MISSING:
            default = declared.default_factory()
        meaning = declared.metadata.get(_KEY, Meaning())
        yield Described(
            camel_case(declared.name), declared.name, default, meaning, types[declared.name]
        )


def read(
    arguments: type,
    configured: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Any:
    """Return an instance of the class `arguments` with the configured values.

    Variables of the process, `environ`, override attributes as `env` names them. Invalid values in
    them are ignored with a warning, as in the original agents.

    Raises:
        ArgumentsError: values are invalid; it has all problems.
    """
    try:
        values: dict[str, Any] = decode(_record(arguments), configured, _PATH, _Reading())
    except DecodeError as error:
        raise ArgumentsError(error.problems) from None
    if env and environ:
        values |= _overrides(arguments, environ, env)
    run = DecodingRun()
    try:
        return arguments(**values)
    except DecodeError as error:
        report_below(error.problems, _PATH, run)
    except ValueError as error:  # of conflicting fields
        run.invalid(_PATH, str(error))
    raise ArgumentsError(run.problems)


def _overrides(
    arguments: type, environ: Mapping[str, str], env: Mapping[str, str]
) -> dict[str, Any]:
    by_attribute = {argument.attribute: argument for argument in described(arguments)}
    values = {}
    for variable, attribute in env.items():
        text = environ.get(variable)
        if text is None:
            continue
        argument = by_attribute[attribute]
        try:
            value = _from_string(argument, text)
            values[attribute] = decode(_kind(argument), value, run=FirstProblem())
        except ValueError as error:
            log.warning("Ignored an environment variable", extra=kv(name=variable, why=str(error)))
    return values


class _Reading(DecodingRun):
    def unknown_field(
        self, path: Path, key: str, parent: Mapping[str, Any], record: Record
    ) -> None:
        """Call it an argument, as documentation does."""
        fix = did_you_mean(str(key), record.fields) or (
            f"; use {listing(record.fields)}"
            if record.fields
            else "; remove it: the policy has no arguments"
        )
        self.report(Problem(UNKNOWN_FIELD, (*path, key), f"unknown argument{fix}"))


@cache
def _record(arguments: type) -> Record:
    """Decode the attributes of a class into a dict, which the environment overrides."""
    return Record(
        {
            argument.name: RecordField(argument.attribute, _kind(argument), null_is_absent=False)
            for argument in described(arguments)
        }
    )


def _kind(argument: Described) -> Type:
    meaning = argument.meaning
    if meaning.read is not None:
        return Converted(Anything(), meaning.read)
    number = Number(argument.type is int, meaning.least, meaning.most, meaning.above)
    if argument.type in (int, float):
        return number
    if argument.type is str:
        return String(meaning.choices)
    origin = typing.get_origin(argument.type) or argument.type
    if origin is tuple:
        return ListOf(String(), tuple, expected="a list of strings")
    if origin in (dict, Mapping):
        names = String(meaning.choices)
        return MapOf(number, names, expected="an object of names and numbers")
    return type_of(argument.type)


def _from_string(argument: Described, text: str) -> Any:
    """Convert an environment variable to the type of its argument."""
    if argument.type is bool:
        return text.strip().lower() == "true"
    if argument.type is int:
        return int(text)
    if argument.type is float:
        return float(text)
    return text
