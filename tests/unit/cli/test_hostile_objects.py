"""Every command reads a cluster with objects of a tenant: huge, odd, and two thousand of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.adoption import cluster_facts
from kube_scheduler_operator.cli.checks.check import CheckState, ClusterFacts, Observed
from kube_scheduler_operator.cli.cluster.operator_objects import list_names
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.resource import DEPLOYMENTS, EVENTS, PODS
from kube_scheduler_operator.simulate.kinds import KINDS

from ... import builders
from ...hostile_objects import HOSTILE, hostile, many_pods, odd_pods
from .checks.test_checks import FACTS, results
from .conftest import Cluster
from .test_foreign_text import ROWS, formats, run_in
from .test_foreign_text import files as files
from .test_foreign_text import hostile_cluster as hostile_cluster

LONGEST_OUTPUT: Final = 4 * 2**20
"""Characters; a command may list each of the 2,000 Pods, and no content of a tenant."""


def of_kind(resource: Any, obj: Mapping[str, Any]) -> dict[str, Any]:
    return {**obj, "apiVersion": resource.api_version, "kind": resource.kind}


def other_objects() -> Iterator[tuple[Any, dict[str, Any]]]:
    """Objects of all other kinds that a tenant may write and a command reads."""
    for resource in KINDS:
        if resource.namespaced and resource != PODS:
            bodies: tuple[dict[str, Any], ...] = ({}, {"spec": {}}, {"spec": {}, "status": {}})
            for number, parts in enumerate(bodies):
                yield resource, hostile(f"odd-{number}", **parts)
    labels = {f"example.com/{number:05}": "x" * 60 for number in range(5000)}
    template = {"spec": {"containers": [{"name": "c", "image": "x/kube-scheduler:v1"}]}}
    for number in range(200):
        spec = {"template": template, "selector": None}
        metadata = {"labels": labels} if number == 0 else {}
        yield DEPLOYMENTS, hostile(f"d-{number}", metadata=metadata, spec=spec)
        event = hostile(f"e-{number}", involvedObject={}, source={})
        yield EVENTS, {**event, "eventTime": None, "firstTimestamp": None}


@pytest.fixture
def flooded(hostile_cluster: Cluster) -> Cluster:
    """The cluster of strangers, with a tenant's objects beside it."""
    cluster = hostile_cluster
    for number, obj in enumerate(HOSTILE.values()):
        metadata = {**obj["metadata"], "name": f"hostile-{number}", "uid": f"h-{number}"}
        cluster.put(PODS, {**obj, "metadata": metadata})
    for obj in (*odd_pods(), *many_pods()):
        cluster.put(PODS, obj)
    for resource, obj in other_objects():
        cluster.api.served.add(resource)
        cluster.put(resource, of_kind(resource, obj))
    return cluster


@pytest.mark.parametrize(
    "command", [command for command, row in ROWS.items() if row.cluster is not None]
)
async def test_objects_of_a_tenant_end_no_command(
    command: str, flooded: Cluster, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error is one of the command, not of what it read; the run itself checks what is shown."""
    # Handlers of other tests in the process write to streams that are closed.
    monkeypatch.setattr(logging.root, "handlers", [])
    form, *_ = formats(command) or ("",)
    _code, out, err = await run_in(flooded, command, form, files)
    assert len(out) + len(err) < LONGEST_OUTPUT
    assert "Traceback" not in err


async def test_a_completion_has_the_names_of_a_tenants_pods_and_no_content(
    flooded: Cluster,
) -> None:
    async with ApiClient(flooded.api.credentials(), field_manager="me") as client:
        names = await list_names(client, PODS, "tenant")
    assert len(names) > 2000
    assert max(map(len, names)) < 254


def pod_with_port(name: str, phase: str, port: int = 10259, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "ports": [{"containerPort": 1, "hostPort": port}]}]
    spec = {"nodeName": "cp", "containers": containers, **spec}
    return hostile(name, spec=spec, status={"phase": phase})


async def test_a_pod_that_a_kubelet_refused_does_not_use_the_schedulers_port(
    cluster: Cluster,
) -> None:
    for pod in (
        pod_with_port("runs", "Running"),
        pod_with_port("refused", "Failed"),
        pod_with_port("other-port", "Running", port=80),
        *({**each, "spec": {**each["spec"], "nodeName": "cp"}} for each in odd_pods()),
    ):
        cluster.put(PODS, pod)
    role = {"node-role.kubernetes.io/control-plane": ""}
    facts = ClusterFacts(FACTS.now, KUBEADM, nodes=Observed([builders.node("cp", labels=role)]))
    async with ApiClient(cluster.api.credentials(), field_manager="me") as client:
        pods = await cluster_facts._host_pods(client, facts)
    assert [pod["metadata"]["name"] for pod in pods] == ["runs"]


def test_two_thousand_pods_of_a_namespace_hide_no_other_one() -> None:
    tenants = [pod_with_port(f"p-{number}", "Pending") for number in range(2000)]
    other = pod_with_port("other", "Running")
    other["metadata"]["namespace"] = "zoo"
    found = results("ports", host_pods=[*tenants, other])
    assert {result.state for result in found} == {CheckState.FAILED}
    assert len(found) == 7
    assert "1995 more Pods of namespace tenant" in found[-2].cause
    assert "zoo/other" in found[-1].cause


def test_two_thousand_deployments_of_a_namespace_hide_no_other_one() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x/kube-scheduler:v1"}]}}
    tenants = [hostile(f"d-{number}", spec={"template": template}) for number in range(2000)]
    other = hostile("other", "zoo", spec={"template": template})
    found = results("other-programs", deployments=[*tenants, other])
    assert len(found) == 7
    assert "1995 more Deployments of namespace tenant" in found[-2].cause
    assert "zoo/other" in found[-1].cause
