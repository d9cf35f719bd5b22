"""SARIF reports are accepted by the JSON Schema of the standard, from an npm package."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cluster import npm_packages
from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.config.lint.rules import RULES

from ..unit.config.lint.rule_examples import examples

pytestmark = pytest.mark.timeout(300)  # the first time, npm installs the package


@cache
def validator() -> Any:
    folder = npm_packages.provide() / "@microsoft" / "jest-sarif" / "lib" / "schemas"
    (file,) = folder.glob("sarif-2.1.0*.json")
    schema = json.loads(file.read_text())
    validator_class = jsonschema.validators.validator_for(schema)
    return validator_class(schema, format_checker=jsonschema.FormatChecker())


def log_of(capsys: Any, *arguments: str) -> Any:
    capsys.readouterr()
    main(["validate", *arguments, "-o", "sarif"])
    return json.loads(capsys.readouterr().out)


def test_the_schema_refuses_other_documents(capsys: Any) -> None:
    assert not validator().is_valid({"version": "2.1.0"})
    assert not validator().is_valid({"version": "2.1.0", "runs": [{"tool": {}}]})


def test_the_report_of_every_rule_is_accepted(tmp_path: Path, capsys: Any) -> None:
    for rule in RULES.values():
        arguments = list(rule.flags)
        for name, text in examples(rule).items():
            (tmp_path / name).write_text(text)
            arguments += ["-f", str(tmp_path / name)]
        log = log_of(capsys, *arguments)
        errors = [error.message for error in validator().iter_errors(log)]
        assert errors == [], rule.name
        assert rule.name in {each["ruleId"] for each in log["runs"][0]["results"]}


def test_a_report_without_findings_is_accepted(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\n"
    )
    log = log_of(capsys, str(file))
    assert validator().is_valid(log)
    assert log["runs"][0]["results"] == []
    assert len(log["runs"][0]["tool"]["driver"]["rules"]) == len(RULES)
