"""`validate`: what is printed in every format, and the exit codes."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator import __version__
from kube_scheduler_operator.cli.commands.validate import FORMATS as CHOICES
from kube_scheduler_operator.cli.commands.validate import add_parser

from ...unreadable import refusing
from .conftest import WriteFile, validate

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
KUBECONFIG = "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\n"
GOOD = HEAD + KUBECONFIG
WARNED = f"{HEAD}percentageOfNodesToScore: 1\n{KUBECONFIG}"
OWN_IMAGE = """
apiVersion: kube-scheduler-operator.dev/v1alpha1
kind: SecondaryScheduler
metadata: {name: mine}
spec: {namespace: kube-scheduler-operator, image: "example.com/mine:v1.35.4"}
"""
BAD = f"{HEAD}parallelism: 0\nunknown, % field: 1\n"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    validate(*arguments)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "flags", "code"),
    [
        (GOOD, (), 0),
        (GOOD, ("--strict",), 0),
        (WARNED, (), 0),
        (WARNED, ("--strict",), 1),
        (BAD, (), 1),
        (BAD, ("--strict",), 1),
        (OWN_IMAGE, (), 0),
        (OWN_IMAGE, ("--strict",), 1),
        (OWN_IMAGE, ("--strict", "--allowed-images", "registry.k8s.io/x, example.com/mine"), 0),
        ("a: [", (), 1),
        ("", (), 1),
        (HEAD, ("--kubernetes-version", "new"), 2),
        (HEAD, ("--feature-gates", "A=maybe"), 2),
        (HEAD, ("--feature-gates", "A"), 2),
        (HEAD, ("--feature-gates", "NoSuchGate=true"), 2),
        (HEAD, ("--feature-gates", "NoSuchGate=true", "--custom-image"), 0),
    ],
)
@pytest.mark.parametrize("output", CHOICES)
def test_exit_codes(
    write_file: WriteFile, text: str, flags: tuple[str, ...], code: int, output: str
) -> None:
    assert validate("-f", write_file(text), *flags, "-o", output) == code


@pytest.mark.parametrize("arguments", [("-f", "no-such-file"), ("-f", ".")])
def test_a_file_that_cannot_be_read_is_wrong_usage(
    write_file: WriteFile, capsys: Any, arguments: tuple[str, ...]
) -> None:
    assert validate(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"error: {arguments[1]}: ")


def test_bytes_that_are_not_text_are_a_syntax_error(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")
    assert validate("-f", str(tmp_path / "x")) == 1
    assert ":1:1: error: 0x00 is not UTF-16 [Syntax]" in capsys.readouterr().out


def test_without_a_file_it_is_wrong_usage(capsys: Any) -> None:
    assert validate() == 2
    assert capsys.readouterr().err.startswith("error: no file; name files or directories")


def test_a_directory_is_read_with_those_below_it_and_others_are_counted(
    tmp_path: Path, capsys: Any
) -> None:
    below = tmp_path / "conf" / "a"
    below.mkdir(parents=True)
    (below / "x.yaml").write_text(GOOD)
    (below / "y.yml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: scheduler}\n")
    (below / "broken.json").write_text("{ not json")
    (below / "README.md").write_text("# not: YAML")
    (tmp_path / "conf" / ".git").mkdir()
    (tmp_path / "conf" / ".git" / "z.yaml").write_text(BAD)
    assert validate(str(tmp_path / "conf")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "note: 1 file has nothing for kube-scheduler, so not checked",
        "kube-scheduler 1.35 would start with 1 document (1 other not checked)",
    ]
    assert validate(str(tmp_path / "conf" / "**" / "*.yaml")) == 0, "a quoted pattern"


def test_standard_input_and_files_are_read_together(
    write_file: WriteFile, monkeypatch: Any
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(BAD))
    assert validate(write_file(GOOD), "-") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apiVersion: apps/v1\nkind: Deployment\n", "it is a Deployment"),
        ("apiVersion: v1\nkind: Config\nclusters: []\nusers: []\n", "it is a kubeconfig, "),
        ("kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n",
         "it is a KubeletConfiguration, the kubelet's configuration"),
    ],
)  # fmt: skip
def test_a_file_without_a_configuration_is_described(
    text: str, message: str, write_file: WriteFile, capsys: Any
) -> None:
    assert validate(write_file(text)) == 2
    printed = capsys.readouterr()
    assert f"has no scheduler configuration: {message}" in printed.err
    assert printed.out == ""


def test_a_unit_that_is_not_rendered_names_the_command_that_renders_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its flags are not known before that."""
    unit = tmp_path / "kube-scheduler.service"
    unit.write_text("[Service]\nExecStart={{ base }}/bin/kube-scheduler \\\n  --port=0\n")
    assert validate(str(unit)) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"error: {unit}: this is a Jinja template that is not rendered",
        "       render it first, for example: jinja2 FILE VALUES | kubectl scheduler validate -",
    ]


def test_an_empty_match_is_an_error_that_names_what_was_searched(
    tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "a.txt").write_text("")
    assert validate(str(tmp_path)) == 2
    assert "no file there ends in .yaml, .yml or .json (it has 1 other" in capsys.readouterr().err
    assert validate(str(tmp_path / "*.yaml")) == 2
    assert "no file matches this pattern" in capsys.readouterr().err
    assert validate(str(tmp_path / "none.yaml")) == 2
    assert "No such file" in capsys.readouterr().err
    for number in range(3):
        text = "apiVersion: v1\nkind: Service\nmetadata: {name: scheduler}\n"
        (tmp_path / f"{number}.yaml").write_text(text)
    assert validate(str(tmp_path)) == 2
    assert "none of the 3 files has a scheduler configuration" in capsys.readouterr().err


def test_a_directory_that_cannot_be_read_is_an_error(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "a.yaml").write_text("kind: KubeSchedulerConfiguration\n")
    monkeypatch.setattr(os, "scandir", refusing(str(inside)))
    assert validate(str(tmp_path)) == 2
    assert f"{inside}: Permission denied" in capsys.readouterr().err


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  template:
    spec:
      containers:
      - {name: s, image: "IMAGE", command: [kube-scheduler, FLAG]}
"""
THIRD_PARTY = "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.31.8"


def test_the_summary_names_the_schedulers_of_the_images(write_file: WriteFile, capsys: Any) -> None:
    def of(image: str, flag: str = "--v=2") -> str:
        text = DEPLOYMENT.replace("IMAGE", image).replace("FLAG", flag)
        return write_file(text, f"{image.rpartition('/')[2]}{flag}.yaml".replace(":", "-"))

    def summary(*files: str) -> str:
        return printed(capsys, *files).splitlines()[-1]

    old = of("registry.k8s.io/kube-scheduler:v1.34.2")
    assert summary(old) == "kube-scheduler 1.34 would start with 1 document"
    third = of(THIRD_PARTY)
    assert summary(third) == "scheduler-plugins v0.31.8 would start with 1 document"
    both = "scheduler-plugins v0.31.8 and kube-scheduler 1.34"
    assert summary(third, old) == f"{both} would start with 2 documents"
    wrong = of("registry.k8s.io/kube-scheduler:v1.34.2", "--paralelism=2")
    expected = f"not all of {both} would start with 2 documents: 1 error"
    assert summary(third, wrong) == expected
    unknown = of("example.com/mine:1")
    assert summary(old, unknown).startswith("kube-scheduler 1.35 would start with 2 documents")


def test_text(write_file: WriteFile, capsys: Any) -> None:
    assert printed(capsys, "-f", write_file(WARNED)).splitlines()[-2:] == [
        "    fix: set 0, an adaptive default of 5 to 50 % by cluster size",
        "kube-scheduler 1.35 would start with 1 document: 1 warning",
    ]
    lines = printed(capsys, "-f", write_file(f"{HEAD}parallelism: 0\n")).splitlines()
    assert lines == [
        "a.yaml:3:1: error: parallelism: must be greater than 0 [InvalidConfiguration]",
        "    fix: use 1 or more (default: 16)",
        "kube-scheduler 1.35 would not start with 1 document: 1 error",
    ]


def test_standard_input(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert validate("-f", "-") == 1
    assert capsys.readouterr().out.startswith("<stdin>:3:1: error: parallelism: ")


def test_json(write_file: WriteFile, capsys: Any) -> None:
    shown = json.loads(
        printed(capsys, "-f", write_file(WARNED), "-f", write_file(GOOD, "b.yaml"), "-o", "json")
    )
    assert shown["kubernetesVersion"] == "1.35"
    assert (shown["starts"], shown["errors"], shown["warnings"]) == (True, 0, 2)
    assert [each["file"] for each in shown["documents"]] == ["a.yaml", "b.yaml"]
    (first, second) = shown["findings"]
    assert second["reason"] == "SharedLease"
    assert first | {"message": "", "fix": ""} == {
        "file": "a.yaml", "line": 3, "column": 1, "endColumn": 28,
        "kind": "KubeSchedulerConfiguration",
        "path": "percentageOfNodesToScore", "severity": "warning", "reason": "SampledTooFew",
        "message": "", "fix": "", "fingerprint": first["fingerprint"],
    }  # fmt: skip
    assert first["message"]
    assert first["fix"]


def test_github_annotations_are_escaped(write_file: WriteFile, capsys: Any) -> None:
    lines = printed(capsys, "-f", write_file(BAD, "a,b:c%.yaml"), "-o", "github").splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(
        "::error file=a%2Cb%3Ac%25.yaml,line=3,col=1,endLine=3,endColumn=15,"
        "title=InvalidConfiguration::parallelism: "
    )
    assert "%25 field" in lines[1]
    assert all(re.fullmatch(r"::error [^:]*::[^\r\n]+", line) for line in lines)
    assert printed(capsys, "-f", write_file(GOOD), "-o", "github") == ""
    assert printed(capsys, "-f", write_file(WARNED), "-o", "github").startswith("::warning ")


def test_sarif_is_what_its_schema_demands(write_file: WriteFile, capsys: Any) -> None:
    """The rules of the OASIS schema 2.1.0 for all that is used of it."""
    names = ("-f", write_file(BAD, "a b.yaml"), "-f", write_file(WARNED, "c.yaml"))
    log = json.loads(printed(capsys, *names, "-o", "sarif"))
    assert (set(log), log["version"]) == ({"$schema", "version", "runs"}, "2.1.0")
    (sarif_run,) = log["runs"]
    driver = sarif_run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("kube-scheduler-operator", __version__)
    assert sarif_run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    ids = [rule["id"] for rule in driver["rules"]]
    assert ids == sorted(set(ids))
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert len(sarif_run["results"]) == 3
    for result in sarif_run["results"]:
        assert set(result) == {
            "ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"
        }  # fmt: skip
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        assert place["region"]["startColumn"] >= 1
        assert place["region"]["endLine"] == place["region"]["startLine"]
        assert place["region"]["endColumn"] > place["region"]["startColumn"]
        assert place["artifactLocation"]["uri"] in ("a%20b.yaml", "c.yaml")
    assert sarif_run["results"][0]["locations"][0]["logicalLocations"] == [
        {"fullyQualifiedName": "parallelism"}
    ]
    nothing = json.loads(printed(capsys, "-f", write_file(GOOD), "-o", "sarif"))
    assert nothing["runs"][0]["results"] == []


def test_a_finding_whose_end_is_not_known_has_none(write_file: WriteFile, capsys: Any) -> None:
    broken = write_file(f"{GOOD}---\n- a\n", "a.yaml")
    log = json.loads(printed(capsys, "-f", broken, "-o", "sarif"))
    (result,) = log["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert set(region) == {"startLine", "startColumn"}
    assert "endColumn" not in printed(capsys, "-f", broken, "-o", "github")
    assert (
        json.loads(printed(capsys, "-f", broken, "-o", "json"))["findings"][0]["endColumn"] is None
    )


def test_sarif_has_an_absolute_uri_for_an_absolute_path(tmp_path: Path, capsys: Any) -> None:
    name = tmp_path / "a.yaml"
    name.write_text(BAD)
    log = json.loads(printed(capsys, "-f", str(name), "-o", "sarif"))
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == name.as_uri()


def test_a_newer_version_is_reported_and_read_as_the_newest_one(
    write_file: WriteFile, capsys: Any
) -> None:
    text = f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: New}}]}}}}}}]\n"
    assert validate("-f", write_file(text), "--kubernetes-version", "v1.99.0") == 0
    printed = capsys.readouterr()
    assert "note: Kubernetes 1.99 is newer than the versions on record (1.29 to 1." in printed.err
    assert 'has no plugin "New"' in printed.out
    assert (
        validate("-f", write_file(f"{HEAD}parallelism: -1\n"), "--kubernetes-version", "1.99") == 1
    )


def test_a_version_that_is_too_old_is_reported(write_file: WriteFile, capsys: Any) -> None:
    text = f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: Old}}]}}}}}}]\n"
    assert validate("-f", write_file(text), "--kubernetes-version", "v1.24.0") == 0
    printed = capsys.readouterr()
    assert "1.24 is not a known version" in printed.err
    assert "not known whether kube-scheduler 1.24 would start" in printed.out
    validate("-f", write_file(text), "--kubernetes-version", "v1.24.0", "-o", "json")
    assert json.loads(capsys.readouterr().out)["starts"] is None


def test_gates_and_images_count(write_file: WriteFile) -> None:
    shape = "{name: VolumeBinding, args: {shape: [{utilization: 0, score: 0}]}}"
    gated = write_file(f"{HEAD}profiles: [{{pluginConfig: [{shape}]}}]\n")
    assert validate("-f", gated) == 1
    assert validate("-f", gated, "--feature-gates", "StorageCapacityScoring=true") == 0
    own = write_file(f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: Own}}]}}}}}}]\n")
    assert validate("-f", own) == 1
    assert validate("-f", own, "--custom-image") == 0


def test_nothing_is_imported_that_a_configuration_does_not_need() -> None:
    """What merges and what talks to clusters takes longer to load than the check to run."""
    import subprocess
    import sys

    script = (
        "import sys; from kube_scheduler_operator.__main__ import main;"
        "main(['validate', '-f', '-']);"
        "bad = {'jsonmerge', 'jsonschema', 'aiohttp', 'kopf', 'kubernetes'} & set(sys.modules);"
        "assert not bad, bad"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=HEAD, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_parser_is_registered_under_its_name() -> None:
    commands = argparse.ArgumentParser().add_subparsers()
    add_parser(commands)
    assert list(commands.choices) == ["validate"]
