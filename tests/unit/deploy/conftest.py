"""The project's own Helm; the first test builds it if this machine has none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import helm as cluster_helm

from .overlays import DEPLOY

CHART = DEPLOY / "helm"

Helm = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Run `helm COMMAND… CHART OPTIONS…`, without a user's configuration."""
    program = cluster_helm.provide()
    home = tmp_path_factory.mktemp("helm")
    folders = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    environment = {**os.environ, **folders, "KUBECONFIG": str(home / "none")}

    def run(
        *command: str, chart: Path = CHART, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        # Without a cluster, a Helm that was built from its module takes Kubernetes for 1.20.
        version = ("--kube-version", "1.35.0") if command[0] in ("template", "lint") else ()
        line: list[str | Path] = [program, *command, chart, *version, *options]
        return subprocess.run(
            line, check=False, capture_output=True, text=True, env=environment, timeout=50
        )

    return run
