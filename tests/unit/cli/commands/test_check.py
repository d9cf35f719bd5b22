"""`kubectl scheduler check` as a command: what it sends, prints and returns."""

from __future__ import annotations

import json

import pytest
from aiohttp import web

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import (
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    VALIDATING_WEBHOOKS,
)

from ..conftest import Cluster

FLAGS = ("--platform", "kubeadm", "-o", "json")


@pytest.fixture
def served(cluster: Cluster) -> Cluster:
    """An API server of 1.35 with one Ready control-plane node and the operator's namespace."""

    async def version(_: web.Request) -> web.StreamResponse:
        return web.json_response({"gitVersion": "v1.35.4"})

    cluster.api.routes["/version"] = version
    cluster.api.served |= {
        CLUSTER_ROLES,
        CUSTOM_RESOURCE_DEFINITIONS,
        DEPLOYMENTS,
        MUTATING_WEBHOOKS,
        NAMESPACES,
        NODES,
        VALIDATING_WEBHOOKS,
    }
    cluster.put(NAMESPACES, {"metadata": {"name": KUBEADM.target_namespace}})
    labels = {KUBEADM.node_selectors[0]: ""}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    cluster.put(NODES, {"metadata": {"name": "n1", "labels": labels}, "status": ready})
    return cluster


@pytest.mark.parametrize("flags", [("--pre",), ()], ids=["before", "after"])
async def test_a_check_writes_nothing(served: Cluster, flags: tuple[str, ...]) -> None:
    await served.run("check", *flags, *FLAGS)
    writes = [seen for seen in served.api.seen if seen.method != "GET"]
    assert [
        f"{seen.method} {seen.path}"
        for seen in writes
        if seen.query.get("dryRun") != "All" and not seen.path.endswith("accessreviews")
    ] == []
    if flags:
        assert any(seen.path.endswith("/pods") for seen in writes)


async def test_each_result_has_its_cause_hint_and_page(served: Cluster) -> None:
    done = await served.run("check", *FLAGS)
    document = json.loads(done.out)
    assert (done.code, document["ok"]) == (1, False)
    operator = next(one for one in document["checks"] if one["check"] == "operator")
    assert operator["result"] == "failed"
    assert "is not installed" in operator["cause"]
    assert "check --pre" in operator["hint"]
    assert operator["link"] == "docs/troubleshooting.md#operator"


async def test_a_missing_right_is_not_a_failure_of_the_cluster(served: Cluster) -> None:
    message = 'nodes is forbidden: User "u" cannot list resource "nodes"'
    served.api.fail(403, path="/api/v1/nodes", times=None, message=message)
    done = await served.run("check", "--pre", *FLAGS)
    nodes = next(one for one in json.loads(done.out)["checks"] if one["check"] == "nodes")
    assert nodes["result"] == "not checked"
    assert 'verbs: ["list"]' in nodes["cause"]


async def test_the_text_has_the_fix_and_the_page_below_each_problem(served: Cluster) -> None:
    lines = (await served.run("check", "--platform", "kubeadm")).out.splitlines()
    place = next(i for i, line in enumerate(lines) if line.split()[:2] == ["failed", "operator"])
    assert lines[place + 1].strip().startswith("fix: run kubectl scheduler check --pre")
    assert lines[place + 2].strip() == "see: docs/troubleshooting.md#operator"
    assert "failed" in lines[-1]


@pytest.mark.parametrize(
    ("flags", "part"),
    [(("-f", "x.yaml"), "-f is for --pre"), (("--pre", "--schedule"), "remove --pre")],
)
async def test_flags_that_do_not_fit(cluster: Cluster, flags: tuple[str, ...], part: str) -> None:
    done = await cluster.run("check", *flags)
    assert done.code == 2
    assert part in done.err


async def test_rejected_credentials_are_a_check_that_could_not_run(cluster: Cluster) -> None:
    cluster.api.tokens = set()
    done = await cluster.run("check", *FLAGS)
    (found,) = json.loads(done.out)["checks"]
    assert (done.code, found["check"]) == (2, "api-server")
    assert "new credentials" in found["hint"]
