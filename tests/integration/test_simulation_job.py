"""The Job of a simulation on a real API server: what may make it, and how the cluster removes it.

The kubelet is played: nothing runs in the Pods. The end-to-end tests have real ones.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.console.errors import CommandError
from kube_scheduler_operator.cli.simulation.in_cluster import JobSimulator
from kube_scheduler_operator.cli.simulation.running_scheduler import Operand
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.kube.errors import Forbidden
from kube_scheduler_operator.simulate import job, job_run
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.pending import waiting_groups
from kube_scheduler_operator.simulate.questions import NO_BINARY
from kube_scheduler_operator.simulate.read_cluster import read_cluster
from kube_scheduler_operator.simulate.run_options import RunOptions

from .conftest import REPOSITORY, ApiServer, RefusedError

RUN = secrets.token_hex(3)
USER = f"simulating-user-{RUN}"
NAMESPACE = f"simulations-{RUN}"
OPERATORS = f"operators-{RUN}"
PLATFORM = replace(KUBEADM, operator_namespace=OPERATORS)
EXAMPLE = REPOSITORY / "docs" / "examples" / "simulations.yaml"
NODE = f"node-of-{NAMESPACE}"
OPERAND = Operand("registry.invalid/kube-scheduler:v1.35.4", ("kube-scheduler",))

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]


@pytest.fixture(scope="module")
def installed(
    api_server: ApiServer, nodes_of_ones_own: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServer]:
    """The operator's Deployment, a Ready node, and the example bound to a user."""
    api_server.create_namespace(OPERATORS)
    pod = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "operator", "image": "registry.invalid/operator:1"}]},
    }
    deployment = {
        "metadata": {"name": KUBEADM.operator.deployment},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pod},
    }
    apps = f"/apis/apps/v1/namespaces/{OPERATORS}/deployments"
    api_server.request("POST", apps, deployment)
    api_server.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    api_server.kubectl(
        "patch", "node", NODE, "--subresource=status", "--patch", yaml.safe_dump({"status": status})
    )
    example = EXAMPLE.read_text().replace(": simulations\n", f": {NAMESPACE}\n")
    file = tmp_path_factory.mktemp("example") / EXAMPLE.name
    file.write_text(
        example.replace("namespace: kube-scheduler-operator", f"namespace: {OPERATORS}")
    )
    api_server.kubectl("apply", "-f", str(file))
    # The API server audits accounts of the operator's usual namespace.
    with suppress(RefusedError):
        api_server.create_namespace(KUBEADM.operator_namespace)
    api_server.kubectl("-n", KUBEADM.operator_namespace, "create", "serviceaccount", USER)
    account = f"--serviceaccount={KUBEADM.operator_namespace}:{USER}"
    for where in (NAMESPACE, OPERATORS):
        api_server.kubectl("-n", where, "create", "rolebinding", USER, "--role=simulate", account)
    api_server.kubectl("create", "clusterrolebinding", NODE, "--clusterrole=simulate", account)
    yield api_server
    for path in (f"namespaces/{NAMESPACE}", f"namespaces/{OPERATORS}", f"nodes/{NODE}"):
        api_server.request("DELETE", f"/api/v1/{path}")
    api_server.kubectl("delete", "clusterrolebinding", NODE)
    api_server.kubectl("-n", KUBEADM.operator_namespace, "delete", "serviceaccount", USER)


@pytest.fixture
async def client(installed: ApiServer, tmp_path: Path) -> AsyncIterator[ApiClient]:
    """The user, who has the rights of the example only."""
    config = yaml.safe_load(installed.kubeconfig.read_text())
    token = installed.kubectl("-n", KUBEADM.operator_namespace, "create", "token", USER).strip()
    config["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    async with ApiClient(find(str(kubeconfig)), field_manager="test") as api:
        yield api


def objects(server: ApiServer) -> list[dict[str, Any]]:
    """The Jobs and Pods of simulations."""
    paths = (f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", f"/api/v1/namespaces/{NAMESPACE}/pods")
    return [item for path in paths for item in server.request("GET", path)["items"]]


async def until(met: Callable[[], Any], seconds: float = 40.0) -> Any:
    end = time.monotonic() + seconds
    for _ in range(10_000):
        if found := await asyncio.to_thread(met):
            return found
        assert time.monotonic() < end, "it does not happen"
        await asyncio.sleep(0.1)
    raise AssertionError


def pods(server: ApiServer) -> list[dict[str, Any]]:
    return [item for item in objects(server) if "nodeName" in item["spec"]]


def kubelet(server: ApiServer) -> bool:
    """Confirm the end of Pods that are deleted; whether nothing is left."""
    for pod in pods(server):
        if "deletionTimestamp" in pod["metadata"]:
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}"
            with suppress(RefusedError):  # where it is gone already
                server.request("DELETE", path, {"gracePeriodSeconds": 0})
    return not objects(server)


def writes(server: ApiServer) -> set[tuple[str, str, str]]:
    """(verb, resource, namespace) of the user's writes in the API server's audit log."""
    found = set()
    with (server.kubeconfig.parent / "logs/audit.log").open() as file:
        for line in file:
            event = json.loads(line)
            about = event.get("objectRef", {})
            if USER in event["user"]["username"] and event["verb"] not in ("get", "list", "watch"):
                found.add((event["verb"], about["resource"], about["namespace"]))
    return found


async def simulator(api: ApiClient) -> tuple[JobSimulator, asyncio.Task[Any]]:
    """A simulator, and the question that it was asked."""
    made = JobSimulator(api, PLATFORM, OPERAND, NAMESPACE)
    world = await read_cluster(api, new_nodes=True)
    assert [note for note in world.notes if NAMESPACE in note or "permission" in note] == []
    await made.prepare(world)
    options = RunOptions(NO_BINARY, default_configuration(), seconds=2.0)
    return made, asyncio.create_task(made.ask(waiting_groups, world, options))


async def test_the_rights_of_the_example_are_enough_and_a_cancelled_question_leaves_nothing(
    installed: ApiServer, client: ApiClient
) -> None:
    made, asked = await simulator(client)
    (pod,) = await until(lambda: pods(installed))
    assert pod["spec"]["nodeName"] == NODE
    assert not [volume for volume in pod["spec"]["volumes"] if "emptyDir" not in volume]
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await made.close()
    await until(lambda: kubelet(installed))
    assert writes(installed) == {("create", "jobs", NAMESPACE), ("delete", "jobs", NAMESPACE)}


async def test_another_namespace_is_refused(client: ApiClient) -> None:
    elsewhere = JobSimulator(client, PLATFORM, OPERAND, "default")
    with pytest.raises(Forbidden):
        await elsewhere.prepare(await read_cluster(client))


async def test_a_namespace_without_isolation_is_refused(
    installed: ApiServer, client: ApiClient
) -> None:
    path = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies"
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}
    installed.request("POST", path, {"metadata": {"name": "open"}, "spec": spec})
    try:
        with pytest.raises(CommandError, match="NetworkPolicy open allows egress"):
            await simulator(client)
    finally:
        installed.request("DELETE", f"{path}/open")
    assert objects(installed) == []


@pytest.mark.parametrize("ends", [True, False], ids=["the-pod-ends", "the-node-is-dead"])
async def test_without_its_command_the_cluster_removes_everything(
    installed: ApiServer, client: ApiClient, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    monkeypatch.setattr(job, "KEPT_SECONDS", 1)
    monkeypatch.setattr(job, "START_SECONDS", 60 if ends else 1)
    monkeypatch.setattr(job_run, "START_SECONDS", 60)
    _, asked = await simulator(client)
    (pod,) = await until(lambda: pods(installed))
    asked.cancel()  # killed: nothing is deleted by it
    await asyncio.wait((asked,))
    if ends:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/status"
        installed.request("PUT", path, {**pod, "status": {"phase": "Succeeded"}})
    await until(lambda: kubelet(installed))
