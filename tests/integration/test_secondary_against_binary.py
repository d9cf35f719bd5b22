"""What the operator composes for the examples, as the real kube-scheduler reads it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig
from kube_scheduler_operator.operator.secondary.desired import DesiredScheduler, OperandDefaults
from kube_scheduler_operator.operator.secondary.status import _profiles

from ..desired import desired_secondary
from .conftest import REPOSITORY

pytestmark = pytest.mark.presubmit

IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
V135 = Version(1, 35, 4)
EXAMPLES = REPOSITORY / "docs" / "examples"


def example(name: str, **changes: Any) -> DesiredScheduler:
    obj = yaml.safe_load((EXAMPLES / name).read_text())
    obj["spec"] |= changes
    return desired_secondary(obj, KUBEADM, OperandDefaults(IMAGE), V135)


def check(binary: Path, wanted: DesiredScheduler, folder: Path) -> tuple[int, str, dict[str, Any]]:
    """The preflight: exit code, output, and the defaulted configuration."""
    assert wanted.content is not None, wanted.findings
    (folder / "kubeconfig").write_text(stub_kubeconfig())
    config = {**wanted.content.config, "clientConnection": {"kubeconfig": f"{folder}/kubeconfig"}}
    (folder / "config.yaml").write_text(json.dumps(config))
    spec = json.loads(wanted.content.data["pod.yaml"])
    arguments = [
        one.replace("/etc/kubernetes/scheduler/", f"{folder}/").replace("/preflight/", f"{folder}/")
        for one in spec["initContainers"][0]["args"]
    ]
    kubeconfigs = [
        f"--{kind}-kubeconfig={folder}/kubeconfig" for kind in ("authentication", "authorization")
    ]
    done = subprocess.run(
        [binary, *arguments, *kubeconfigs], capture_output=True, text=True, check=False, timeout=30
    )
    written = folder / "effective-config.yaml"
    effective = yaml.safe_load(written.read_text()) if written.exists() else {}
    return done.returncode, done.stderr, effective


@pytest.mark.parametrize("name", ["my-scheduler.yaml", "my-scheduler-three-profiles.yaml"])
def test_the_examples_are_accepted_and_run_the_plugins_of_their_status(
    name: str, kube_scheduler_binary: Path, tmp_path: Path
) -> None:
    wanted = example(name)
    code, output, effective = check(kube_scheduler_binary, wanted, tmp_path)
    assert code == 0, output
    assert effective["leaderElection"]["resourceName"] == "my-scheduler"
    assert effective["leaderElection"]["resourceNamespace"] == KUBEADM.target_namespace
    assert wanted.content is not None
    shown = _profiles(wanted.content.items, V135)
    assert [one["schedulerName"] for one in effective["profiles"]] == [
        one["schedulerName"] for one in shown
    ]
    if name == "my-scheduler-three-profiles.yaml":
        scores = [[p["name"] for p in one["plugins"].get("score", ())] for one in shown]
        assert "TaintToleration" not in scores[0]
        assert scores[1] == []
        assert "TaintToleration" in scores[2]


def test_plugins_that_a_custom_image_lacks_are_refused_by_its_preflight(
    kube_scheduler_binary: Path, tmp_path: Path
) -> None:
    wanted = example("custom-plugins.yaml")
    assert not wanted.composition.blocking
    assert {finding.reason for finding in wanted.findings} == {"UnknownPlugin"}
    code, output, effective = check(kube_scheduler_binary, wanted, tmp_path)
    assert (code, effective) == (1, {})
    assert "MyCustomPluginA" in output


def test_plugins_that_the_stock_image_lacks_are_refused_by_validation() -> None:
    wanted = example("custom-plugins.yaml", image=IMAGE)
    assert wanted.content is None
    paths = [finding.path for finding in wanted.findings]
    assert paths[0] == "spec.profiles[0].plugins.score.enabled[0].name"
