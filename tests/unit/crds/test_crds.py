"""Properties of the CustomResourceDefinitions, read from their files. Their use by the API server:
tests/integration/test_crds.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kube_scheduler_operator.base import assets, names
from kube_scheduler_operator.config.effective.control_plane.tls_profiles import TYPES
from kube_scheduler_operator.config.effective.profiles.check import BASES
from kube_scheduler_operator.config.effective.secondary.request import DEFAULT_REPLICAS
from kube_scheduler_operator.config.language.flags import TLS_VERSIONS
from kube_scheduler_operator.config.language.schema import POINTS
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
    Resource,
)
from kube_scheduler_operator.operator.status.readiness import UNSEEN

if TYPE_CHECKING:
    from collections.abc import Iterator

RESOURCES = {
    names.SCHEDULERS: SCHEDULERS,
    names.KUBESCHEDULERS: KUBE_SCHEDULERS,
    names.CLUSTEROPERATORS: CLUSTER_OPERATORS,
    names.SCHEDULEREXTENDERS: SCHEDULER_EXTENDERS,
    names.SCHEDULERPROFILES: SCHEDULER_PROFILES,
    names.SECONDARYSCHEDULERS: SECONDARY_SCHEDULERS,
    names.LOADPOLICIES: LOAD_POLICIES,
    names.OPERATORSETTINGS: OPERATOR_SETTINGS,
}
CRDS: dict[str, dict[str, Any]] = {
    name: yaml.safe_load(assets.text("crds", f"{name}.yaml")) for name in RESOURCES
}
OWN = [name for name in CRDS if name.endswith(names.PREFIX)]
"""The kinds of our group."""
each_crd = pytest.mark.parametrize("name", CRDS)


def version(name: str) -> dict[str, Any]:
    (only,) = CRDS[name]["spec"]["versions"]
    assert isinstance(only, dict)
    return only


def schema(name: str, path: str = "") -> dict[str, Any]:
    """The schema of the field at `path`; `[]` stands for the items of a list."""
    node: dict[str, Any] = version(name)["schema"]["openAPIV3Schema"]
    for step in path.replace("[]", ".[]").split(".") if path else []:
        node = node["items"] if step == "[]" else node["properties"][step]
    return node


def fields(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for key, child in node.get("properties", {}).items():
        yield f"{path}.{key}", child
        yield from fields(child, f"{path}.{key}")
    if "items" in node:
        yield f"{path}[]", node["items"]
        yield from fields(node["items"], f"{path}[]")


def rules(node: dict[str, Any]) -> list[str]:
    return [rule["rule"] for rule in node.get("x-kubernetes-validations", [])]


def test_there_is_one_file_per_kind() -> None:
    files = {f.name for f in assets.directory("crds").iterdir() if f.name.endswith(".yaml")}
    assert files >= {f"{name}.yaml" for name in CRDS}
    kustomization = yaml.safe_load(assets.text("crds", "kustomization.yaml"))
    assert {*kustomization["resources"], "kustomization.yaml"} == files


@each_crd
def test_names_equal_those_in_the_program(name: str) -> None:
    crd, resource = CRDS[name], RESOURCES[name]
    spec = crd["spec"]
    served = Resource(
        spec["group"],
        version(name)["name"],
        spec["names"]["plural"],
        spec["names"]["kind"],
        namespaced=spec["scope"] == "Namespaced",
    )
    assert served == resource
    assert crd["metadata"]["name"] == name == resource.name
    assert spec["names"]["listKind"] == f"{resource.kind}List"


@each_crd
def test_one_stored_version_with_status_subresource_and_required_spec(name: str) -> None:
    only = version(name)
    assert (only["name"], only["served"], only["storage"]) == (RESOURCES[name].version, True, True)
    assert only["subresources"].pop("status") == {}
    assert schema(name)["required"] == ["spec"]


@each_crd
def test_every_field_has_a_description(name: str) -> None:
    assert schema(name)["description"]
    for path, field in fields(schema(name)):
        if path == ".metadata":  # the API server refuses a description of its own field
            continue
        description = field.get("description", "")
        assert re.search(r"\w.*\.$", description, re.DOTALL), f"{name}{path}: {description!r}"


@each_crd
def test_schema_is_structural(name: str) -> None:
    """Every field has a type, and required ones and list keys exist."""
    for path, field in [("", schema(name)), *fields(schema(name))]:
        # A field that is a number or a string cannot declare a type.
        free = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
        assert "type" in field or any(field.get(key) for key in free), path
        assert set(field.get("required", [])) <= set(field.get("properties", {})), path
        keys = field.get("x-kubernetes-list-map-keys", [])
        assert (field.get("x-kubernetes-list-type") == "map") == bool(keys), path
        if keys:
            assert set(keys) <= set(field["items"]["required"]), path
        if field.get("type") == "array":
            assert "items" in field, path


@each_crd
def test_every_printer_column_reads_a_field_that_exists(name: str) -> None:
    for column in version(name)["additionalPrinterColumns"]:
        path = re.sub(r"\[(\?.*?|\*)\]", "[]", column["jsonPath"]).removeprefix(".")
        if not path.startswith("metadata."):
            assert schema(name, path)["type"] in ("string", "integer"), column


def test_condition_columns_name_existing_conditions() -> None:
    known = {value for value in vars(names).values() if isinstance(value, str)}
    columns = version(names.KUBESCHEDULERS)["additionalPrinterColumns"]
    columns += version(names.SCHEDULERPROFILES)["additionalPrinterColumns"]
    columns += version(names.SCHEDULEREXTENDERS)["additionalPrinterColumns"]
    types = {t for c in columns for t in re.findall(r'@\.type=="(\w+)"', c["jsonPath"])}
    assert types
    assert types <= known


@pytest.mark.parametrize("name", OWN)
def test_every_kind_of_the_group_shows_whether_it_is_ready_and_why_not(name: str) -> None:
    columns = {column["name"]: column for column in version(name)["additionalPrinterColumns"]}
    for column, field, priority in (
        ("Ready", "status", 0), ("Reason", "reason", 0), ("Message", "message", 1),
    ):  # fmt: skip
        path = f'.status.conditions[?(@.type=="{names.READY}")].{field}'
        assert columns[column]["jsonPath"] == path
        assert columns[column].get("priority", 0) == priority


@each_crd
def test_selectable_fields_are_fields_of_the_spec(name: str) -> None:
    for selectable in version(name).get("selectableFields", ()):
        assert schema(name, selectable["jsonPath"].removeprefix("."))["type"] == "string"


def test_a_profile_has_every_extension_point_with_the_same_schema() -> None:
    """The API server would silently prune a missing extension point."""
    points = schema(names.SCHEDULERPROFILES, "spec.plugins")["properties"]
    assert set(points) == {*POINTS, "multiPoint"}
    different = {
        point: {key: value for key, value in field.items() if key != "description"}
        for point, field in points.items()
        if point != "queueSort"
    }
    assert len({str(field) for field in different.values()}) == 1
    assert points["queueSort"]["properties"]["enabled"]["maxItems"] == 1


@pytest.mark.parametrize(
    ("name", "path", "enum"),
    [
        (
            names.SCHEDULERS,
            "spec.profile",
            ["", "LowNodeUtilization", "HighNodeUtilization", "NoScoring"],
        ),
        (
            names.SCHEDULERS,
            "spec.profileCustomizations.dynamicResourceAllocation",
            ["", "Enabled", "Disabled"],
        ),
        (names.KUBESCHEDULERS, "spec.logLevel", ["", "Normal", "Debug", "Trace", "TraceAll"]),
        (
            names.KUBESCHEDULERS,
            "spec.operatorLogLevel",
            ["", "Normal", "Debug", "Trace", "TraceAll"],
        ),
        (
            names.KUBESCHEDULERS,
            "spec.managementState",
            ["", "Managed", "Force", "Unmanaged", "Removed"],
        ),
        (names.KUBESCHEDULERS, "spec.tlsSecurityProfile.type", list(TYPES)),
        (names.SCHEDULERPROFILES, "spec.base", ["", *BASES]),
        (
            names.KUBESCHEDULERS,
            "spec.tlsSecurityProfile.custom.minTLSVersion",
            list(TLS_VERSIONS),
        ),
    ],
)
def test_enum(name: str, path: str, enum: list[str]) -> None:
    assert schema(name, path)["enum"] == enum


def test_only_management_log_levels_and_replicas_have_defaults() -> None:
    defaults = {
        f"{name}{path}": field["default"]
        for name in CRDS
        for path, field in fields(schema(name))
        if "default" in field
    }
    assert defaults == {
        f"{names.KUBESCHEDULERS}.spec.logLevel": "Normal",
        f"{names.KUBESCHEDULERS}.spec.managementState": "Managed",
        f"{names.KUBESCHEDULERS}.spec.operatorLogLevel": "Normal",
        f"{names.SECONDARYSCHEDULERS}.spec.replicas": DEFAULT_REPLICAS,
        # Without it, kstatus takes an object that the operator has not seen for a current one.
        **{f"{name}.status": {"observedGeneration": UNSEEN} for name in OWN},
    }


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("status.conditions", ["type"]),
        ("status.nodeStatuses", ["nodeName"]),
        ("status.generations", ["group", "resource", "namespace", "name"]),
    ],
)
def test_lists_are_keyed_so_that_writers_do_not_overwrite_each_other(
    path: str, keys: list[str]
) -> None:
    assert schema(names.KUBESCHEDULERS, path)["x-kubernetes-list-map-keys"] == keys


def test_short_names_and_categories() -> None:
    for name in OWN:
        own = CRDS[name]["spec"]["names"]
        assert (len(own["shortNames"]), own["categories"]) == (1, ["kube-scheduler"])
    short = [one for crd in CRDS.values() for one in crd["spec"]["names"].get("shortNames", ())]
    assert len(set(short)) == len(short)
    assert CRDS[names.CLUSTEROPERATORS]["spec"]["names"]["shortNames"] == ["co"]
    assert CRDS[names.KUBESCHEDULERS]["spec"]["names"]["categories"] == ["coreoperators"]
    assert CRDS[names.SCHEDULERPROFILES]["spec"]["names"]["shortNames"] == ["sprof"]


def test_revisions_only_grow() -> None:
    for path in ("status.latestAvailableRevision", "status.nodeStatuses[].currentRevision"):
        assert rules(schema(names.KUBESCHEDULERS, path)) == ["self >= oldSelf"]


def test_node_statuses_have_their_rules() -> None:
    node_statuses = schema(names.KUBESCHEDULERS, "status.nodeStatuses")
    assert len(rules(node_statuses)) == 1
    assert "targetRevision" in rules(node_statuses)[0]
    on_items = node_statuses["items"]["x-kubernetes-validations"]
    assert [(rule["fieldPath"], rule.get("optionalOldSelf", False)) for rule in on_items] == [
        (".currentRevision", False),
        (".currentRevision", True),
        (".targetRevision", True),
    ]


def test_custom_is_set_if_and_only_if_the_type_is_custom() -> None:
    profile = schema(names.KUBESCHEDULERS, "spec.tlsSecurityProfile")
    assert profile["required"] == ["type"]
    assert rules(profile) == [
        "self.type != 'Custom' || has(self.custom)",
        "self.type == 'Custom' || !has(self.custom)",
    ]
    assert set(profile["properties"]["custom"]["required"]) == {"ciphers", "minTLSVersion"}


def test_feature_gates_are_a_map_of_booleans() -> None:
    gates = schema(names.KUBESCHEDULERS, "spec.featureGates")
    assert gates["additionalProperties"]["type"] == "boolean"
    assert "properties" not in gates


def test_free_form_fields_keep_everything() -> None:
    for path in ("spec.unsupportedConfigOverrides", "spec.observedConfig"):
        field = schema(names.KUBESCHEDULERS, path)
        assert field["x-kubernetes-preserve-unknown-fields"] is True
        assert field["nullable"] is True


@pytest.mark.parametrize(
    ("type_", "valid"),
    [
        ("NodeInstallerDegraded", True),
        ("example.com/Degraded", True),
        ("a.b-c.example/A_b.c-D", True),
        ("", False),
        ("-Degraded", False),
        ("Example.com/Degraded", False),
        ("a/b/c", False),
        ("with space", False),
    ],
)
def test_condition_type_is_a_qualified_name(type_: str, valid: bool) -> None:
    pattern = schema(names.KUBESCHEDULERS, "status.conditions[].type")["pattern"]
    assert bool(re.fullmatch(pattern.removeprefix("^").removesuffix("$"), type_)) is valid


def test_every_condition_of_the_operator_is_accepted_by_its_own_definition() -> None:
    pattern = schema(names.KUBESCHEDULERS, "status.conditions[].type")["pattern"]
    suffixes = ("Degraded", "Available", "Progressing", "Upgradeable")
    types = [v for v in vars(names).values() if isinstance(v, str) and v.endswith(suffixes)]
    assert len(types) > 10
    assert all(re.match(pattern, type_) for type_ in types)
