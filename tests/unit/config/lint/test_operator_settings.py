"""OperatorSettings in files that `validate` reads: the operator's messages, with positions."""

from __future__ import annotations

from typing import Any

import yaml

from kube_scheduler_operator.base.platform import OPENSHIFT, Platform
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

from ..effective.settings.test_validate import EVERYTHING


def document(name: str = "cluster", **pods: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "OperatorSettings",
        "metadata": {"name": name},
        "spec": {"pods": pods},
    }


def reported(*documents: dict[str, Any], platform: Platform | None = None) -> list[str]:
    options = CheckOptions(Gates(Version(1, 35, 0)))
    options = CheckOptions(options.gates, platform or options.platform)
    result = validate([("f.yaml", yaml.safe_dump_all(documents, sort_keys=False))], options)
    return [
        f"{one.position.line} {one.severity} {one.path}: {one.message}; {one.fix}"
        for one in result.findings
    ]


def test_a_good_one() -> None:
    assert reported(document(**EVERYTHING)) == []


def test_an_error_has_position_and_fix() -> None:
    (line,) = reported(document(env=[], hostFiles=[{"path": "/etc/kubernetes/admin.conf"}]))
    assert line.startswith("9 error spec.pods.hostFiles[0].path: /etc/kubernetes/admin.conf cannot")
    assert line.endswith(
        "copy the file to /etc/kube-scheduler-operator/public on every control-plane node"
    )


def test_what_only_the_definition_knows() -> None:
    (line,) = reported(document(resources={"limits": {"ephemeral-storage": "1Gi"}}))
    assert "spec.pods.resources.limits.ephemeral-storage" in line
    (line,) = reported(document(resource={}))
    assert "did you mean" in line or "remove it" in line


def test_another_name_and_a_second_object_are_errors() -> None:
    (line,) = reported(document("mine"))
    assert line == (
        '4 error metadata.name: the API server rejects OperatorSettings "mine"; a cluster has one; '
        'rename it to "cluster"'
    )
    (line,) = reported(document(), document())
    assert "OperatorSettings is already defined, and a cluster has one" in line


def test_fields_without_an_effect_are_warnings() -> None:
    (line,) = reported(document(annotations={"a": "b"}), platform=OPENSHIFT)
    assert line.startswith("7 warning spec.pods.annotations: has no effect on OpenShift")


def test_a_limit_is_not_compared_with_a_request_that_may_be_adopted() -> None:
    assert reported(document(resources={"limits": {"memory": "40Mi"}})) == []
