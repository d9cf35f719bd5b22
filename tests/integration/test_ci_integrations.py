"""The hook of pre-commit, the action of GitHub and the job of GitLab, run for real.

pre-commit itself clones a copy of this repository and installs it. The steps of the action and the
script of the job run in bash, with a virtual environment into which the action's own step installs
the package.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from cluster import ci_tools

pytestmark = pytest.mark.timeout(1200)  # packages are installed twice

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
JOB = ROOT / "deploy" / "ci" / "validate.gitlab-ci.yml"

HEAD = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
"""
FILES = {
    "scheduler/kube-scheduler-config.yaml": f"{HEAD}parallelism: 8\n",
    "scheduler/kube-scheduler-packed.yaml": f"{HEAD}leaderElection: {{resourceName: packed}}\n"
    "profiles: [{schedulerName: packed, plugins: {score: {enabled: [{name: ImageLocalty}]}}}]\n",
    "app/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: app}\n",
}
"""One is right, one has an error in line 5, one is of no interest."""


def git(folder: Path, *arguments: str) -> None:
    own = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=0")
    command = ["git", *own, *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the current files of this one that are installed, in one commit."""
    folder = tmp_path_factory.mktemp("product")
    for name in ("operator", "crds", "templates", "bindata"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "rules.md", folder / "docs")
    for file in (
        ACTION,
        HOOKS,
        *(ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE")),
    ):
        shutil.copy(file, folder)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "product")
    return folder


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """The repository of a user, with three files."""
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    git(tmp_path, "add", "--all")
    return tmp_path


# --- syntax -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "file"), [("vendor.github-actions", ACTION), ("vendor.gitlab-ci", JOB)]
)
def test_the_files_have_the_syntax_of_their_systems(schema: str, file: Path) -> None:
    program = ci_tools.provide() / "check-jsonschema"
    done = subprocess.run(
        [program, "--builtin-schema", schema, file], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout


# --- pre-commit ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pre_commit(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("pre-commit")

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ci_tools.provide() / "pre-commit", *arguments], cwd=folder, capture_output=True,
            text=True, timeout=900, env={**os.environ, "PRE_COMMIT_HOME": str(home)},
        )  # fmt: skip

    return run


def test_pre_commit_accepts_the_manifest_and_runs_the_hook(
    pre_commit: Any, product: Path, users: Path
) -> None:
    assert pre_commit(ROOT, "validate-manifest", str(HOOKS)).returncode == 0
    config = {
        "repos": [
            {"repo": str(product), "rev": "main", "hooks": [{"id": "validate-kube-scheduler"}]}
        ]
    }
    (users / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(users, "add", "--all")
    done = pre_commit(users, "run", "--all-files", "--verbose")
    assert done.returncode == 1, done.stdout + done.stderr
    place = r"scheduler/kube-scheduler-packed\.yaml:5:\d+: error: profiles\[0\]\.plugins\.score"
    assert re.search(place, done.stdout), done.stdout
    assert 'did you mean "ImageLocality"?' in done.stdout
    assert "service.yaml" not in done.stdout  # not given to the hook
    wrong = users / "scheduler" / "kube-scheduler-packed.yaml"
    wrong.write_text(wrong.read_text().replace("ImageLocalty", "ImageLocality, weight: 1"))
    done = pre_commit(users, "run", "--all-files")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout


# --- GitHub and GitLab --------------------------------------------------------------------------


@dataclass(frozen=True)
class Runner:
    """Runs scripts as a CI system does, in a repository with an environment of its own."""

    environment: Path  # a virtual environment with the package
    product: Path  # the repository of the action

    def bash(
        self, script: str, folder: Path, variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        path = f"{self.environment / 'bin'}:{os.environ['PATH']}"
        # GitHub's own command for `shell: bash`.
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=900,
            env={**os.environ, "PATH": path, **variables},
        )  # fmt: skip

    def action(self, folder: Path, **inputs: str) -> list[subprocess.CompletedProcess[str]]:
        """Run the steps of the action until one fails; those of other actions are left out."""
        action = yaml.safe_load(ACTION.read_text())
        values = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
        values |= {name.replace("_", "-"): value for name, value in inputs.items()}
        assert values.keys() == action["inputs"].keys()

        def expanded(text: str) -> str:
            known = {f"inputs.{name}": value for name, value in values.items()}
            known["github.action_path"] = str(self.product)
            return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: known[found[1]], text)

        results = []
        for step in action["runs"]["steps"]:
            if "run" not in step:
                continue
            assert "${{" not in step["run"], "an input in a script can be a command"
            variables = {key: expanded(value) for key, value in step.get("env", {}).items()}
            results.append(self.bash(step["run"], folder, variables))
            if results[-1].returncode:
                break
        return results


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory, product: Path) -> Runner:
    environment = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=600)
    return Runner(environment, product)


def test_the_action_installs_the_package_and_annotates_lines(runner: Runner, users: Path) -> None:
    installed, validated = runner.action(
        users, files="scheduler", kubernetes_version="1.36", arguments="--strict",
        sarif_file="report.sarif",
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    assert validated.returncode == 1, validated.stderr
    assert validated.stdout.startswith(
        "::error file=scheduler/kube-scheduler-packed.yaml,line=5,col="
    )
    log = json.loads((users / "report.sarif").read_text())
    assert log["runs"][0]["properties"]["kubernetesVersion"] == "1.36"
    assert len(log["runs"][0]["results"]) == len(validated.stdout.splitlines())


def test_the_action_takes_inputs_as_text(runner: Runner, users: Path) -> None:
    """Not as commands: a branch or a file may have any name."""
    marker = users / "marker"
    _, validated = runner.action(users, files=f"$(touch {marker}) ; touch {marker}")
    assert validated.returncode == 2
    assert not marker.exists()


def test_the_action_succeeds_for_valid_files(runner: Runner, users: Path) -> None:
    _, validated = runner.action(users, files="scheduler/kube-scheduler-config.yaml")
    assert (validated.returncode, validated.stdout) == (0, "")


def test_the_job_of_gitlab_writes_its_reports_and_fails_for_errors(
    runner: Runner, users: Path
) -> None:
    (job,) = yaml.safe_load(JOB.read_text()).values()
    variables = {**job["variables"], "SCHEDULER_PACKAGE": str(runner.product)}
    done = runner.bash("\n".join(job["script"]), users, variables)
    assert done.returncode == 1, done.stderr
    assert 'has no plugin "ImageLocalty"' in done.stdout
    reports = job["artifacts"]["reports"]
    issues = json.loads((users / reports["codequality"]).read_text())
    assert {each["location"]["path"] for each in issues} == {"scheduler/kube-scheduler-packed.yaml"}
    tests = ElementTree.fromstring((users / reports["junit"]).read_text())
    assert tests.attrib["failures"] == "1"
    (users / "scheduler" / "kube-scheduler-packed.yaml").unlink()
    assert runner.bash("\n".join(job["script"]), users, variables).returncode == 0
