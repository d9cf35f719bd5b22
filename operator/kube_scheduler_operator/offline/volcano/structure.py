"""The structs of Volcano's configuration: values that cannot be decoded, and unknown fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...base.findings import WARNING, Path, Problem, did_you_mean
from ...base.objects import mapping
from .catalogue import VolcanoVersion, later_with
from .values import BOOLEANS, TYPE_NAMES, entries

UNKNOWN_FIELD: Final = "VolcanoUnknownField"
INVALID_TYPE: Final = "VolcanoInvalidType"
REFUSED: Final = "Volcano refuses the file and keeps its previous or built-in configuration"


def structs(config: Mapping[str, Any]) -> Iterator[tuple[str, Path, Any]]:
    """(its name in the record, path, value) of everything that Volcano decodes into a struct."""
    yield "file", (), config
    for index, tier in enumerate(entries(config.get("tiers"))):
        yield "tier", ("tiers", index), tier
        for at, plugin in enumerate(entries(mapping(tier).get("plugins"))):
            yield "plugin", ("tiers", index, "plugins", at), plugin
    for index, action in enumerate(entries(config.get("configurations"))):
        yield "action", ("configurations", index), action


def invalid_types(config: Mapping[str, Any], version: VolcanoVersion) -> Iterator[Problem]:
    """Errors of values that Volcano cannot decode."""
    for struct, path, value in structs(config):
        if value is None:
            continue
        if not isinstance(value, Mapping):
            fix = f"write `name: {value}`" if isinstance(value, str) else "write its fields"
            yield _type(path, "a map", fix)
            continue
        for key, kind in version.fields[struct].items():
            each = value.get(key)
            if not _decodes(kind, each):
                yield _type((*path, key), TYPE_NAMES[kind], _type_fix(kind, each))
            elif kind == "strings":
                for name, one in mapping(each).items():
                    if isinstance(one, Mapping | list):
                        yield _type((*path, key, name), "a string", "write one value")


def _type(path: Path, what: str, fix: str) -> Problem:
    return Problem(INVALID_TYPE, path, f"must be {what}: {REFUSED}", fix)


def _type_fix(kind: str, value: Any) -> str:
    if kind == "string" and isinstance(value, list):
        return f'write the names in one string: "{", ".join(map(str, value))}"'
    if kind == "bool" and isinstance(value, str) and value in BOOLEANS:
        return "remove the quotes"
    if kind == "list" and isinstance(value, Mapping):
        return "begin each entry with `- `"
    return f"write {TYPE_NAMES[kind]}"


def _decodes(kind: str, value: Any) -> bool:
    """Whether yaml.v2 decodes a value into a field; a scalar of any type is a string."""
    if value is None:
        return True
    if kind == "string":
        return not isinstance(value, Mapping | list)
    if kind == "bool":
        return isinstance(value, bool)
    return isinstance(value, list) if kind == "list" else isinstance(value, Mapping)


def unknown_fields(config: Mapping[str, Any], version: VolcanoVersion) -> Iterator[Problem]:
    """Warnings of fields that Volcano ignores."""
    for struct, path, value in structs(config):
        for key in mapping(value):
            if key not in version.fields[struct]:
                yield Problem(
                    UNKNOWN_FIELD,
                    (*path, str(key)),
                    f'Volcano {version.version} has no field "{key}" here and ignores it',
                    _field_fix(str(key), struct, version),
                    WARNING,
                )


def _field_fix(key: str, struct: str, version: VolcanoVersion) -> str:
    hint = did_you_mean(key, version.fields[struct]).removeprefix("; ")
    if hint:
        return hint
    places = {"file": "at the top", "tier": "in an entry of tiers", "plugin": "in the plugin's "
              "entry", "action": "in an entry of configurations"}  # fmt: skip
    for other, place in places.items():
        if key in version.fields[other]:
            return f"move it: it belongs {place}"
    newer = later_with(version, lambda each: key in each.fields[struct])
    return f"use Volcano {newer} or newer" if newer else "remove it"
