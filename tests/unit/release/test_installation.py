"""An installation without extras: what it has, and which commands work in it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from kube_scheduler_operator.__main__ import COMMANDS, LIBRARIES, PLUGIN_COMMANDS

from .conftest import REPOSITORY

if TYPE_CHECKING:
    from .conftest import Environment

EXAMPLES = sorted((REPOSITORY / "docs/examples").glob("*.yaml"))
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
OLD_POLICY = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsPorts"}]}'
CONFIGURATION = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_the_base_has_two_packages(base_environment: Environment) -> None:
    packages = [one.name for one in base_environment.packages.glob("*.dist-info")]
    size = sum(file.stat().st_size for file in base_environment.packages.rglob("*"))
    print(f"{len(packages)} packages, {size / 2**20:.1f} MiB")
    assert sorted(name.partition("-")[0].lower() for name in packages) == [
        "kube_scheduler_operator",
        "pyyaml",
    ]


def test_a_configuration_is_validated(base_environment: Environment) -> None:
    wrong = CONFIGURATION + "profiles: [{plugins: {score: {enabled: [{name: ImageLocalty}]}}}]\n"
    done = base_environment.run("kubectl-scheduler", "validate", "-f", "-", text=wrong)
    assert (done.returncode, done.stderr) == (1, "")
    assert 'did you mean "ImageLocality"?' in done.stdout


def test_a_policy_is_converted(base_environment: Environment) -> None:
    done = base_environment.run("kubectl-scheduler", "convert", "-f", "-", text=OLD_POLICY)
    assert done.returncode == 0
    assert "kind: KubeSchedulerConfiguration" in done.stdout


@pytest.mark.parametrize("output", ["text", "json", "sarif", "github"])
def test_all_example_objects_are_validated(base_environment: Environment, output: str) -> None:
    files = [word for file in EXAMPLES for word in ("-f", str(file))]
    done = base_environment.run("kubectl-scheduler", "validate", *files, "-o", output)
    assert "Traceback" not in done.stderr
    assert "pip install" not in done.stderr


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_examples_are_composed(base_environment: Environment, file: Path) -> None:
    done = base_environment.run("kubectl-scheduler", "compose", "-f", str(file))
    assert "Traceback" not in done.stderr
    assert "pip install" not in done.stderr


def test_plugins_of_a_file_are_shown(base_environment: Environment) -> None:
    done = base_environment.run("kubectl-scheduler", "plugins", "-f", "-", text=CONFIGURATION)
    assert (done.returncode, done.stderr) == (0, "")
    assert "NodeResourcesFit" in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("kubectl-scheduler", "status"), "cluster"),
        (("kubectl-scheduler", "plugins"), "cluster"),
        (("kubectl-scheduler", "explain", "pod/a"), "cluster"),
        (("kube-scheduler-operator", "extender", "--config", "none"), "extender"),
        (("kube-scheduler-operator", "rl-monitor"), "extender"),
        (("kube-scheduler-operator", "operator"), "operator"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[1:2]),
)
def test_a_command_without_its_extra_names_the_installation(
    base_environment: Environment, command: tuple[str, ...], extra: str
) -> None:
    done = base_environment.run(*command)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.endswith(f"run: pip install 'kube-scheduler-operator[{extra}]'\n")


def test_extras_exist_and_bring_the_libraries_that_messages_name() -> None:
    extras = PROJECT["optional-dependencies"]
    assert {one.extra for one in (*COMMANDS, *PLUGIN_COMMANDS)} <= set(extras)
    named = {
        Requirement(line).name.replace("-", "_")
        for extra in ("cluster", "extender", "operator")
        for line in extras[extra]
    }
    assert named - {"kube_scheduler_operator"} == LIBRARIES
