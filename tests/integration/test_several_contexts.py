"""Several contexts of one real API server: an administrator, a user without rights, a dead one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import kubectl_plugin

from .conftest import ApiServer

NAMES = ("admin", "guest", "dead")


@pytest.fixture
def kubeconfig(api_server: ApiServer, tmp_path: Path) -> Path:
    config: dict[str, Any] = yaml.safe_load(api_server.kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    dead = {**cluster, "server": "https://127.0.0.1:9"}
    config["clusters"] = [
        {"name": name, "cluster": dead if name == "dead" else cluster} for name in NAMES
    ]
    config["users"] = [
        {"name": name, "user": {**user, "as": "guest"} if name == "guest" else user}
        for name in NAMES
    ]
    config["contexts"] = [
        {"name": name, "context": {"cluster": name, "user": name}} for name in NAMES
    ]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def _answers(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, Any]:
    code = kubectl_plugin([*arguments, "--kubeconfig", str(kubeconfig), "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_each_context_has_its_own_answer(
    kubeconfig: Path, kube_scheduler_binary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, status = _answers(kubeconfig, capsys, "status", "--all-contexts")
    assert (code, list(status)) == (1, [*NAMES])
    assert status["admin"]["problems"]
    assert "no permission to" in status["guest"]["error"]
    assert "Connection refused" in status["dead"]["error"]

    code, check = _answers(kubeconfig, capsys, "check", "--context", "dead,admin")
    assert (code, list(check)) == (2, ["dead", "admin"])
    assert [one["check"] for one in check["dead"]["checks"]] == ["api-server"]
    assert {"api-server", "crds"} < {one["check"] for one in check["admin"]["checks"]}

    simulated = ("--kube-scheduler", str(kube_scheduler_binary))
    code, pending = _answers(kubeconfig, capsys, "pending", "--context", "admin,guest", *simulated)
    assert code == 1
    assert "groups" in pending["admin"]
    assert "no permission to" in pending["guest"]["error"]
