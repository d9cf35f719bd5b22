"""The schema of SecondaryScheduler has the fields that the operator reads and its rules."""

from __future__ import annotations

import re
from dataclasses import fields as dataclass_fields
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.effective.secondary.compose import RESERVED, SETTINGS
from kube_scheduler_operator.config.effective.secondary.request import SchedulerRequest, read
from kube_scheduler_operator.config.language.command_line import LOG_LEVELS
from kube_scheduler_operator.config.language.schema import CONFIGURATION

from .test_crds import fields, rules, schema, version

KIND = names.SECONDARYSCHEDULERS


def at(path: str) -> dict[str, Any]:
    return schema(KIND, path)


def test_config_has_the_fields_that_are_merged() -> None:
    assert tuple(at("spec.config")["properties"]) != ()
    assert set(at("spec.config")["properties"]) == set(SETTINGS)
    assert set(SETTINGS) <= set(CONFIGURATION.fields)
    assert set(at("spec.config.leaderElection")["properties"]) == {
        "leaseDuration", "renewDeadline", "retryPeriod",
    }  # fmt: skip
    assert "kubeconfig" not in at("spec.config.clientConnection")["properties"]


def test_every_field_is_read() -> None:
    """A field that is not read would be accepted without effect."""
    full = {
        "namespace": "n", "image": "i", "command": ["c"], "replicas": 5, "logLevel": "Debug",
        "config": {"parallelism": 1}, "profiles": [{}], "featureGates": {"A": True},
        "extraArguments": {"a": "b"}, "nodeSelector": {"a": "b"}, "tolerations": [],
        "affinity": {"a": {}}, "topologySpreadConstraints": [],
        "resources": {"limits": {"memory": "1Gi"}},
        "priorityClassName": "p", "imagePullSecrets": [], "sidecars": [{"name": "x"}],
        "volumes": [{"name": "v"}], "forceRedeploymentReason": "r",
    }  # fmt: skip
    # operator/secondary/assignment.py reads assign, which is not rolled out.
    assert set(full) | {"assign"} == set(at("spec")["properties"])
    bare, all_set = (read({"metadata": {"name": "x"}, "spec": spec}) for spec in ({}, full))
    unchanged = [
        field.name
        for field in dataclass_fields(SchedulerRequest)
        if getattr(bare, field.name) == getattr(all_set, field.name)
    ]
    assert unchanged == ["name", "uid", "called", "agents"], "the last two are not in the object"


def test_the_rules_refuse_the_same_flags_as_the_operator() -> None:
    (rule,) = (rule for rule in rules(at("spec.extraArguments")) if "flag in" in rule)
    assert set(re.findall(r"'([\w-]+)'", rule)) <= set(RESERVED)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("spec.logLevel", ["", *LOG_LEVELS]),
        (
            "status.history[].outcome",
            [
                names.OUTCOME_PROGRESSING, names.OUTCOME_INSTALLED, names.OUTCOME_REFUSED,
                names.OUTCOME_FAILED, names.OUTCOME_SUPERSEDED,
            ],
        ),
    ],
)  # fmt: skip
def test_enum(path: str, values: list[str]) -> None:
    assert at(path)["enum"] == values


def test_columns_name_existing_conditions() -> None:
    columns = version(KIND)["additionalPrinterColumns"]
    types = {t for c in columns for t in re.findall(r'@\.type=="(\w+)"', c["jsonPath"])}
    assert types == {
        names.ASSIGNED, names.AVAILABLE, names.PROGRESSING, names.DEGRADED, names.READY,
    }  # fmt: skip


def test_every_rule_names_the_fix() -> None:
    nodes = [at(""), *(field for _, field in fields(at("")))]
    messages = [
        rule["message"] for node in nodes for rule in node.get("x-kubernetes-validations", ())
    ]
    assert len(messages) == 23
    for message in messages:
        assert re.search(r"\b(use|remove|write|create)\b", message), message
