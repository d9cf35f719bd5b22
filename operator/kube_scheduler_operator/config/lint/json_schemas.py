"""The JSON Schemas for editors, of every kind that users write, and their entry in a catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...base.crd_schema import openapi_schema
from ...kube.resource import CONFIGURED
from ..language.json_schema import DRAFT, configuration_schema
from ..language.plugins.in_tree_plugins import NEWEST, NEWEST_RELEASE, OLDEST
from ..language.schema import KIND
from ..language.versions import Version

BASE: Final = "https://kube-scheduler-operator.dev/schemas"
"""An identifier, as in the group of the kinds; nothing is published there."""
KINDS: Final = (KIND, *CONFIGURED)
"""The kinds with a schema."""
CATALOG: Final = "catalog.json"

_KEPT: Final = (
    "description", "enum", "format", "maxItems", "maxLength", "maxProperties", "maximum",
    "minItems", "minLength", "minProperties", "minimum", "pattern", "required", "default",
)  # fmt: skip
"""The keywords that OpenAPI and JSON Schema share."""
_NOT_SHARED: Final = ("int32", "int64", "float", "double", "byte", "date-time")
"""Formats that editors do not know, or know differently."""


def schema_of(kind: str, version: Version) -> dict[str, Any]:
    """Return the schema of a kind, for one version of Kubernetes.

    Raises:
        KeyError: the kind has no schema.
    """
    if kind == KIND:
        schema = configuration_schema(version)
        title = f"{kind} of kube-scheduler {version.short}"
    else:
        resource = CONFIGURED[kind]
        schema = _object(openapi_schema(f"{resource.name}.yaml", resource.version))
        schema["properties"] |= {
            "apiVersion": {"const": f"{resource.group}/{resource.version}"},
            "kind": {"const": kind},
            "metadata": {"type": "object", "required": ["name"]},
        }
        schema["properties"].pop("status", None)
        schema["required"] = sorted({*schema.get("required", ()), "apiVersion", "kind", "metadata"})
        schema["type"] = "object"
        title = f"{kind} of kube-scheduler-operator"
    return {"$schema": DRAFT, "$id": f"{BASE}/{file_name(kind, version)}", "title": title, **schema}


def file_name(kind: str, version: Version) -> str:
    """Return the name of a schema's file: `kubeschedulerconfiguration-1.35.json`."""
    suffix = f"-{version.short}" if kind == KIND else ""
    return f"{kind.lower()}{suffix}.json"


def recorded_versions() -> list[Version]:
    """Return the versions of Kubernetes whose configurations differ, oldest first."""
    return [Version(1, minor) for minor in range(OLDEST.minor, NEWEST.minor + 1)]


def schema_files() -> dict[str, dict[str, Any]]:
    """Return all schemas of all versions, and the entries of a catalogue, by file name."""
    versions = recorded_versions()
    files = {file_name(KIND, version): schema_of(KIND, version) for version in versions}
    files |= {file_name(kind, NEWEST): schema_of(kind, NEWEST) for kind in CONFIGURED}
    return {**files, CATALOG: catalog()}


def catalog() -> dict[str, Any]:
    """Return the entries for a catalogue of schemas such as schemastore.org's.

    A file can only be matched by its name. Objects of the operator have no usual names.
    """
    by_version = {
        version.short: f"{BASE}/{file_name(KIND, version)}" for version in recorded_versions()
    }
    entry = {
        "name": KIND,
        "description": "Configuration of kube-scheduler",
        "fileMatch": [
            "kube-scheduler-config.yaml", "kube-scheduler-config.yml",
            "kube-scheduler-configuration.yaml", "kube-scheduler-configuration.yml",
            "*.kubeschedulerconfiguration.yaml", "*.kubeschedulerconfiguration.yml",
            "*.kubeschedulerconfiguration.json",
        ],
        "url": by_version[NEWEST_RELEASE.short],
        "versions": by_version,
    }  # fmt: skip
    return {"version": 1, "schemas": [entry]}


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an OpenAPI schema to JSON Schema.

    Unknown fields are rejected, as by kubectl. Null is allowed everywhere: the API server drops it.
    """
    written = {key: schema[key] for key in _KEPT if key in schema}
    if written.get("format") in _NOT_SHARED:
        del written["format"]
    if schema.get("x-kubernetes-int-or-string"):
        return {**written, "type": ["integer", "string", "null"]}
    if "type" in schema:
        written["type"] = [schema["type"], "null"]
    if "enum" in written:
        written["enum"] = [*written["enum"], None]
    if "items" in schema:
        written["items"] = _object(schema["items"])
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        written["additionalProperties"] = _object(others)
    if "properties" in schema:
        written["properties"] = {key: _object(item) for key, item in schema["properties"].items()}
        if others is None and not schema.get("x-kubernetes-preserve-unknown-fields"):
            written["additionalProperties"] = False
    return written
