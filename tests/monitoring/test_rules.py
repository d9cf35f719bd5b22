"""The alerts of deploy/monitoring, by promtool: they fire when they should, and not otherwise.

Every rule is also tried with another `for`: were the tests still content, they would not test it.
"""

from __future__ import annotations

import copy
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import promtool as tools

HERE = Path(__file__).resolve().parent
MONITORING = HERE.parents[1] / "deploy" / "monitoring"
COMPONENTS = ("operator", "schedulers")
Rules = dict[str, Any]

# Without promtool it is downloaded or built first, which takes minutes.
pytestmark = pytest.mark.timeout(3600)


def rules_of(component: str) -> Rules:
    spec: Rules = yaml.safe_load((MONITORING / component / "rules.yaml").read_text())["spec"]
    return spec


def alerts(rules: Rules) -> Iterator[dict[str, Any]]:
    for group in rules["groups"]:
        yield from group["rules"]


def expected(component: str, rules: Rules) -> str:
    """The tests of a component, with the annotations that its rules have for the labels given."""
    document = yaml.safe_load((HERE / f"{component}.yaml").read_text())
    known = {(rule["alert"], rule["labels"]["severity"]): rule for rule in alerts(rules)}
    for test in document["tests"]:
        for case in test["alert_rule_test"]:
            for alert in case.get("exp_alerts") or ():
                labels = alert["exp_labels"]
                rule = known[case["alertname"], labels["severity"]]
                alert["exp_annotations"] = {
                    name: filled(text, labels) for name, text in rule["annotations"].items()
                }
    return yaml.safe_dump(document)


def filled(text: str, labels: dict[str, str]) -> str:
    """A template of Prometheus, of which only labels are used; one that is not there is empty."""
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels.get(found[1], ""), text)


@pytest.fixture(scope="module")
def promtool() -> Path:
    return tools.provide()


def run(promtool: Path, directory: Path, component: str, rules: Rules) -> tuple[bool, str]:
    (directory / f"{component}.yaml").write_text(yaml.safe_dump(rules))
    (directory / "tests.yaml").write_text(expected(component, rules))
    command: list[str | Path] = [promtool, "test", "rules", "tests.yaml"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("component", COMPONENTS)
def test_promtool_has_nothing_to_say_against_the_rules(
    promtool: Path, tmp_path: Path, component: str
) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(rules_of(component)))
    command: list[str | Path] = [promtool, "check", "rules", "--lint=all", "--lint-fatal", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("component", COMPONENTS)
def test_alerts_fire_when_they_should(promtool: Path, tmp_path: Path, component: str) -> None:
    fine, output = run(promtool, tmp_path, component, rules_of(component))
    assert fine, output


@pytest.mark.parametrize(
    ("component", "position", "minutes"),
    [
        pytest.param(component, position, minutes, id=f"{rule['alert']}-{position}{minutes:+}m")
        for component in COMPONENTS
        for position, rule in enumerate(alerts(rules_of(component)))
        for minutes in (-1, 1)
        if rule["for"] != "0m" or minutes > 0
    ],
)
def test_each_alert_waits_for_its_duration(
    promtool: Path, tmp_path: Path, component: str, position: int, minutes: int
) -> None:
    rules = copy.deepcopy(rules_of(component))
    rule = list(alerts(rules))[position]
    number, unit = re.fullmatch(r"(\d+)([hm])", rule["for"]).groups()  # type: ignore[union-attr]
    rule["for"] = f"{int(number) * (60 if unit == 'h' else 1) + minutes}m"
    fine, output = run(promtool, tmp_path, component, rules)
    assert not fine, f"no test notices: {output}"
