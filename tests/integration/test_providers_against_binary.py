"""The real kube-scheduler accepts the configurations that `compose --for` writes for providers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.source.yaml_text import yaml_text
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

from ..unit.config.lint.providers.cases import CASES, case_for, configurations
from ..unit.config.lint.providers.outputs import write

pytestmark = [pytest.mark.presubmit, pytest.mark.core]


@pytest.mark.parametrize("word", ["aks", "cluster-autoscaler", "k3s", "kubeadm", "rke2", "talos"])
@pytest.mark.parametrize("case", CASES)
def test_kube_scheduler_accepts_what_is_written_for_providers(
    word: str, case: str, kube_scheduler_binary: Path, tmp_path: Path
) -> None:
    command = [str(kube_scheduler_binary), "--version"]
    version = subprocess.check_output(command, text=True, timeout=50).split()[-1]
    output = write(word, **{**case_for(word, case), "version": version})
    (config,) = (one for each in output.files for one in configurations(each.content))
    file = tmp_path / "config.yaml"
    file.write_text(yaml_text([_here(config, tmp_path)]), encoding="utf-8")
    done = subprocess.run(
        [str(kube_scheduler_binary), f"--config={file}", "--secure-port=0",
         f"--write-config-to={tmp_path / 'effective.yaml'}"],
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "effective.yaml").exists()


def _here(config: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The configuration without files of a provider's node, which do not exist here."""
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(stub_kubeconfig(), encoding="utf-8")
    connection = {**config.get("clientConnection", {}), "kubeconfig": str(kubeconfig)}
    extenders = [
        {key: value for key, value in each.items() if key != "tlsConfig"}
        for each in config.get("extenders", ())
    ]
    return {**config, "clientConnection": connection, "extenders": extenders}
