"""Validation of objects against the schema of their CustomResourceDefinition.

Only structural rules: types, fields, enumerations, ranges. The API server evaluates CEL rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import yaml

from . import assets
from .decoding import INVALID_TYPE, INVALID_VALUE, MISSING_FIELD, UNKNOWN_FIELD
from .findings import Path, Problem, did_you_mean, listing

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_ARTICLES: Final = {"object": "an object", "array": "a list", "integer": "an integer"}
_REMOVE: Final = "remove it"
_META: Final = ("apiVersion", "kind", "metadata")
_STRINGS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _STRINGS,
        "annotations": _STRINGS,
    },
    "x-kubernetes-preserve-unknown-fields": True,
}
"""The fields of ObjectMeta that people write."""


def validate_object(value: Mapping[str, Any], definition: str, version: str) -> Iterator[Problem]:
    """Yield the problems for which an API server rejects an object or drops fields.

    `definition` is a file in crds/. A known field without a value counts as absent.

    Raises:
        KeyError: the definition has no such version.
    """
    if value.get("metadata") is not None:
        yield from _check(value["metadata"], _METADATA, ("metadata",))
    schema = openapi_schema(definition, version)
    fields = {key: item for key, item in value.items() if key not in _META and key != "status"}
    required = [key for key in schema.get("required", ()) if key not in _META]
    for problem in _check(fields, {**schema, "required": required}, ()):
        if problem.reason == UNKNOWN_FIELD and problem.fix == _REMOVE:
            place = _places(definition, version).get(str(problem.path[-1]))
            problem = replace(problem, fix=f"move it to {place}") if place else problem
        yield problem


@cache
def _places(definition: str, version: str) -> Mapping[str, str]:
    """Map the fields that the schema has at only one path to that path."""
    places_by_key: dict[str, list[str]] = {}

    def walk(schema: Mapping[str, Any], path: str) -> None:
        for key, item in schema.get("properties", {}).items():
            place = f"{path}.{key}" if path else key
            places_by_key.setdefault(key, []).append(place)
            walk(item, place)
        if "items" in schema:
            walk(schema["items"], f"{path}[]")

    spec = openapi_schema(definition, version).get("properties", {}).get("spec", {})
    walk(spec, "spec")
    return {key: places[0] for key, places in places_by_key.items() if len(places) == 1}


@cache
def openapi_schema(definition: str, version: str) -> Mapping[str, Any]:
    """Read the schema of a CustomResourceDefinition.

    Raises:
        KeyError: the definition has no such version.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(assets.text("crds", definition), loader)  # noqa: S506  # a safe loader
    for served in document["spec"]["versions"]:
        if served["name"] == version:
            schema: Mapping[str, Any] = served["schema"]["openAPIV3Schema"]
            return schema
    raise KeyError(version)


def _check(value: Any, schema: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    if value is None and schema.get("nullable"):
        return
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        wrong = isinstance(value, bool) or not isinstance(value, int | str)
        expected = "a number or a string"
    else:
        wrong = bool(kind) and not isinstance(value, _TYPES[kind])
        wrong = wrong or (isinstance(value, bool) and kind in ("integer", "number"))
        expected = _ARTICLES.get(kind, f"a {kind}")
    if wrong:
        yield Problem(INVALID_TYPE, path, f"must be {expected}", f"write {expected}")
    elif isinstance(value, dict):
        yield from _fields(value, schema, path)
    elif isinstance(value, list):
        yield from _length(len(value), schema, "Items", "entries", path)
        for index, item in enumerate(value):
            yield from _check(item, schema.get("items", {}), (*path, index))
    else:
        yield from _scalar(value, schema, path)


def _fields(value: Mapping[str, Any], schema: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    known: Mapping[str, Any] = schema.get("properties", {})
    others = schema.get("additionalProperties")
    open_ = schema.get("x-kubernetes-preserve-unknown-fields") or (not known and others is None)
    for key in schema.get("required", ()):
        if value.get(key) is None:
            yield Problem(MISSING_FIELD, (*path, key), "is required", f"set {key}")
    for key, item in value.items():
        if key in known or isinstance(others, Mapping):
            if item is not None:
                yield from _check(item, known.get(key, others), (*path, key))
        elif not open_ and not others:
            hint = did_you_mean(key, known).removeprefix("; ")
            yield Problem(UNKNOWN_FIELD, (*path, key), f'unknown field "{key}"', hint or _REMOVE)


def _scalar(value: Any, schema: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        names = [str(item) for item in allowed if item != ""]
        hint = did_you_mean(str(value), names).removeprefix("; ")
        yield Problem(
            INVALID_VALUE, path, f'"{value}" is not supported', hint or f"use {listing(names)}"
        )
    if isinstance(value, str):
        yield from _length(len(value), schema, "Length", "characters", path)
        pattern = schema.get("pattern")
        if pattern and not re.search(pattern, value):
            yield Problem(
                INVALID_VALUE,
                path,
                f'"{value}" does not match {pattern}',
                "write a value that does",
            )
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            least = schema["minimum"]
            yield Problem(INVALID_VALUE, path, f"{value} is too small", f"use {least} or more")
        if value > schema.get("maximum", value):
            most = schema["maximum"]
            yield Problem(INVALID_VALUE, path, f"{value} is too large", f"use {most} or less")


def _length(
    length: int, schema: Mapping[str, Any], suffix: str, what: str, path: Path
) -> Iterator[Problem]:
    least, most = schema.get(f"min{suffix}", 0), schema.get(f"max{suffix}")
    if length < least:
        yield Problem(INVALID_VALUE, path, f"{length} {what} are too few", f"use at least {least}")
    if most is not None and length > most:
        yield Problem(INVALID_VALUE, path, f"{length} {what} are too many", f"use at most {most}")
