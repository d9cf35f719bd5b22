"""The JSON Schemas: they refuse nothing that the check accepts, and are complete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kube_scheduler_operator.base.crd_schema import validate_object
from kube_scheduler_operator.base.objects import mapping
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.json_schema import DESCRIPTIONS
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST_RELEASE
from kube_scheduler_operator.config.language.schema import API_VERSION, KIND
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.json_schemas import (
    CATALOG,
    KINDS,
    catalog,
    recorded_versions,
    schema_files,
    schema_of,
)
from kube_scheduler_operator.config.lint.rules import RULES
from kube_scheduler_operator.kube.resource import CONFIGURED

from ....configurations.completed import defaulted_config
from ....configurations.generate import configurations
from ....configurations.schema_violations import violations

ROOT = Path(__file__).resolve().parents[4]
VERSIONS = recorded_versions()
BASE = {"apiVersion": API_VERSION, "kind": KIND}


def validator(kind: str, version: Version = VERSIONS[-1]) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(schema_of(kind, version))


def refuses(schema: jsonschema.Draft7Validator, value: Any) -> bool:
    return next(schema.iter_errors(value), None) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_every_schema_is_a_schema(kind: str) -> None:
    for version in VERSIONS if kind == KIND else VERSIONS[-1:]:
        jsonschema.Draft7Validator.check_schema(schema_of(kind, version))


@pytest.mark.parametrize("version", VERSIONS[::2], ids=lambda each: each.short)
def test_what_the_schema_refuses_the_check_refuses(version: Version) -> None:
    """tests/integration shows the same of kube-scheduler itself, with all configurations."""
    schema = validator(KIND, version)
    counts = {True: 0, False: 0}
    for made in configurations(version.minor)[:: len(VERSIONS)]:
        refused = refuses(schema, made.config)
        invalid = bool(validate_config(made.config, Target(Gates(version, made.gates))))
        assert invalid or not refused, made.text
        counts[refused] += invalid
    assert counts[True] > 0.3 * sum(counts.values())  # of what the check refuses


@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]], ids=lambda each: each.short)
def test_every_rule_of_the_schema_is_one_of_the_check(version: Version) -> None:
    schema = validator(KIND, version)
    made = list(violations(schema_of(KIND, version), BASE))
    assert len(made) > 400
    for what, config in made:
        assert refuses(schema, config), what
        assert validate_config(config, Target(Gates(version))), what


@pytest.mark.parametrize("kind", CONFIGURED)
def test_what_the_schema_of_an_object_refuses_the_definition_refuses(kind: str) -> None:
    resource = CONFIGURED[kind]
    schema = validator(kind)
    head = {
        "apiVersion": f"{resource.group}/{resource.version}", "kind": kind,
        "metadata": {"name": "cluster"},
    }  # fmt: skip
    spec = dict(mapping(schema.schema))["properties"]["spec"]
    made = list(violations({"properties": {"spec": spec}}, head))
    assert len(made) > 5
    for what, value in made:
        problems = list(validate_object(value, f"{resource.name}.yaml", resource.version))
        assert problems or not refuses(schema, value), what


def test_valid_examples_are_valid_for_their_schema() -> None:
    checked = 0
    for file in sorted((ROOT / "docs" / "examples").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document["kind"] in KINDS:
                errors = list(validator(document["kind"]).iter_errors(document))
                assert errors == [], file.name
                checked += 1
    assert checked > 15


def test_versions_differ_by_their_fields_and_plugins() -> None:
    def points(version: Version) -> set[str]:
        profile = schema_of(KIND, version)["properties"]["profiles"]["items"]
        return set(profile["properties"]["plugins"]["properties"])

    assert points(Version(1, 37)) - points(Version(1, 35)) == {
        "placementGenerate", "placementScore", "podGroupPostFilter",
    }  # fmt: skip
    assert points(Version(1, 38)) - points(Version(1, 37)) == {"placementFeasible"}


def test_the_schema_of_a_file_without_a_version_is_that_of_the_newest_release() -> None:
    (entry,) = catalog()["schemas"]
    assert entry["url"] == entry["versions"][NEWEST_RELEASE.short]


def test_plugins_are_suggested_where_they_work_and_others_are_allowed() -> None:
    profile = schema_of(KIND, Version(1, 35))["properties"]["profiles"]["items"]
    lists = profile["properties"]["plugins"]["properties"]["score"]["properties"]
    offered, others = lists["enabled"]["items"]["properties"]["name"]["anyOf"]
    assert "ImageLocality" in offered["enum"]
    assert "NodePorts" not in offered["enum"]
    assert others == {"type": ["string", "null"]}


def test_every_list_of_values_has_one() -> None:
    """Editors refuse a whole schema with an empty list, which draft 7 only discourages."""

    def lists(node: Any) -> Iterator[list[Any]]:
        for key, item in node.items() if isinstance(node, dict) else enumerate(node):
            if key in ("enum", "anyOf", "allOf", "required"):
                yield item
            if isinstance(item, dict | list):
                yield from lists(item)

    for name, schema in schema_files().items():
        assert all(lists(schema)), name


def test_fields_have_descriptions_and_the_defaults_of_their_version() -> None:
    schema = schema_of(KIND, Version(1, 35))
    fields = schema["properties"]
    assert fields["parallelism"]["default"] == 16
    assert fields["leaderElection"]["properties"]["leaseDuration"]["default"] == "15s"
    assert fields["extenders"]["items"]["properties"]["httpTimeout"]["default"] == "5s"
    assert missing_descriptions(schema) == []
    for path in DESCRIPTIONS:
        assert DESCRIPTIONS[path].endswith("."), path


@pytest.mark.parametrize("version", recorded_versions(), ids=str)
def test_the_defaults_are_those_of_a_completed_configuration(version: Version) -> None:
    least = {"apiVersion": API_VERSION, "kind": KIND, "extenders": [{"urlPrefix": "x"}]}
    completed = defaulted_config(least, Target(Gates(version)))
    (profile,), (extender,) = completed.pop("profiles"), completed.pop("extenders")
    expected = {**values(completed), "extenders[].httpTimeout": extender["httpTimeout"]}
    for entry in profile["pluginConfig"]:
        expected |= values(entry["args"], f"{entry['name']}.")
    typed = (".apiVersion", ".kind")
    expected = {path: value for path, value in expected.items() if not path.endswith(typed)}
    schema = schema_of(KIND, version)
    profiles = schema["properties"]["profiles"]["items"]["properties"]
    shown = defaults(schema)
    for rule in profiles["pluginConfig"]["items"]["allOf"]:
        plugin = rule["if"]["properties"]["name"]["const"]
        shown |= defaults(rule["then"]["properties"]["args"], f"{plugin}.")
    assert shown == {
        path: value
        for path, value in expected.items()
        if value not in (None, "", []) and path not in ("apiVersion", "kind")
    }


def values(document: Any, prefix: str = "") -> dict[str, Any]:
    """The values of a document by path; lists count as values."""
    by_path: dict[str, Any] = {}
    for key, item in document.items():
        nested = isinstance(item, dict)
        by_path |= values(item, f"{prefix}{key}.") if nested else {f"{prefix}{key}": item}
    return by_path


def defaults(schema: Any, prefix: str = "") -> dict[str, Any]:
    """The defaults in a schema by path."""
    by_path: dict[str, Any] = {}
    for key, item in schema.get("properties", {}).items():
        if "default" in item:
            by_path[f"{prefix}{key}"] = item["default"]
        by_path |= defaults(item, f"{prefix}{key}.")
        by_path |= defaults(item.get("items", {}), f"{prefix}{key}[].")
    return by_path


def missing_descriptions(node: Any, path: str = "") -> list[str]:
    """The fields without description; those of the core API's types have their own manual."""
    found: list[str] = []
    for key, item in node.get("properties", {}).items():
        where = f"{path}.{key}"
        if "description" not in item and "addedAffinity" not in where:
            found.append(where)
        found += missing_descriptions(item, where)
    if "items" in node:
        found += missing_descriptions(node["items"], f"{path}[]")
    return found


def test_all_files_have_the_name_of_their_id_and_the_catalogue_names_them() -> None:
    files = schema_files()
    catalogue = files.pop(CATALOG)
    for name, schema in files.items():
        assert schema["$id"].endswith(f"/schemas/{name}")
    (entry,) = catalogue["schemas"]
    names = {url.rpartition("/")[2] for url in (entry["url"], *entry["versions"].values())}
    assert names <= set(files)
    assert len(entry["versions"]) == len(VERSIONS)


def test_examples_of_rules_about_fields_are_refused_by_the_schema() -> None:
    schema = validator(KIND, Version(1, 35))
    for name in ("UnknownField", "InvalidType", "InvalidPluginArgs", "InvalidConfiguration"):
        assert refuses(schema, yaml.safe_load(RULES[name].example)), name
    for name in ("SafetyFilterOff", "OutvotedPlugins", "SampledTooFew"):
        assert not refuses(schema, yaml.safe_load(RULES[name].example)), name
