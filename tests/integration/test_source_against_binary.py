"""Files are parsed like kube-scheduler parses them: scalars and rejected documents."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.objects import mapping
from kube_scheduler_operator.base.source.reader import read
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

pytestmark = pytest.mark.presubmit

HEAD = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: KUBECONFIG}
"""

NUMBERS = (
    "010", "0o10", "0x10", "0X1f", "0b11", "1_0", "1e1", "1E+1", "1.0", "1.", "+5", "089", "1:30",
    "'5'", "!!int '5'", "!!str 5", "1.5", ".5", "-0", "0o9", "1__0", "_1", "2147483648",
)  # fmt: skip
BOOLEANS = (
    "y", "Y", "yes", "on", "On", "True", "true", "TRUE", "n", "No", "off", "OFF", "tRue", '"on"',
    "1", "~", "!!bool yes",
)  # fmt: skip
NAMES = (
    "abc", "2020-01-01", "1:30", "!!str 5", "!foo 5", "5", "y", "no", "~", "null", '"é"', "|-\n  a",
    ">-\n  a\n  b", "1.5.2", "0x", "+", "-", ".", ".5x", "=", "<<", "!!binary YQ==", "1e", "0b2",
    "2001-12-14t21:59:43.10-05:00", "'it''s'", '"\\u0041"',
)  # fmt: skip
REST: dict[str, str] = {
    "twice": "parallelism: 3\nparallelism: 4\n",
    "merged": "profiles:\n- &a {schedulerName: a}\n- <<: *a\n",
    "merged and repeated": "profiles:\n- &a {schedulerName: a}\n- <<: *a\n  schedulerName: b\n",
    "aliased": "percentageOfNodesToScore: &p 5\nparallelism: *p\n",
    "second document": "parallelism: 3\n---\nparallelism: oops\n",
    "number as a key": "1: 2\n",
    "infinite": "parallelism: .inf\n",
    "null for a list": "profiles: null\n",
}
JSON: dict[str, str] = {
    "as it is": "{HEAD}",
    "float": '{HEAD, "parallelism": 5.0}',
    "exponent": '{HEAD, "parallelism": 1e1}',
    "twice": '{HEAD, "parallelism": 5, "parallelism": 6}',
    "flow of YAML": "{HEAD, parallelism: 5}",
    "comma at the end": '{HEAD, "parallelism": 5,}',
    "something behind": '{HEAD, "parallelism": 5} {}',
    "second document": '{HEAD, "parallelism": 5}\n---\n{}',
    "blank before": '  \n{HEAD, "parallelism": 5}',
    "tabs": '{\n\tHEAD,\n\t"parallelism":\t5\n}',
    "comment before": '# YAML\n{HEAD, "parallelism": 5.0}',
}


@pytest.fixture
def started(kube_scheduler_binary: Path, tmp_path: Path) -> Any:
    """(our document, is it fine, the program's completed configuration or None) of a text."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(stub_kubeconfig())
    command = [str(kube_scheduler_binary), "--version"]
    version = Version.parse(subprocess.check_output(command, text=True, timeout=50).split()[-1])

    def start(text: str) -> tuple[bool, Any, Any]:
        text = text.replace("KUBECONFIG", str(kubeconfig))
        file, out = tmp_path / "config.yaml", tmp_path / "out.yaml"
        file.write_text(text, encoding="utf-8")
        out.unlink(missing_ok=True)
        done = subprocess.run(
            [str(kube_scheduler_binary), f"--config={file}", "--secure-port=0",
             f"--write-config-to={out}"],
            capture_output=True, text=True, timeout=50, check=False,
        )  # fmt: skip
        documents, error = read(text)
        # Of several documents kube-scheduler reads the first.
        fine = bool(documents) and (error is None or "---" in text) and not documents[0].flaws
        value = documents[0].value if documents else None
        fine = fine and validate_config(mapping(value), Target(Gates(version))) == []
        if done.returncode:
            return fine, value, None
        ((completed,), _) = read(out.read_text())  # PyYAML cannot read `schedulerName: =`
        return fine, value, completed.value

    return start


@pytest.mark.parametrize("text", NUMBERS)
@pytest.mark.presubmit
def test_numbers(text: str, started: Any) -> None:
    fine, ours, theirs = started(f"{HEAD}percentageOfNodesToScore: {text}\n")
    assert fine == (theirs is not None)
    if fine:
        assert ours.get("percentageOfNodesToScore", 0) == theirs["percentageOfNodesToScore"]


@pytest.mark.parametrize("text", BOOLEANS)
@pytest.mark.presubmit
def test_booleans(text: str, started: Any) -> None:
    fine, ours, theirs = started(f"{HEAD}enableProfiling: {text}\n")
    assert fine == (theirs is not None)
    if fine:
        assert ours.get("enableProfiling", True) == theirs["enableProfiling"]


@pytest.mark.parametrize("text", NAMES)
def test_strings(text: str, started: Any) -> None:
    fine, ours, theirs = started(f"{HEAD}profiles:\n- schedulerName: {text}\n")
    assert fine == (theirs is not None)
    if fine:
        name = ours["profiles"][0].get("schedulerName", "default-scheduler")
        assert name == theirs["profiles"][0]["schedulerName"]


@pytest.mark.parametrize("name", REST)
def test_documents(name: str, started: Any) -> None:
    fine, _, theirs = started(HEAD + REST[name])
    assert fine == (theirs is not None)


@pytest.mark.parametrize("name", JSON)
def test_a_file_that_begins_with_a_brace_is_json(name: str, started: Any) -> None:
    document = yaml.safe_load(HEAD)
    head = json.dumps(document)[1:-1]
    fine, ours, theirs = started(JSON[name].replace("HEAD", head))
    assert fine == (theirs is not None)
    if fine and name != "as it is":
        assert ours["parallelism"] == theirs["parallelism"]
