"""Pages of the site about the fields of each kind, from the CustomResourceDefinitions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from cluster import paths

CRDS: Final = paths.REPOSITORY / "crds"
_SHOWN: Final = 60
"""Characters of a default that a cell of a table shows."""


def pages(folder: Path = CRDS) -> dict[str, str]:
    """The pages by their path relative to docs/, one for each kind."""
    found = {}
    for path in sorted(folder.glob("*.*.yaml")):
        definition = yaml.safe_load(path.read_text(encoding="utf-8"))
        name = definition["spec"]["names"]["plural"]
        found[f"fields/{name}.md"] = "\n".join(_page(definition, path.name)) + "\n"
    return found


def _page(definition: Mapping[str, Any], file: str) -> Iterator[str]:
    spec = definition["spec"]
    kind = spec["names"]["kind"]
    yield f"# Fields of {kind}\n"
    singular = spec["names"]["singular"]
    yield (
        f"From [crds/{file}](../../crds/{file}), as `kubectl explain {singular} --recursive` "
        f"shows them. Group `{spec['group']}`, scope {spec['scope']}.\n"
    )
    if short := spec["names"].get("shortNames"):
        yield f"Short names: {', '.join(f'`{each}`' for each in short)}.\n"
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        for part in ("spec", "status"):
            if part in schema.get("properties", {}):
                yield f"## {version['name']}: {part}\n"
                yield "| Field | Type | Meaning |"
                yield "|---|---|---|"
                yield from _rows(part, schema["properties"][part], required=False)
                yield ""


def _rows(path: str, schema: Mapping[str, Any], *, required: bool) -> Iterator[str]:
    notes = ["required"] if required else []
    if "default" in schema:
        value = json.dumps(schema["default"])
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        notes.append(f"default `{shown.replace('|', chr(92) + '|')}`")
    if values := schema.get("enum"):
        notes.append("one of " + ", ".join(f"`{value}`" for value in values if value != ""))
    text = plain(schema.get("description", ""))
    meaning = f"{text} ({'; '.join(notes)})" if notes and text else text or "; ".join(notes)
    yield f"| `{path}` | {_type(schema)} | {meaning} |"
    inner, below = schema, path
    if schema.get("type") == "array":
        inner, below = schema.get("items", {}), f"{path}[]"
    elif isinstance(schema.get("additionalProperties"), Mapping):
        inner, below = schema["additionalProperties"], f"{path}.KEY"
    for name, each in inner.get("properties", {}).items():
        yield from _rows(f"{below}.{name}", each, required=name in inner.get("required", ()))


def _type(schema: Mapping[str, Any]) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"map of {_type(schema['additionalProperties'])}"
    return str(schema.get("format") or schema.get("type") or "any")


def plain(text: str) -> str:
    """A description as the text of a cell: one line, nothing of it is markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))
