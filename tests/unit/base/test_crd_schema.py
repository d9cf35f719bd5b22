"""Validation of objects against their CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import crd_schema
from kube_scheduler_operator.base.findings import format_path

SCHEMA = yaml.safe_load("""
type: object
required: [spec]
properties:
  spec:
    type: object
    required: [name]
    properties:
      name: {type: string, minLength: 2, maxLength: 3, pattern: "^[a-z]+$"}
      level: {type: string, enum: ["", Normal, Debug]}
      count: {type: integer, minimum: 1, maximum: 5}
      share: {type: number}
      'on': {type: boolean}
      port: {x-kubernetes-int-or-string: true}
      gates: {type: object, additionalProperties: {type: boolean}}
      free: {type: object, nullable: true, x-kubernetes-preserve-unknown-fields: true}
      empty: {type: object}
      items: {type: array, minItems: 1, maxItems: 2, items: {type: string}}
""")


def problems(spec: Any) -> list[tuple[str, str]]:
    found = crd_schema._check({"spec": spec}, SCHEMA, ())
    return [(each.reason, format_path(each.path)) for each in found]


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"level": ""}, {"level": "Debug"}, {"count": 1}, {"count": 5}, {"share": 1},
        {"share": 0.5}, {"on": False}, {"port": 1}, {"port": "http"}, {"gates": {"A": True}},
        {"free": {"any": [1]}}, {"free": None}, {"empty": {"x": 1}}, {"items": ["a", "b"]},
    ],
)  # fmt: skip
def test_what_the_schema_allows(fields: dict[str, Any]) -> None:
    assert problems({"name": "abc", **fields}) == []


@pytest.mark.parametrize(
    ("fields", "reason", "path"),
    [
        ({"name": 1}, "InvalidType", "spec.name"),
        ({"name": "a"}, "InvalidValue", "spec.name"),
        ({"name": "abcd"}, "InvalidValue", "spec.name"),
        ({"name": "A1"}, "InvalidValue", "spec.name"),
        ({"level": "Debg"}, "InvalidValue", "spec.level"),
        ({"count": 0}, "InvalidValue", "spec.count"),
        ({"count": 6}, "InvalidValue", "spec.count"),
        ({"count": True}, "InvalidType", "spec.count"),
        ({"count": "1"}, "InvalidType", "spec.count"),
        ({"share": True}, "InvalidType", "spec.share"),
        ({"on": "yes"}, "InvalidType", "spec.on"),
        ({"port": 1.5}, "InvalidType", "spec.port"),
        ({"gates": {"A": 1}}, "InvalidType", "spec.gates.A"),
        ({"items": []}, "InvalidValue", "spec.items"),
        ({"items": ["a", "b", "c"]}, "InvalidValue", "spec.items"),
        ({"items": ["a", 1]}, "InvalidType", "spec.items[1]"),
        ({"items": {}}, "InvalidType", "spec.items"),
        ({"levl": "Debug"}, "UnknownField", "spec.levl"),
    ],
)
def test_what_the_schema_rejects(fields: dict[str, Any], reason: str, path: str) -> None:
    assert problems({"name": "abc", **fields}) == [(reason, path)]


def test_required_fields() -> None:
    assert problems({}) == [("MissingField", "spec.name")]
    found = crd_schema.validate_object(
        {"kind": "KubeScheduler"}, "kubeschedulers.operator.openshift.io.yaml", "v1"
    )
    assert [format_path(each.path) for each in found] == ["spec"]


def test_a_missing_version_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        list(crd_schema.validate_object({}, "schedulers.config.openshift.io.yaml", "v9"))
