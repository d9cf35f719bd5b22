"""Imports that would cost start-up time and memory."""

from __future__ import annotations

import subprocess
import sys


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )
    return done.stdout.strip()


def test_the_operator_starts_without_the_official_client() -> None:
    module = "kube_scheduler_operator.operator.engine.process"
    assert run(f"import sys, {module}; print('kubernetes' in sys.modules)") == "False"


def test_the_official_client_can_be_imported_afterwards() -> None:
    program = (
        "import kube_scheduler_operator.kube.kopf.imports\n"
        "from kubernetes.config import kube_config\n"
        "print(kube_config.KubeConfigLoader.__name__)"
    )
    assert run(program) == "KubeConfigLoader"


def test_a_loaded_official_client_stays() -> None:
    program = (
        "import sys, kubernetes\n"
        "import kube_scheduler_operator.kube.kopf.imports\n"
        "print(sys.modules['kubernetes'] is kubernetes)"
    )
    assert run(program) == "True"
