"""OpenShift's kinds as programs in Go use them: through its typed client (hack/openshift-client).

A typed client writes every field without omitempty, also unset ones.
"""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from cluster import go_programs
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.operator.controlplane.cluster_operator import desired_cluster_operator

from ..builders import snapshot
from ..unit.deploy.overlays import DEPLOY, build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import ApiServer

PATHS = {
    "Scheduler": "/apis/config.openshift.io/v1/schedulers",
    "KubeScheduler": "/apis/operator.openshift.io/v1/kubeschedulers",
    "ClusterOperator": "/apis/config.openshift.io/v1/clusteroperators",
}


@pytest.fixture(scope="module")
def client() -> str:
    return str(go_programs.provide("openshift-client", "run the other tests"))


@pytest.fixture(scope="module")
def shipped(client: str, api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[None]:
    """The objects of deploy/openshift, and the ClusterOperator that the operator creates.

    Tests with nodes take turns with this one: some expect no KubeScheduler. The client is built
    first, while they go on.
    """
    objects = [one for one in build(DEPLOY / "openshift") if one["kind"] in PATHS]
    if all(one["kind"] != "ClusterOperator" for one in objects):
        objects.append(cluster_operator())
    for one in objects:
        path = PATHS[one["kind"]]
        created = api_server.request("POST", path, one)
        if status := one.get("status"):
            created["status"] = status
            api_server.request("PUT", f"{path}/{one['metadata']['name']}/status", created)
    yield
    for one in objects:
        api_server.request("DELETE", f"{PATHS[one['kind']]}/{one['metadata']['name']}")


def cluster_operator() -> dict[str, Any]:
    seen = snapshot(platform=OPENSHIFT, now=datetime(2026, 1, 1, tzinfo=UTC))
    found, _ = desired_cluster_operator(seen, [], {"operator": "4.20.0"})
    assert found is not None
    return found


@pytest.mark.usefixtures("shipped")
def test_openshifts_typed_client_reads_and_writes_every_kind(
    api_server: ApiServer, client: str
) -> None:
    run = [client, str(api_server.kubeconfig)]
    output = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True).stdout
    steps = {line["step"]: line["error"] for line in map(json.loads, output.splitlines())}
    assert {step: error for step, error in steps.items() if error} == {}
    for name in ("Scheduler cluster", "KubeScheduler cluster", "ClusterOperator kube-scheduler"):
        for action in ("get", "update unchanged", "update status unchanged"):
            assert f"{name}: {action}" in steps
    edited = {step.partition(" ")[0] for step in steps if ": update spec." in step}
    assert edited == {"Scheduler", "KubeScheduler"}
    assert "ClusterOperator made-by-typed-client: update status status.conditions" in steps
