"""Waiting for a node: whose mirror pod shows that its scheduler runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster import lifecycle, model, node_files, processes
from cluster.api import Api, ApiError, Object
from cluster.console import SandboxError
from kube_scheduler_operator.base.platform import PLATFORMS


class OnePod(Api):
    """An API server that has the mirror pod of one platform's scheduler, and no other pod."""

    def __init__(self, namespace: str, name: str) -> None:
        self._path = f"/api/v1/namespaces/{namespace}/pods/{name}"

    def request(
        self, method: str, path: str, body: Object | str | None = None, *, content_type: str = ""
    ) -> Object:
        if (method, path) != ("GET", self._path):
            raise ApiError(404, f"{path} not found")
        return {"status": {"phase": "Running"}}


@pytest.mark.parametrize("name", [model.KUBEADM, model.OPENSHIFT])
def test_a_started_node_waits_for_the_scheduler_of_its_own_platform(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_files, "root", lambda *_: tmp_path)
    box = model.Sandbox("dev", 0, model.make_nodes("dev", 1, 0), name)
    (node,) = box.nodes
    platform = PLATFORMS[name]
    pod = OnePod(platform.operand_namespace, platform.mirror_pod_name(node.name))
    assert lifecycle.scheduler_runs(box, pod, node), "without a manifest nothing has to run"
    manifests = tmp_path / "etc/kubernetes/manifests"
    manifests.mkdir(parents=True)
    (manifests / platform.manifest_file).touch()
    assert lifecycle.scheduler_runs(box, pod, node)
    assert not lifecycle.scheduler_runs(box, OnePod("elsewhere", "other"), node)


@pytest.mark.parametrize("name", model.PLATFORMS)
def test_the_names_of_a_sandbox_are_those_of_its_platform(name: str) -> None:
    box = model.Sandbox("dev", 0, (), name)
    platform = PLATFORMS[name]
    assert box.operator_namespace == platform.operator_namespace
    assert box.operator_deployment == platform.operator.deployment


def test_a_controller_manager_that_ended_is_reported_at_once_with_its_log(
    state_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = model.Sandbox("dev", 0, ())
    log = processes.log_file(sandbox, "kube-controller-manager")
    log.parent.mkdir(parents=True)
    log.write_text('"x" is not in the list of known controllers\n')
    api: Any = None
    monkeypatch.setattr(lifecycle, "_takes_pods", lambda _: False)
    with pytest.raises(SandboxError, match=r"service account:\n.*not in the list of kno"):
        lifecycle.wait_for_accounts(sandbox, api)
    monkeypatch.setattr(lifecycle, "_takes_pods", lambda _: True)
    lifecycle.wait_for_accounts(sandbox, api)


@pytest.mark.parametrize(("before", "after"), [("128", "1024"), ("8192", "8192")])
def test_the_limit_of_inotify_instances_is_raised_and_never_lowered(
    before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "max_user_instances"
    file.write_text(f"{before}\n")
    monkeypatch.setattr(lifecycle, "_INOTIFY_INSTANCES", file)
    lifecycle.allow_inotify()
    assert file.read_text().strip() == after
