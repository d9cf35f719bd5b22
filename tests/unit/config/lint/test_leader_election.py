"""Rights on the Lease, in the roles of the same files."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

from ....forms.corpus import CASES

OPTIONS = CheckOptions(Gates(Version(1, 35)))
[CASE] = [case for case in CASES if case.name == "workload/lease-role.yaml"]


def is_forbidden(rule: Any) -> bool:
    """Whether the check misses the right in files whose only role has this rule."""
    [(name, text)] = CASE.contents
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        if document["kind"] in ("Role", "ClusterRole"):
            document["rules"] = [rule]
    report = validate([(name, yaml.safe_dump_all(documents))], OPTIONS)
    return "LeaseForbidden" in {each.reason for each in report.findings}


@pytest.mark.parametrize(
    ("change", "forbidden"),
    [
        ({}, False),
        ({"resourceNames": []}, False),
        ({"resourceNames": ["another"]}, True),
        ({"verbs": ["get"]}, True),
        ({"verbs": "*"}, True),
        ({"resources": 1.5}, True),
        ({"apiGroups": {"coordination.k8s.io": None}}, True),
        ({"verbs": [["update"]]}, True),
    ],
)
def test_a_rule_permits_the_lease_only_if_all_of_it_does(
    change: dict[str, Any], forbidden: bool
) -> None:
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]}
    assert is_forbidden({**rule, **change}) == forbidden
