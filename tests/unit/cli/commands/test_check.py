"""`kubectl scheduler check` as a command: what it sends, prints and returns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.checks.check import CheckResult, CheckState
from kube_scheduler_operator.cli.cluster import answers
from kube_scheduler_operator.cli.commands import check
from kube_scheduler_operator.cli.console.errors import CommandError
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
    [
        (("-f", "x.yaml"), "-f is for --pre"),
        (("--pre", "--schedule"), "remove --pre"),
        (("--schedule", "-w"), "would create the Pods of --schedule again"),
        (("--upgrade", "1.37", "-w"), "--upgrade reports about one cluster, once"),
        (("--upgrade", "1.37", "--all-contexts"), "--upgrade reports about one cluster, once"),
        (("--pre", "-f", "-", "--all-contexts"), "standard input is read once"),
    ],
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


async def test_watch_prints_again_when_a_result_changes(
    served: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "INTERVAL", 0.01)
    monkeypatch.setattr(answers, "_SHARE", 0.0)
    asked = 0
    results = check._results

    async def counted(*arguments: Any) -> tuple[CheckResult, ...]:
        nonlocal asked
        asked += 1
        if asked == 3:
            labels = {KUBEADM.node_selectors[0]: ""}
            unready = {"conditions": [{"type": "Ready", "status": "False"}]}
            served.put(NODES, {"metadata": {"name": "n1", "labels": labels}, "status": unready})
        if asked == 6:
            raise CommandError("the end")
        return await results(*arguments)

    monkeypatch.setattr(check, "_results", counted)
    done = await served.run("check", "--platform", "kubeadm", "-w")
    assert (done.code, done.err) == (2, "error: the end\n")
    assert done.out.count("the result has changed") == 1
    assert done.out.count("api-server ") == 2


def test_what_changes_all_the_time_is_not_a_change() -> None:
    def compared(check_name: str, state: CheckState, cause: str) -> Any:
        return check._compared(CheckResult(check_name, state, cause))

    ok = CheckState.OK
    assert compared("certificates", ok, "10 days") == compared("certificates", ok, "9 days")
    behind, more = (f"node n is {seconds} s behind" for seconds in (7, 8))
    warning = CheckState.WARNING
    assert compared("clocks", warning, behind) == compared("clocks", warning, more)
    assert compared("nodes", warning, behind) != compared("nodes", warning, more)
