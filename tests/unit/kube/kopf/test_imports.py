"""What the operator's start must not pay for."""

from __future__ import annotations

import subprocess
import sys


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )
    return done.stdout.strip()


def test_the_operator_starts_without_the_official_client() -> None:
    program = (
        "import sys, kube_scheduler_operator.engine.process; print('kubernetes' in sys.modules)"
    )
    assert run(program) == "False"


def test_the_official_client_is_there_for_those_who_ask_for_it() -> None:
    program = (
        "import kube_scheduler_operator.kube.kopf.imports\n"
        "from kubernetes.config import kube_config\n"
        "print(kube_config.KubeConfigLoader.__name__)"
    )
    assert run(program) == "KubeConfigLoader"


def test_a_client_that_is_loaded_already_stays() -> None:
    program = (
        "import sys, kubernetes\n"
        "import kube_scheduler_operator.kube.kopf.imports\n"
        "print(sys.modules['kubernetes'] is kubernetes)"
    )
    assert run(program) == "True"
