"""A user with the ClusterRole `edit` in one namespace decides nothing of what others see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from cluster import images
from cluster.observe import OPERATOR_NAMESPACE, until
from kube_scheduler_operator.base import names
from kube_scheduler_operator.operator.secondary.content import SecondaryContent

from ..conftest import (
    CONFIG_MAPS,
    REPOSITORY,
    SCHEDULER_EXTENDERS,
    SECONDARY_SCHEDULERS,
    Cluster,
)
from ..workloads import apply, create, delete, own_pods, patient, placed, pod, wait_for

pytestmark = pytest.mark.usefixtures("no_pods_left")

EXAMPLE: Final = REPOSITORY / "docs/examples/safe.yaml"
NAME: Final = "my-scheduler"
OF_SCHEDULER: Final = f"{names.SECONDARY_LABEL}={NAME}"
NAMESPACE: Final = "tenant"
USER: Final = "system:serviceaccount:tenant:tenant"
OWN_IMAGE: Final = "localhost/kube-scheduler-operator:dev"
"""An image that every list of allowed images has, with a shell."""

WELL: Final = {"Available": "True", "Progressing": "False", "Degraded": "False"}
FORGED: Final = "FORGED"
LIES: Final = "\x1b]0;LIES\x07\nerror: LIES\n\u202eSEIL"
"""A title of the terminal, a bell, a line of our own form, and text from right to left."""

ROWS: Final = {
    "agents": [
        {
            "agent": "safe",
            "filter": {
                "at": "2026-01-01T00:00:00Z",
                "nodes": 3,
                "rejected": [{"node": FORGED, "reason": FORGED, "unresolvable": False}],
            },
        }
    ]
}
ANSWERS: Final = (
    "this is not JSON",
    '{"agents": [{}]}',
    '{"agents": [{"agent": "x", "filter": {}}]}',
)
SERVER: Final = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = sys.argv[2].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def tenant(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with my-scheduler, its agent `safe`, and a tenant."""
    shared_cluster.rest()
    apply(shared_cluster, *patient(EXAMPLE.read_text()))
    wait_for(shared_cluster, f"{SECONDARY_SCHEDULERS}/{NAME}", timeout=120, **WELL)
    wait_for(shared_cluster, f"{SCHEDULER_EXTENDERS}/safe", Accepted="True", Available="True")
    shared_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    for account in ("default", "tenant"):
        shared_cluster.api.create(accounts, {"metadata": {"name": account}})
    edit = (
        "create",
        "rolebinding",
        "tenant",
        "--clusterrole=edit",
        "--serviceaccount=tenant:tenant",
    )
    shared_cluster.kubectl("-n", NAMESPACE, *edit)
    yield shared_cluster
    shared_cluster.kubectl("delete", "namespace", NAMESPACE, "--now")
    for path in (SECONDARY_SCHEDULERS, SCHEDULER_EXTENDERS):
        shared_cluster.api.request("DELETE", path)


def _as_tenant(cluster: Cluster, *objects: dict[str, Any]) -> None:
    text = "\n---\n".join(yaml.safe_dump(obj) for obj in objects)
    cluster.kubectl(f"--as={USER}", "-n", NAMESPACE, "apply", "-f", "-", stdin=text)


def _forged_content(cluster: Cluster, served: str) -> dict[str, Any]:
    """my-scheduler's content with the tenant's program, for a schedulerName."""
    status = cluster.api.request("GET", f"{SECONDARY_SCHEDULERS}/{NAME}")["status"]
    real = cluster.api.request("GET", f"{CONFIG_MAPS}/{NAME}-config-{status['configHash']}")
    config = json.loads(real["data"][names.CONFIG_KEY])
    config["profiles"] = [{"schedulerName": served}]
    config.pop("extenders", None)
    spec = json.loads(real["data"][names.POD_KEY])
    spec["containers"][0] |= {"image": OWN_IMAGE, "command": ["sh", "-c", "sleep 3600", FORGED]}
    data = {
        **real["data"],
        names.CONFIG_KEY: json.dumps(config),
        names.POD_KEY: json.dumps(spec),
        "image": OWN_IMAGE,
    }
    metadata = {
        "name": f"{NAME}-config-{SecondaryContent(data).hash}",
        "namespace": NAMESPACE,
        "labels": real["metadata"]["labels"],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _forging_pod(name: str, port: int, answer: str) -> dict[str, Any]:
    """A Pod that looks like one of my-scheduler with the agent `safe`."""
    command = ["python3", "-c", SERVER, str(port), answer]
    labels = {"app": names.SECONDARY, names.SECONDARY_LABEL: NAME}
    container = {"name": "extender-safe", "image": OWN_IMAGE, "command": command}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }


def _started(stderr: str) -> list[str]:
    """The images of the kube-schedulers that a command has started in the cluster."""
    return [line.split()[-1] for line in stderr.splitlines() if line.startswith("simulating in")]


@pytest.mark.parametrize("scheduler", [NAME, "ghost"])
def test_no_program_and_no_configuration_of_a_tenant_is_simulated(
    tenant: Cluster, scheduler: str
) -> None:
    """`ghost` is served by the tenant's ConfigMap alone; for my-scheduler it is the newer one."""
    _as_tenant(tenant, _forged_content(tenant, scheduler))
    create(tenant, pod("waiting", scheduler, {"cpu": "1000"}))
    done = tenant.plugin("why", "default/waiting", "--in-cluster", "-o", "json")
    assert done.returncode == 0, done.stderr
    (image,) = _started(done.stderr)
    assert image == images.scheduler_name(tenant.sandbox.kubernetes)
    assert FORGED not in done.stdout + done.stderr
    if scheduler == NAME:
        assert "Insufficient cpu" in done.stdout
    else:
        assert "ghost" in done.stdout
    tenant.kubectl("-n", NAMESPACE, "delete", "configmaps", "-l", names.SECONDARY_LABEL)
    delete(tenant, "waiting")


def test_no_answer_of_a_tenants_pod_is_shown_as_that_of_an_agent(tenant: Cluster) -> None:
    extender = tenant.api.request("GET", f"{SCHEDULER_EXTENDERS}/safe")
    port = int(extender["status"]["agent"]["port"])
    answers = (json.dumps(ROWS), *ANSWERS)
    forging = [_forging_pod(f"agent-{i}", port, answer) for i, answer in enumerate(answers)]
    _as_tenant(tenant, *forging)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"

    def running() -> bool:
        pods = tenant.api.request("GET", path)["items"]
        return [item["status"]["phase"] for item in pods] == ["Running"] * len(forging)

    until(running, 60, "the tenant's Pods do not run")
    create(tenant, pod("asked", NAME))
    placed(tenant, "asked")
    real = [
        f"{OPERATOR_NAMESPACE}/{one['metadata']['name']}" for one in own_pods(tenant, OF_SCHEDULER)
    ]
    done = tenant.plugin("why", "default/asked", "-o", "json")
    assert done.returncode == 0, done.stderr
    sources = [answer["from"] for answer in json.loads(done.stdout)["answers"]]
    assert sources
    assert all(any(name in source for name in real) for source in sources)
    assert FORGED not in done.stdout + done.stderr
    tenant.kubectl("-n", NAMESPACE, "delete", "pods", "--all", "--now", "--wait=false")
    delete(tenant, "asked")


COMMANDS = (
    ("status",),
    ("status", "-o", "json"),
    ("check",),
    ("check", "-o", "json"),
    ("pending", "-A"),
    ("pending", "-A", "-o", "json"),
    ("why", f"{NAMESPACE}/lying"),
    ("why", f"{NAMESPACE}/lying", "-o", "json"),
    ("history",),
)


@pytest.mark.timeout(600, func_only=True)
def test_no_text_of_a_tenant_forges_a_line_or_reaches_the_terminal(tenant: Cluster) -> None:
    lying = pod("lying", LIES)
    lying["metadata"]["namespace"] = NAMESPACE
    tenant.api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", lying)
    event = {
        "metadata": {"generateName": "lying-", "namespace": NAMESPACE},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "name": "lying", "namespace": NAMESPACE,
        },
        "reason": "Scheduled",
        "message": LIES,
        "type": "Normal",
        "reportingComponent": "default-scheduler",
        "reportingInstance": f"default-scheduler-{LIES}",
        "source": {"component": LIES, "host": LIES},
    }  # fmt: skip
    tenant.api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/events", event)
    kind = names.PODS_WITHOUT_SCHEDULER

    def reported() -> bool:
        return tenant.condition(kind)[0] == "True"

    until(reported, 180, lambda: f"{kind} is {tenant.condition(kind)}")
    messages = [condition.get("message", "") for condition in tenant.status["conditions"]]
    outputs = {"conditions": "\n".join(messages), "events": "\n".join(tenant.events())}
    for command in COMMANDS:
        done = tenant.plugin(*command)
        outputs[" ".join(command)] = done.stdout + done.stderr
    for source, text in outputs.items():
        unsafe = [each for each in text if (each < " " and each != "\n") or each in "\x7f\u202e"]
        assert not unsafe, f"{source}: {text}"
        forged = [line for line in text.splitlines() if line.startswith("error: LIES")]
        assert not forged, f"{source}: {text}"
    assert "SEIL" in "".join(outputs.values()), "it is shown, written out"
