"""What belongs to Volcano's scheduler: recognized, named, and not checked."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.forms.volcano import (
    NOT_CHECKED,
    OWN_CHECK,
    is_kai,
    is_volcano,
    is_volcano_image,
)
from kube_scheduler_operator.config.lint.places import options_for
from kube_scheduler_operator.config.lint.validate import validate

OPTIONS = CheckOptions(Gates(Version(1, 35)), KUBEADM)
VOLCANOS = 'actions: "enqueue, nonsense"\ntiers:\n- plugins: [{name: predicates}]\n'
KUBE_SCHEDULERS = yaml.safe_dump(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"},
    }
)


def run(*arguments: str) -> tuple[int, str, str]:
    """(exit code, output, errors) of `validate`."""
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        code = main(["validate", *arguments])
    return code, output.getvalue(), errors.getvalue()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"actions": "allocate", "tiers": []}, True),
        ({"actions": "allocate"}, True),
        ({"tiers": [], "metrics": {}}, True),
        ({"actions": "allocate", "tiers": [], "typo": 1}, True),
        ({"actions": [], "name": "a workflow"}, False),
        ({"metrics": {}}, False),
        ({"kind": "Workflow", "actions": "a", "tiers": []}, False),
        ({"actions": "allocate, consolidation", "tiers": []}, False),
        ({}, False),
    ],
)
def test_a_configuration_of_volcano_is_recognized(value: dict[str, Any], expected: bool) -> None:
    assert is_volcano(value) == expected


def test_a_configuration_of_kai_scheduler_is_not_volcanos() -> None:
    assert is_kai({"actions": "allocate, stalegangeviction", "tiers": []})
    assert not is_kai({"actions": "allocate, preempt", "tiers": []})


def test_the_image_of_volcanos_scheduler_is_recognized_in_any_registry() -> None:
    assert is_volcano_image("docker.io/volcanosh/vc-scheduler:v1.12.1")
    assert is_volcano_image("registry:5000/a/vc-scheduler:latest@sha256:0")
    assert not is_volcano_image("volcanosh/vc-controller-manager:v1.12.1")
    assert not is_volcano_image("registry.k8s.io/kube-scheduler:v1.35.4")


def test_a_file_of_volcano_is_nothing_to_check_and_the_message_names_where_to_check_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "volcano-scheduler.conf"
    file.write_text(VOLCANOS)
    code, output, errors = run("-f", str(file))
    assert (code, output) == (2, "")
    assert f"{file}: {NOT_CHECKED}\n" in errors
    assert "kubectl -n volcano-system logs deployment/volcano-scheduler" in errors


def test_a_note_names_a_file_of_volcano_beside_one_that_is_checked(tmp_path: Path) -> None:
    own, other = tmp_path / "volcano.yaml", tmp_path / "scheduler.yaml"
    own.write_text(VOLCANOS)
    other.write_text(KUBE_SCHEDULERS)
    code, output, _ = run("-f", str(own), "-f", str(other))
    assert code == 0
    assert output.count(NOT_CHECKED) == 1
    assert f"note: {own} {NOT_CHECKED}\n" in output


def test_a_note_names_a_file_of_volcano_in_a_directory(tmp_path: Path) -> None:
    (tmp_path / "volcano.yaml").write_text(VOLCANOS)
    code, _, errors = run("-f", str(tmp_path))
    assert code == 2
    assert errors.count(NOT_CHECKED) == 1


def test_a_repeated_key_is_not_a_finding_because_volcano_accepts_it() -> None:
    report = validate([("a.yaml", f"{VOLCANOS}metrics: {{type: a, type: b}}\n")], OPTIONS)
    assert [(each.reason, each.message) for each in report.findings] == [
        ("NothingToCheck", NOT_CHECKED)
    ]


@pytest.mark.parametrize("place", ["upstream:1.35", "koordinator"])
def test_a_kube_scheduler_refuses_the_format_of_volcano(place: str) -> None:
    report = validate([("a.yaml", VOLCANOS)], options_for(place, OPTIONS))
    assert [(each.reason, each.severity) for each in report.findings] == [
        ("OtherScheduler", "error")
    ]


@pytest.mark.parametrize("word", ["volcano", "volcano:1.13"])
def test_for_volcano_is_refused_with_where_to_check(word: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(VOLCANOS)
    code, output, errors = run("--for", word, "-f", str(file))
    assert (code, output) == (2, "")
    assert errors == (
        f"error: --for: Volcano's configuration is not checked here: {OWN_CHECK}; remove --for\n"
    )
