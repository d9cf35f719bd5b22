"""What a scheduler's ServiceAccount may watch, in the ClusterRoles of the same files."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.rules import RULES
from kube_scheduler_operator.config.lint.upgrades import FilesUpgrade
from kube_scheduler_operator.config.lint.validate import validate

OPTIONS = CheckOptions(Gates(Version(1, 35)))
EXAMPLE = RULES["WatchForbidden"].example.replace("# second.yaml", "---")
READ = ["get", "list", "watch"]
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": READ}]
OF_CLAIMS = {
    "apiGroups": ["resource.k8s.io"],
    "resources": ["deviceclasses", "resourceclaims", "resourceslices"],
    "verbs": READ,
}


def files(version: str = "v1.35.4", **role: Any) -> list[tuple[str, str]]:
    """The example of the rule, with fields of its ClusterRole replaced."""
    documents = list(yaml.safe_load_all(EXAMPLE.replace("v1.35.4", version)))
    for document in documents:
        if document["kind"] == "ClusterRole":
            document.update(role)
    return [("all.yaml", yaml.safe_dump_all(documents))]


def forbidden(*arguments: Any, **role: Any) -> list[str]:
    """What the findings say about it."""
    findings = validate(files(*arguments, **role), OPTIONS).findings
    return [each.message for each in findings if each.reason == "WatchForbidden"]


def rules(*more: dict[str, Any]) -> list[dict[str, Any]]:
    most = {"apiGroups": ["", "apps", "policy", "storage.k8s.io"], "resources": ["*"]}
    return [{**most, "verbs": READ}, *more]


@pytest.mark.parametrize(
    ("of", "missing"),
    [
        (EVERYTHING, ""),
        (rules(OF_CLAIMS), ""),
        (rules(), "resourceslices.resource.k8s.io"),
        (rules({**OF_CLAIMS, "verbs": ["list"]}, {**OF_CLAIMS, "verbs": ["watch"]}), ""),
        (rules({**OF_CLAIMS, "verbs": ["get", "list"]}), "resourceslices.resource.k8s.io"),
        (rules({**OF_CLAIMS, "resourceNames": ["one"]}), "resourceslices.resource.k8s.io"),
        ([{**EVERYTHING[0], "apiGroups": [""]}, OF_CLAIMS], "csinodes.storage.k8s.io and 3 more"),
        ([], "pods"),
    ],
)
def test_each_kind_that_the_scheduler_waits_for_is_to_be_listed_and_watched(
    of: list[dict[str, Any]], missing: str
) -> None:
    messages = forbidden(rules=of)
    assert [missing in message for message in messages] == ([True] if missing else [])


def test_a_newer_version_watches_more() -> None:
    of = rules(OF_CLAIMS)
    assert forbidden("v1.36.1", rules=of) == []
    (message,) = forbidden("v1.37.0", rules=of)
    assert "list and watch devicetaintrules.resource.k8s.io: kube-scheduler 1.37" in message


def test_an_upgrade_names_the_version_that_watches_more() -> None:
    steps = FilesUpgrade(files(rules=rules(OF_CLAIMS)), OPTIONS).steps(Version(1, 38))
    assert [len(step.refused) for step in steps] == [0, 1, 0]
    assert "devicetaintrules" in steps[1].refused[0]


@pytest.mark.parametrize("version", ["v1.33.1", "v1.30.0"])
def test_of_older_versions_the_kinds_are_not_known(version: str) -> None:
    assert forbidden(version, rules=[]) == []


def test_what_the_files_do_not_have_may_permit_anything() -> None:
    assert forbidden(metadata={"name": "another"}, rules=[]) == []
    assert forbidden(aggregationRule={"clusterRoleSelectors": []}, rules=[]) == []
