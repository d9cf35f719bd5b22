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
from typing import Any, Final

from ..base.findings import did_you_mean, listing
from ..base.klog import kv

log = logging.getLogger(__name__)

_KEY: Final = "argument"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The description of an argument.

    Attributes:
        text: documentation, with the unit.
        least, most: bounds of a number.
        above: whether `least` itself is excluded.
        choices: allowed strings.
        read: converts the configured value; raises ValueError, whose message follows the field's
            name. None: the type of the field determines the conversion.
    """

    text: str = ""
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    choices: tuple[str, ...] = ()
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
    """A field of an argument class with its default and description (see Meaning)."""
    meaning = Meaning(text, least, most, above, tuple(choices), read)
    if isinstance(default, dict | list):
        return field(default_factory=lambda: default, metadata={_KEY: meaning})
    return field(default=default, metadata={_KEY: meaning})


class ProblemsError(ValueError):
    """User input is invalid.

    Attributes:
        problems: messages, each with its field and a fix.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class ArgumentsError(ProblemsError):
    """Arguments are invalid."""


@dataclass(frozen=True, slots=True)
class Described:
    """One argument, for documentation and validation.

    Attributes:
        name: name in configurations.
        attribute: name in the class.
        default: default value.
        meaning: description.
        type: type of the value.
    """

    name: str
    attribute: str
    default: Any
    meaning: Meaning
    type: Any


def described(arguments: type) -> Iterator[Described]:
    """The arguments declared by a class."""
    types = typing.get_type_hints(arguments)
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
    path: str = "arguments",
) -> Any:
    """An instance of `arguments`.

    Args:
        arguments: the class.
        configured: the configured values.
        environ: the process's environment, which overrides them. Invalid values in it are ignored
            with a warning, as in the original agents.
        env: environment variable to attribute.
        path: path of `configured`, for errors.

    Raises:
        ArgumentsError: values are invalid; it has all problems.
    """
    known = {argument.name: argument for argument in described(arguments)}
    values: dict[str, Any] = {}
    problems = []
    for name, value in configured.items():
        argument = known.get(name)
        if argument is None:
            hint = did_you_mean(str(name), known)
            fix = hint or (
                f"; use {listing(known)}" if known else "; remove it: the policy has no arguments"
            )
            problems.append(f"{path}.{name}: unknown argument{fix}")
            continue
        try:
            values[argument.attribute] = _value(argument, value)
        except ValueError as error:
            problems.append(f"{path}.{name}: {error}")
    if problems:
        raise ArgumentsError(problems)
    by_attribute = {argument.attribute: argument for argument in known.values()}
    for variable, attribute in (env or {}).items():
        text = (environ or {}).get(variable)
        if text is None:
            continue
        try:
            values[attribute] = _value(
                by_attribute[attribute], _from_string(by_attribute[attribute], text)
            )
        except ValueError as error:
            log.warning("Ignored an environment variable", extra=kv(name=variable, why=str(error)))
    try:
        return arguments(**values)
    except ArgumentsError:
        raise
    except ValueError as error:  # raised by __post_init__ for conflicting fields
        raise ArgumentsError([f"{path}: {error}"]) from error


def camel_case(name: str) -> str:
    """`print_table` as `printTable`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _value(argument: Described, value: Any) -> Any:
    meaning = argument.meaning
    if meaning.read is not None:
        return meaning.read(value)
    origin = typing.get_origin(argument.type) or argument.type
    if origin is bool:
        return _boolean(value)
    if origin in (int, float):
        return _number(value, meaning, whole=origin is int)
    if origin is str:
        return _word(value, meaning)
    if origin is tuple:
        return _words(value)
    if origin in (dict, Mapping):
        return _numbers(value, meaning)
    raise ValueError(f"arguments of type {argument.type} need a `read` of their own")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("this must be true or false")
    return value


def _word(value: Any, meaning: Meaning) -> str:
    if not isinstance(value, str):
        raise ValueError("this must be a string")
    if meaning.choices and value not in meaning.choices:
        hint = did_you_mean(value, meaning.choices) or f"; use {listing(meaning.choices)}"
        raise ValueError(f'"{value}" is not known{hint}')
    return value


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("this must be a list of strings")
    return tuple(value)


def _numbers(value: Any, meaning: Meaning) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise ValueError("this must be an object of names and numbers")
    numbers = {}
    for name, number in value.items():
        if meaning.choices and name not in meaning.choices:
            hint = did_you_mean(str(name), meaning.choices)
            fix = hint or f"; use {listing(meaning.choices)}"
            raise ValueError(f'"{name}" is not known{fix}')
        try:
            numbers[str(name)] = _number(number, meaning, whole=False)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return numbers


def _number(value: Any, meaning: Meaning, *, whole: bool) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"this must be {'an integer' if whole else 'a number'}{_within(meaning)}")
    if not math.isfinite(value) or (whole and value != int(value)):
        raise ValueError(f"{value} is not {'an integer' if whole else 'a number'}")
    low = value <= meaning.least if meaning.above else value < meaning.least
    if low or value > meaning.most:
        raise ValueError(f"{value} is not{_within(meaning)}")
    return int(value) if whole else float(value)


def _within(meaning: Meaning) -> str:
    least, most = meaning.least, meaning.most
    if math.isfinite(least) and math.isfinite(most):
        between = f" between {least:g} and {most:g}"
        return f"{between}, without {least:g} itself" if meaning.above else between
    if math.isfinite(least):
        return f" greater than {least:g}" if meaning.above else f" {least:g} or more"
    return f" {most:g} or less" if math.isfinite(most) else ""


def _from_string(argument: Described, text: str) -> Any:
    """The value of an environment variable, by the type of its argument."""
    if argument.type is bool:
        return text.strip().lower() == "true"
    if argument.type is int:
        return int(text)
    if argument.type is float:
        return float(text)
    return text
