"""`schema`: one schema on standard output, or all in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin


def test_the_schema_of_the_default_version_is_printed(capsys: Any) -> None:
    assert kubectl_plugin(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["title"] == "KubeSchedulerConfiguration of kube-scheduler 1.35"
    assert schema["$id"].endswith("/schemas/kubeschedulerconfiguration-1.35.json")


def test_kinds_are_found_in_any_case(capsys: Any) -> None:
    assert kubectl_plugin(["schema", "loadpolicy"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "LoadPolicy of kube-scheduler-operator"


def test_all_schemas_are_written(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "new" / "schemas"
    assert kubectl_plugin(["schema", "--write", str(folder)]) == 0
    names = {file.name for file in folder.iterdir()}
    assert {"catalog.json", "kubeschedulerconfiguration-1.29.json", "scheduler.json"} <= names
    assert capsys.readouterr().out == f"{len(names)} files written to {folder}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("SchedulerProfil",), 'did you mean "SchedulerProfile"?'),
        (("Pod",), "use KubeSchedulerConfiguration, Scheduler, "),
        (("--kubernetes-version", "new"), "--kubernetes-version: "),
        (("--kubernetes-version", "1.99"), "1.99 is not on record; use 1.29 to 1."),
        (("--write", "/dev/null/x"), "--write: /dev/null/x: Not a directory"),
    ],
)
def test_wrong_usage_has_a_fix(arguments: tuple[str, ...], message: str, capsys: Any) -> None:
    assert kubectl_plugin(["schema", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
