"""A text that a scheduler reads must be a configuration; other texts of a ConfigMap need not be."""

from __future__ import annotations

import textwrap

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.reports.report import ValidationReport
from kube_scheduler_operator.config.lint.validate import validate

OPTIONS = CheckOptions(Gates(Version(1, 35)))
DEPLOYMENT = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: second, namespace: n}
spec:
  template:
    spec:
      serviceAccountName: second
      containers:
      - name: second
        image: registry.k8s.io/kube-scheduler:v1.35.1
        command: [kube-scheduler]
        args: [--config=/etc/s/config.yaml, --leader-elect=false]
        volumeMounts: [{name: c, mountPath: /etc/s}]
      volumes: [{name: c, configMap: {name: mine}}]
"""


def config_map(**data: str) -> str:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: n}\ndata:\n"
    files = (f"  {key}.yaml: |\n{textwrap.indent(text, '    ')}" for key, text in data.items())
    return head + "".join(files)


def checked(text: str) -> ValidationReport:
    return validate([("a.yaml", text)], OPTIONS)


@pytest.mark.parametrize(
    ("text", "reason", "what"),
    [
        ("a: b\n", "NothingToCheck", "this is not a Kubernetes object; its fields are a"),
        ("apiVersion: v1\nkind: Service\n", "NothingToCheck", "this is a Service"),
        ("\n", "NoDocument", "does not contain a document"),
        ("hello\n", "NoDocument", "must be an object"),
        ("profiles: []\n", "UnknownKind", "kind is missing"),
    ],
    ids=["object", "kind", "empty", "text", "without kind"],
)
def test_what_config_names_must_be_a_configuration(text: str, reason: str, what: str) -> None:
    report = checked(config_map(config=text) + DEPLOYMENT)
    (found,) = report.findings
    assert (found.reason, found.severity) == (reason, "error")
    assert what in found.message
    assert not report.starts


def test_other_keys_of_its_config_map_may_be_anything() -> None:
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    text += "profiles: [{schedulerName: second}]\n"
    report = checked(config_map(config=text, other="a: b\n") + DEPLOYMENT)
    assert report.findings == ()
    assert report.starts


def test_a_raw_config_of_aks_must_be_a_configuration() -> None:
    head = "apiVersion: aks.azure.com/v1alpha1\nkind: SchedulerConfiguration\n"
    report = checked(f"{head}metadata: {{name: upstream}}\nspec:\n  rawConfig: |\n    a: b\n")
    (found,) = report.findings
    assert (found.reason, found.position.line) == ("NothingToCheck", 6)
    assert not report.starts


@pytest.mark.parametrize(
    "text",
    [
        "profiles:\n- schedulerName: mine\n",
        "profiles:\n- plugins: {}\n",
        "extenders:\n- urlPrefix: http://a\n",
    ],
)
def test_a_text_with_profiles_or_extenders_lacks_its_kind(text: str) -> None:
    (found,) = checked(config_map(config=text)).findings
    assert (found.reason, found.message, found.position.line) == (
        "UnknownKind", "kind is missing", 6
    )  # fmt: skip
    assert "kind: KubeSchedulerConfiguration" in found.fix


@pytest.mark.parametrize(
    "text",
    ["profiles: [a]\n", "profiles: {dev: {}}\n", "kind: Grafana\nprofiles: [{plugins: 1}]\n"],
)
def test_profiles_of_other_programs_are_left_alone(text: str) -> None:
    (found,) = checked(config_map(config=text)).findings
    assert "it is a ConfigMap" in found.message


def test_a_config_map_with_nothing_that_can_be_checked_is_never_silent() -> None:
    (found,) = checked(config_map(config="kind: Policy\napiVersion: example.com/v1\n")).findings
    assert found.reason == "NothingToCheck"
    assert "it is a Policy" in found.message
