"""kube-scheduler itself takes what `render` writes for a bootstrap node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

pytestmark = pytest.mark.presubmit


@pytest.mark.presubmit
def test_the_bootstrap_scheduler_accepts_its_configuration_and_flags(
    tmp_path: Path, kube_scheduler_binary: Path
) -> None:
    kubeconfig, effective = tmp_path / "auth" / "kubeconfig", tmp_path / "effective.yaml"
    for directory in ("auth", "tls"):
        (tmp_path / directory).mkdir()
    kubeconfig.write_text(stub_kubeconfig())
    config, out = tmp_path / "config.yaml", tmp_path / "out"
    code = main([
        "render", f"--asset-input-dir={tmp_path / 'tls'}", f"--asset-output-dir={out}",
        f"--config-output-file={config}",
    ])  # fmt: skip
    assert code == 0

    # Its paths are those of a bootstrap node; the files are here.
    pod = yaml.safe_load((out / "bootstrap-manifests" / "kube-scheduler-pod.yaml").read_text())
    (container,) = pod["spec"]["containers"]
    seen = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    here = {
        seen["config"]: str(config),
        f"{seen['secrets']}/kubeconfig": str(kubeconfig),
        seen["var-run-kubernetes"]: str(tmp_path / "certificates"),
    }

    def moved(text: str) -> str:
        for there, place in here.items():
            text = text.replace(there, place)
        return text

    config.write_text(moved(config.read_text()))
    done = subprocess.run(
        [
            kube_scheduler_binary, *map(moved, container["args"]),
            f"--write-config-to={effective}", "--secure-port=0",
        ],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    election = yaml.safe_load(effective.read_text())["leaderElection"]
    assert election["resourceNamespace"] == "openshift-kube-scheduler"
    assert election["leaderElect"] is True
