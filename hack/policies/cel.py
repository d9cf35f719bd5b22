"""CEL expressions as text, and strict decoding generated from config/language/schema.py.

Expressions are plain strings. A validating expression evaluates to a string with one line per
mistake, `PATH: MESSAGE`; empty means valid. Only CEL of Kubernetes 1.30 is used: no ranges, no
flattening, no loops over keys and values at once.

An API server's time to compile an expression grows with the square of its lists, maps, fields and
choices, because the type checker copies its state at each of them. Hence many small variables, and
constants instead of computed lists.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Final

from kube_scheduler_operator.config.language.schema import List, Map, Scalar, Struct, Type

LONGEST: Final = 64
"""Validated entries of a list; further ones are left to the operator."""
DURATION: Final = r"^[+-]?(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
BASE64: Final = r"^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$"

_EXPECTED: Final[Mapping[str, str]] = {
    "string": "a string",
    "bool": "true or false",
    "int32": "an integer of 32 bits",
    "int64": "an integer of 64 bits",
    "float": "a number",
    "duration": "a duration such as 15s or 1m30s",
    "bytes": "base64",
}
_numbers = count()


def fresh(stem: str) -> str:
    """A unique variable name."""
    return f"{stem}{next(_numbers)}"


def restart() -> None:
    """Restart the numbering of variables, so that equal rules generate equal text."""
    global _numbers
    _numbers = count()


def text(value: Any) -> str:
    """A literal: a string, number, boolean, list or map."""
    return json.dumps(value, ensure_ascii=False)


def get(owner: str, key: str, default: str) -> str:
    """A field of a map, `default` where it is missing or null."""
    name = text(key)
    return f"({name} in {owner} && {owner}[{name}] != null ? {owner}[{name}] : {default})"


def let(value: str, name: str, body: str) -> str:
    """`body`, in which `name` stands for `value`."""
    return f"[{value}].map({name}, {body})[0]"


def lines(parts: Iterable[str]) -> str:
    """The lines of several expressions."""
    found = list(parts)
    if not found:
        return '""'
    return found[0] if len(found) == 1 else joined(f"[{', '.join(found)}]")


def joined(items: str) -> str:
    """The lines of a list of lines."""
    return f'{items}.filter(s, s != "").join("\\n")'


def each(items: str, body: str, index: str, item: str) -> str:
    """The lines of `body` for every entry of a list, which `index` and `item` stand for."""
    at = f"variables.indices.map({index}, {index} < {items}.size(), "
    return joined(f"{at}{let(f'{items}[{index}]', item, body)})")


def when(condition: str, message: str) -> str:
    """The line if the condition is true, else an empty string."""
    return f'({condition} ? {message} : "")'


def at(path: str, *steps: str) -> str:
    """A path expression extended by literal keys or `[variable]`."""
    for step in steps:
        if step.startswith("["):
            path = f'{path} + "[" + string({step[1:-1]}) + "]"'
        elif path.endswith('"'):
            path = f'{path[:-1]}.{step}"'
        else:
            path = f'{path} + ".{step}"'
    return path


def problem(path: str, message: str) -> str:
    """A line with a path expression and a message."""
    return f"{path} + {text(': ' + message)}"


def before(items: str, index: str, field: str, expected: str) -> str:
    """Whether an earlier entry of a list has the same value in a field."""
    value = let(f"{items}[h]", "o", get("o", field, text("")))
    return f"variables.indices.exists(h, h < {index} && {value} == {expected})"


def decode(kind: Type, value: str, path: str) -> str:
    """The errors of strict decoding, as in config/language/decode.py.

    Args:
        kind: the required type.
        value: a cheap expression, such as a variable's name.
        path: an expression for its path.
    """
    if isinstance(kind, Struct):
        wrong = problem(path, "must be an object")
        return f"(type({value}) != map ? {wrong} : {_fields(kind, value, path)})"
    if isinstance(kind, List):
        wrong = problem(path, "must be a list")
        return f"(type({value}) != list ? {wrong} : {_entries(kind, value, path)})"
    if isinstance(kind, Map):
        key = fresh("k")
        wrong = problem(path, "must be an object")
        item = problem(f'{path} + "." + {key}', f"must be {_EXPECTED[str(kind.item)]}")
        inside = f"{value}.map({key}, !({is_a(str(kind.item), f'{value}[{key}]')}), {item})"
        return f'(type({value}) != map ? {wrong} : {inside}.join("\\n"))'
    if kind == "any":
        return '""'
    return when(f"!({is_a(kind, value)})", problem(path, f"must be {_EXPECTED[kind]}"))


def is_a(kind: str, value: str) -> str:
    """Whether a value has a scalar's type; the API server stores 5.0 as 5."""
    if kind == "string":
        return f"type({value}) == string"
    if kind == "bool":
        return f"type({value}) == bool"
    if kind == "duration":
        return f"type({value}) == string && {value}.matches({text(DURATION)})"
    if kind == "bytes":
        return f"type({value}) == string && {value}.matches({text(BASE64)})"
    if kind == "float":
        return f"type({value}) == int || type({value}) == double"
    low, high = (
        ("-2147483648", "2147483647")
        if kind == "int32"
        else ("-9223372036854774784", "9223372036854774784")
    )
    fits = f"{value} >= {low} && {value} <= {high}"
    whole = f"type({value}) == double && {fits} && double(int({value})) == {value}"
    return (
        f"type({value}) == int && {fits} || {whole}"
        if kind == "int32"
        else f"type({value}) == int || {whole}"
    )


def _entries(kind: List, value: str, path: str) -> str:
    index, item = fresh("i"), fresh("e")
    if kind.item == "any":
        return '""'
    return each(value, decode(kind.item, item, at(path, f"[{index}]")), index, item)


def _fields(kind: Struct, value: str, path: str) -> str:
    since = kind.since or {}
    always = [name for name in kind.fields if name not in since]
    parts = [_unknown(value, path, always, since)]
    for fields, of in _alike(kind):
        if of == "any":
            continue
        key, item = fresh("k"), fresh("v")
        below = f'{path} + "." + {key}'
        here = f"{text(fields)}.map({key}, {key} in {value} && {value}[{key}] != null"
        if isinstance(of, str):
            wrong = problem(below, f"must be {_EXPECTED[of]}")
            parts.append(f'{here} && !({is_a(of, f"{value}[{key}]")}), {wrong}).join("\\n")')
        else:
            inside = decode(of, item, below)
            parts.append(joined(f"{here}, {let(f'{value}[{key}]', item, inside)})"))
    return lines(parts)


def _unknown(value: str, path: str, always: list[str], since: Mapping[str, int]) -> str:
    """Fields that no version has, or that a later version adds."""
    key = fresh("k")
    below = f'{path} + "." + {key}'
    everything = [*always, *since]
    hint = text(f" has no such field; remove it, or write one of {', '.join(everything)}")
    message = f'{below} + ": kube-scheduler" + variables.version + {hint}'
    never = f"!({key} in {text(everything)})"
    found = [f'{value}.map({key}, {never}, {message}).join("\\n")']
    for first in sorted(set(since.values())):
        new = [field for field, minor in since.items() if minor == first]
        later = problem(below, f"this field was added in Kubernetes 1.{first}; remove it")
        found.append(
            f"(variables.minor >= 0 && variables.minor < {first} ? "
            f'{text(new)}.map({key}, {key} in {value}, {later}).join("\\n") : "")'
        )
    return f'(variables.onRecord ? {lines(found)} : "")'


def _alike(kind: Struct) -> list[tuple[list[str], Type]]:
    """The fields of a struct by their types."""
    found: list[tuple[list[str], Type]] = []
    for name, of in kind.fields.items():
        same = next((names for names, known in found if known is of or known == of), None)
        if same is None:
            found.append(([name], of))
        else:
            same.append(name)
    return found


def wrapped(expression: str, indent: int, width: int = 100) -> str:
    """An expression in lines; spaces inside of its strings stay together."""
    # Wrapping would drop a space in a literal at the end of a line, so spaces are masked.
    hidden, inside, escaped = [], False, False
    for character in expression:
        if character == '"' and not escaped:
            inside = not inside
        escaped = character == "\\" and not escaped
        hidden.append("\0" if inside and character == " " else character)
    filled = textwrap.wrap(
        "".join(hidden), width - indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(" " * indent + line.replace("\0", " ") for line in filled)


__all__ = [
    "Scalar",
    "at",
    "before",
    "decode",
    "each",
    "fresh",
    "get",
    "is_a",
    "joined",
    "let",
    "lines",
    "problem",
    "restart",
    "text",
    "when",
    "wrapped",
]  # fmt: skip
