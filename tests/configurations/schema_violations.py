"""Configurations that violate a JSON Schema in one place each, made from the schema itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Wrap = tuple[str | int, ...]
"""Keys and, for lists, 0: where the wrong value goes."""


def violations(schema: Mapping[str, Any], base: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(what is wrong, the configuration): wrong types, unknown fields, values out of range.

    Args:
        schema: of the whole configuration.
        base: the fields that every configuration has.
    """
    for path, node, entry in _nodes(schema, (), {}):
        for what, value in _wrong_values(node):
            yield f"{_text(path)} {what}", {**base, **_nested(path, value, entry)}


def _nodes(
    node: Mapping[str, Any], path: Wrap, entry: Mapping[str, Any]
) -> Iterator[tuple[Wrap, Mapping[str, Any], Mapping[str, Any]]]:
    """(path, schema, other fields of the entry of a list on the path) of every value below."""
    if path:
        yield path, node, entry
    for key, item in node.get("properties", {}).items():
        yield from _nodes(item, (*path, key), entry)
    if "items" in node:
        yield from _nodes(node["items"], (*path, 0), entry)
    for branch in (*node.get("allOf", ()), *node.get("anyOf", ())):
        if "then" in branch:
            condition = branch["if"]["properties"]
            name = condition.get("name", {}).get("const")
            below = {"name": name} if name else entry
            yield from _nodes(branch["then"], path, below)
        else:
            yield from _nodes(branch, path, entry)


def _wrong_values(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    types = node.get("type", [])
    types = [types] if isinstance(types, str) else types
    yield from _wrong_types(types)
    if "const" in node or ("enum" in node and types):
        yield "is another word", "Nope"
    if "pattern" in node:
        yield "is not a duration", "15 parsecs"
    if "minimum" in node:
        yield "is too small", node["minimum"] - 1
    if "maximum" in node:
        yield "is too large", node["maximum"] + 1


def _wrong_types(types: Sequence[str]) -> Iterator[tuple[str, Any]]:
    if "object" in types:
        yield "is a text", "x"
        yield "has an unknown field", {"noSuchField": 1}
    elif "array" in types and "string" not in types:
        yield "is a text", "x"
    elif types:
        yield "is an object", {}
        if "string" not in types:
            yield "is a text", "x"
        if "boolean" not in types:
            yield "is a boolean", True
    if "null" not in types and types:
        yield "is null", None


def _nested(path: Wrap, value: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with the value at a path; `entry` completes that of pluginConfig."""
    for index in range(len(path) - 1, -1, -1):
        part = path[index]
        value = [value] if isinstance(part, int) else {part: value}
        if path[:index][-2:] == ("pluginConfig", 0):
            value = {**entry, **value}
    found: dict[str, Any] = value
    return found


def _text(path: Wrap) -> str:
    return ".".join(map(str, path))
