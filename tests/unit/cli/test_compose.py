"""`compose`: the same answer as the operator's, without a cluster."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.cli import compose as command

SCHEDULER = "apiVersion: config.openshift.io/v1\nkind: Scheduler\nspec: {profile: %s}\n"
KUBESCHEDULER = (
    "apiVersion: operator.openshift.io/v1\nkind: KubeScheduler\n"
    "spec: {unsupportedConfigOverrides: {parallelism: %s}}\n"
)


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["compose", *arguments])
    code: int = args.run(args)
    return code


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_objects_of_several_documents_and_files(file: Any, capsys: Any) -> None:
    one = file(f"---\n{SCHEDULER % 'NoScoring'}---\n---\n")
    two = file(json.dumps(yaml.safe_load(KUBESCHEDULER % 8)))
    assert run("-f", one, "-f", two, "-o", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown) == ["config", "args", "observedConfig", "conditions"]
    assert shown["config"]["parallelism"] == 8
    assert shown["config"]["profiles"][0]["plugins"]["score"] == {"disabled": [{"name": "*"}]}
    assert shown["args"][-1] == "-v=2"
    assert shown["conditions"] == [
        {
            "type": "UnsupportedConfigOverridesUpgradeable",
            "status": "False",
            "reason": "UnsupportedConfigOverridesSet",
            "message": "setting: [parallelism]",
        }
    ]


def test_absent_objects_are_as_their_definitions_default_them(file: Any, capsys: Any) -> None:
    assert run("-f", file(KUBESCHEDULER % 8)) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["config"]["kind"] == "KubeSchedulerConfiguration"


def test_what_would_not_be_rolled_out_is_shown_and_exits_with_1(file: Any, capsys: Any) -> None:
    assert run("-f", file(KUBESCHEDULER % 0)) == 1
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["config"]["parallelism"] == 0
    messages = {condition["type"]: condition["message"] for condition in shown["conditions"]}
    assert set(messages) == {
        "UnsupportedConfigOverridesDegraded",
        "UnsupportedConfigOverridesUpgradeable",
    }
    path = "spec.unsupportedConfigOverrides.parallelism: "
    assert messages["UnsupportedConfigOverridesDegraded"].startswith(path)


def test_standard_input(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(SCHEDULER % "Nope"))
    assert run("-f", "-") == 1
    assert "UnknownProfile" in capsys.readouterr().out


def test_the_version_decides(file: Any, capsys: Any) -> None:
    text = KUBESCHEDULER.replace(
        "{parallelism: %s}",
        "{profiles: [{plugins: {filter: {enabled: [{name: NodeDeclaredFeatures}]}}}]}",
    )
    assert run("-f", file(text), "--operand-version", "v1.35.0") == 0
    assert run("-f", file(text), "--operand-version", "1.34") == 1
    assert "came with Kubernetes 1.35" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Pod\napiVersion: v1\n", "kind Pod; give a Scheduler and a KubeScheduler"),
        ("- a\n", "no Kubernetes object"),
        ("kind: Scheduler\napiVersion: v1\n", "write config.openshift.io/v1"),
        (f"{SCHEDULER % 'a'}---\n{SCHEDULER % 'b'}", "a second Scheduler"),
        ("a: [", "is neither YAML nor JSON"),
    ],
)
def test_other_input_is_refused_naming_the_file(
    file: Any, capsys: Any, text: str, said: str
) -> None:
    name = file(text)
    assert run("-f", name) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert name in printed.err
    assert said in printed.err


@pytest.mark.parametrize(
    "arguments", [("-f", "no-such-file"), ("--platform", "mars"), ("--operand-version", "new")]
)
def test_wrong_usage_exits_with_2(file: Any, capsys: Any, arguments: tuple[str, ...]) -> None:
    assert run("-f", file(SCHEDULER % "NoScoring"), *arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")
