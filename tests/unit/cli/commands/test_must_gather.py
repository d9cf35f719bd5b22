"""`kubectl scheduler must-gather`: the usual tree, without a secret in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.commands.must_gather import (
    REDACTED,
    files,
    is_healthy_exporter,
    logs_of,
    redacted,
    redacted_text,
    without_exporters_spec,
)
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    EVENTS,
    JOBS,
    LEASES,
    NETWORK_POLICIES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
)

from ....odd_json import nested
from ....odd_objects import unlimited
from ..conftest import NAMESPACE, Cluster, content, scheduler_pod

KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEII\n-----END EC PRIVATE KEY-----"


def named(name: str, namespace: str | None = NAMESPACE, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"metadata": metadata, **fields}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"a {KEY} b", f"a {REDACTED} b"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", REDACTED),
        ("Authorization: Bearer abcdefghijk.x-y", f"Authorization: Bearer {REDACTED}"),
        ("-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----"),
        ("the Bearer is late", "the Bearer is late"),
    ],
)
def test_what_is_blotted_out_of_texts(text: str, clean: str) -> None:
    assert redacted_text(text) == clean


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ({"tlsConfig": {"keyData": "QQ==", "certData": "QQ=="}},
         {"tlsConfig": {"keyData": REDACTED, "certData": "QQ=="}}),
        ({"users": [{"token": "x"}, {"password": "x"}]},
         {"users": [{"token": REDACTED}, {"password": REDACTED}]}),
        ({"config.yaml": '{"keyData":"QQ=="}'}, {"config.yaml": f'{{"keyData": "{REDACTED}"}}'}),
        ({"config.yaml": '{"a":1}\n'}, {"config.yaml": '{"a":1}\n'}),
        ({"text": "{ is not JSON"}, {"text": "{ is not JSON"}),
        ({"token": {"of": "x"}, "password": ""}, {"token": {"of": "x"}, "password": ""}),
    ],
)  # fmt: skip
def test_what_is_blotted_out_of_objects(value: Any, clean: Any) -> None:
    before = json.dumps(value)
    assert redacted(value) == clean
    assert json.dumps(value) == before


def test_of_a_secret_only_names_are_kept() -> None:
    secret = named("s", type="Opaque", data={"b": "c2VjcmV0", "a": "eA=="}, stringData={"c": "x"})
    secret["metadata"]["annotations"] = {"last-applied": "c2VjcmV0"}
    ((path, text),) = files(SECRETS, [secret]).items()
    assert path == f"namespaces/{NAMESPACE}/core/secrets.yaml"
    assert yaml.safe_load(text)["items"] == [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s", "namespace": NAMESPACE},
            "type": "Opaque",
            "keys": ["a", "b", "c"],
        }
    ]
    assert "c2VjcmV0" not in text


def test_paths_are_those_that_tools_know() -> None:
    node = named("n", None)
    node["metadata"]["managedFields"] = [{"manager": "x"}]
    tree = files(NODES, [node])
    assert list(tree) == ["cluster-scoped-resources/core/nodes/n.yaml"]
    assert "managedFields" not in tree["cluster-scoped-resources/core/nodes/n.yaml"]
    assert list(files(DEPLOYMENTS, [named("d")])) == [
        f"namespaces/{NAMESPACE}/apps/deployments.yaml"
    ]
    assert list(files(PODS, [named("p")])) == [
        f"namespaces/{NAMESPACE}/pods/p/p.yaml",
        f"namespaces/{NAMESPACE}/core/pods.yaml",
    ]
    assert files(PODS, []) == {}


@pytest.mark.parametrize("levels", [80, 600, 5_000])
def test_an_object_that_is_nested_too_deep_is_gathered_without_its_depth(levels: int) -> None:
    deep = unlimited(nested(levels, '"Bearer abcdefghijk"'))
    text = nested(levels, '"Bearer abcdefghijk"')
    objects = [named("deep", data={"x": deep, "y": text}), named("other", data={"x": "1"})]
    (tree,) = files(CONFIG_MAPS, objects).values()
    found = yaml.safe_load(tree)["items"]
    assert [one["metadata"]["name"] for one in found] == ["deep", "other"]
    assert found[0]["data"]["y"] == REDACTED
    assert "abcdefghijk" not in tree


def test_which_logs_there_are() -> None:
    status = {
        "initContainerStatuses": [{"name": "i", "state": {"terminated": {}}}],
        "containerStatuses": [
            {"name": "a", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}},
            {"name": "b", "state": {"waiting": {}}},
        ],
    }
    assert logs_of({"status": status}) == [("i", False), ("a", False), ("a", True)]


@pytest.mark.parametrize(
    ("app", "ready", "left_out"),
    [("node-metrics", "True", True), ("node-metrics", "False", False), ("guard", "True", False)],
)
def test_logs_of_healthy_exporters_are_not_collected(app: str, ready: str, left_out: bool) -> None:
    pod = named("p", status={"conditions": [{"type": "Ready", "status": ready}]})
    pod["metadata"]["labels"] = {"app": app}
    assert is_healthy_exporter(pod) == left_out


@pytest.mark.parametrize(("ready", "reduced"), [("True", True), ("False", False)])
def test_healthy_exporters_are_reduced_because_every_node_has_one(
    ready: str, reduced: bool
) -> None:
    pod = named(
        "p", status={"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    )
    pod["metadata"]["labels"] = {"app": "node-metrics"}
    pod["spec"] = {"nodeName": "a", "containers": [{"name": "c" * 5000}]}
    kept = without_exporters_spec(pod)
    assert (kept["metadata"]["name"], kept["spec"]["nodeName"]) == ("p", "a")
    assert kept["status"] == pod["status"]
    assert ("containers" not in kept["spec"]) == reduced


async def test_nodes_are_written_before_the_next_page_is_read(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,000 of them do not fit into memory together."""
    serve(cluster)
    for name in "bcde":
        cluster.put(NODES, named(name, None))
    monkeypatch.setattr("kube_scheduler_operator.kube.client.PAGE", 2)
    written: list[tuple[int, str]] = []
    real = Path.write_text

    def write_text(path: Path, *arguments: Any, **keywords: Any) -> int:
        if path.parent.name == "nodes":
            listed = [seen for seen in cluster.api.seen if seen.path.endswith("/nodes")]
            pages = [seen for seen in listed if "labelSelector" not in seen.query]
            written.append((len(pages), path.stem))
        return real(path, *arguments, **keywords)

    monkeypatch.setattr(Path, "write_text", write_text)
    await cluster.run("must-gather", "--dest", str(tmp_path / "there"))
    assert written == [(1, "a"), (1, "b"), (2, "c"), (2, "d"), (3, "e")]


def serve(cluster: Cluster) -> None:
    cluster.api.served |= {
        SECRETS, DEPLOYMENTS, DAEMON_SETS, JOBS, DISRUPTION_BUDGETS, ROLES, ROLE_BINDINGS,
        NETWORK_POLICIES,
        SERVICE_ACCOUNTS,
    }  # fmt: skip
    cluster.kubescheduler({"a": 1})
    cluster.revision(1, content())
    node = named("a", None)
    node["metadata"]["labels"] = dict.fromkeys(KUBEADM.node_selectors[:1], "")
    cluster.put(NODES, node)
    cluster.put(CLUSTER_OPERATORS, named("kube-scheduler", None))
    cluster.put(SECRETS, named("s", data={"k": "c2VjcmV0"}))
    cluster.put(EVENTS, named("e", message="hello"))
    cluster.put(CONFIG_MAPS, named("theirs", "kube-system", data={"a": "b"}))
    cluster.put(LEASES, named(KUBEADM.operand_lease_name, "kube-system"))
    cluster.put(LEASES, named("theirs", "kube-system"))
    cluster.put(PODS, named("etcd", "kube-system", spec={}))
    running = [{"name": "kube-scheduler", "state": {"running": {}}}]
    cluster.put(PODS, scheduler_pod("a", 1, containerStatuses=running))
    cluster.api.routes["/log"] = log


async def log(_: web.Request) -> web.Response:
    return web.Response(text=f"I0101 started\n{KEY}\n")


async def test_the_tree(cluster: Cluster, tmp_path: Path) -> None:
    serve(cluster)
    folder = tmp_path / "there"
    done = await cluster.run("must-gather", "--dest", str(folder))
    assert (done.code, done.err) == (0, "")
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert f"wrote {len(found)} files to {folder}" in done.out
    assert found >= {
        "timestamp",
        "cluster-scoped-resources/operator.openshift.io/kubeschedulers/cluster.yaml",
        "cluster-scoped-resources/config.openshift.io/clusteroperators/kube-scheduler.yaml",
        "cluster-scoped-resources/core/nodes/a.yaml",
        f"namespaces/{NAMESPACE}/core/configmaps.yaml",
        f"namespaces/{NAMESPACE}/core/events.yaml",
        f"namespaces/{NAMESPACE}/core/secrets.yaml",
        "namespaces/kube-system/pods/kube-scheduler-a/kube-scheduler-a.yaml",
        "namespaces/kube-system/coordination.k8s.io/leases.yaml",
        "namespaces/kube-system/pods/kube-scheduler-a/kube-scheduler/kube-scheduler/logs/current.log",
    }
    everything = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert "c2VjcmV0" not in everything
    assert "MHcCAQEEII" not in everything
    assert "I0101 started" in everything
    assert "theirs" not in everything
    assert "etcd" not in everything
    assert folder.stat().st_mode & 0o077 == 0


async def test_what_may_not_be_read_is_named_and_the_rest_is_there(
    cluster: Cluster, tmp_path: Path
) -> None:
    serve(cluster)
    output = 'secrets is forbidden: User "u" cannot list resource "secrets"'
    cluster.api.fail(403, path="/secrets", reason="Forbidden", message=output, times=None)
    done = await cluster.run("must-gather", "--dest", str(tmp_path / "there"))
    assert done.code == 1
    assert done.err.startswith(f"missing: no permission to list secrets in namespace {NAMESPACE}")
    assert (tmp_path / "there/namespaces" / NAMESPACE / "core/configmaps.yaml").exists()


@pytest.mark.parametrize(("code", "logs"), [(404, 0), (400, 1)])
async def test_missing_log_is_not_a_failure(
    cluster: Cluster, tmp_path: Path, code: int, logs: int
) -> None:
    serve(cluster)
    cluster.api.fail(code, path="/log", message="previous terminated container not found")
    done = await cluster.run("must-gather", "--dest", str(tmp_path / "there"))
    assert (done.code, done.err) == (0, "")
    found = list((tmp_path / "there").rglob("*.log"))
    assert len(found) == logs
    assert all("not found" in log.read_text() for log in found)


async def test_a_folder_in_use_is_left_alone(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = await cluster.run("must-gather", "--dest", str(tmp_path))
    assert done.code == 1
    assert "is not empty" in done.err
    assert not cluster.api.requests("GET", "/pods"), "nothing was gathered"


async def test_an_identity_that_is_not_accepted_ends_it(cluster: Cluster, tmp_path: Path) -> None:
    cluster.api.tokens.clear()
    done = await cluster.run("must-gather", "--dest", str(tmp_path / "there"))
    assert done.code == 1
    assert "token or client certificate" in done.err
