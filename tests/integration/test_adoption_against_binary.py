"""Adoption, seen by the real API server and the real kube-scheduler."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.operator.controlplane.adoption.adopted import adopted
from kube_scheduler_operator.operator.controlplane.adoption.api_defaults import as_mirror_pod
from kube_scheduler_operator.operator.controlplane.adoption.inventory import take_inventory
from kube_scheduler_operator.operator.controlplane.adoption.preview import adopted_objects
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

from ..adopted_files import FILES
from ..customised import CUSTOMISED
from ..unit.operator.controlplane.adoption.test_api_defaults import manifest
from ..unit.operator.controlplane.adoption.test_as_objects import applied, effective, stock

pytestmark = pytest.mark.presubmit

if TYPE_CHECKING:
    from .conftest import ApiServer

NAMESPACE = "adoption"


@pytest.fixture(scope="module")
def namespace(api_server: ApiServer) -> str:
    api_server.create_namespace(NAMESPACE)
    return NAMESPACE


@pytest.mark.parametrize("names", [(), *((name,) for name in CUSTOMISED)], ids=str)
def test_a_manifest_has_the_inventory_of_the_pod_that_the_api_server_makes_of_it(
    api_server: ApiServer, namespace: str, names: tuple[str, ...]
) -> None:
    pod = manifest(*names)
    spec = pod["spec"]
    # What the API server allows in mirror Pods only, and what the kubelet adds to them.
    made = deepcopy(pod)
    made["metadata"] = {**pod["metadata"], "name": f"scheduler-{names[0] if names else 'stock'}"}
    made["spec"] = {**spec, "automountServiceAccountToken": False, "nodeName": "nowhere"}
    stored = api_server.request("POST", f"/api/v1/namespaces/{namespace}/pods", made)
    stored["spec"].pop("automountServiceAccountToken", None)
    expected = take_inventory(as_mirror_pod(pod, "a", KUBEADM), KUBEADM)
    assert take_inventory(stored, KUBEADM) == expected


@pytest.fixture
def complete(
    api_server: ApiServer, kube_scheduler_binary: Path, tmp_path: Path
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The configuration as the real kube-scheduler completes it."""
    kubeconfig = tmp_path / "scheduler.conf"
    kubeconfig.write_text(stub_kubeconfig())
    authority = tmp_path / "ca.crt"
    cluster = yaml.safe_load(api_server.kubeconfig.read_text())["clusters"][0]["cluster"]
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))

    def run(config: Mapping[str, Any]) -> dict[str, Any]:
        text = json.dumps(config).replace(KUBEADM.scheduler_kubeconfig, str(kubeconfig))
        given, written = tmp_path / "config.yaml", tmp_path / "out.yaml"
        given.write_text(text.replace("/etc/kubernetes/extender/ca.crt", str(authority)))
        command: list[str | Path] = [
            kube_scheduler_binary,
            f"--config={given}",
            f"--write-config-to={written}",
        ]
        done = subprocess.run(
            [*command, "--secure-port=0"], capture_output=True, text=True, timeout=50, check=False
        )
        assert done.returncode == 0, done.stderr
        completed = yaml.safe_load(written.read_text())
        assert isinstance(completed, dict)
        return completed

    return run


@pytest.mark.parametrize("profile", ["", "HighNodeUtilization"])
@pytest.mark.parametrize("name", FILES)
def test_kube_scheduler_completes_the_objects_to_what_was_adopted(
    complete: Callable[[Mapping[str, Any]], dict[str, Any]], name: str, profile: str
) -> None:
    before = stock(FILES[name], profile)
    config = effective(before)
    made = adopted_objects(adopted(before).config, config)
    then, now = (
        complete(config),
        complete(effective(stock(FILES[name], profile, **applied(made.objects)))),
    )
    served = {one["schedulerName"] for one in then["profiles"]}
    for one in (then, now):
        # A SchedulerProfile always comes with default-scheduler, which the command reports.
        one["profiles"] = sorted(
            (each for each in one["profiles"] if each["schedulerName"] in served),
            key=lambda each: each["schedulerName"],
        )
        for extender in one.get("extenders") or ():
            # Without a timeout, kube-scheduler waits five seconds (DefaultExtenderTimeout).
            if extender["httpTimeout"] == "0s":
                extender["httpTimeout"] = "5s"
    assert now == then
