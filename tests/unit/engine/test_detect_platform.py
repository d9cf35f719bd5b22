"""Detection of the kind of cluster, also with requests that are refused or fail."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.base.backoff import NO_RETRIES
from kube_scheduler_operator.base.platform import (
    KUBEADM,
    OPENSHIFT,
    RKE2,
    Platform,
    UnsupportedCluster,
    recognize,
)
from kube_scheduler_operator.cli.programs import operator
from kube_scheduler_operator.engine.detect_platform import Detected, detect
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.errors import Unauthorized, Unavailable
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    INFRASTRUCTURES,
    NODES,
    Resource,
)

from ..cli.conftest import Cluster
from ..cli.conftest import cluster as cluster
from ..kube.conftest import FakeApi
from ..kube.conftest import api as api

CLUSTER_VERSIONS = Resource("config.openshift.io", "v1", "clusterversions", "ClusterVersion", False)
LABEL = "node-role.kubernetes.io/control-plane"


@pytest.mark.parametrize(
    ("infrastructure", "kubelets", "platform", "reason"),
    [
        (True, [], OPENSHIFT, 'Infrastructure "cluster" of config.openshift.io exists'),
        (True, ["v1.35.4+rke2r1"], OPENSHIFT, "Infrastructure"),
        (False, ["v1.35.4", "v1.35.4+rke2r1"], RKE2, "kubelet v1.35.4+rke2r1"),
        (
            False,
            ["v1.35.4"],
            KUBEADM,
            "OpenShift's Infrastructure does not exist and the kubelet is v1.35.4",
        ),
        (False, [""], KUBEADM, "OpenShift's Infrastructure does not exist"),
        (False, [], KUBEADM, "no control-plane node is visible"),
    ],
)
def test_a_cluster_is_recognized_by(
    infrastructure: bool, kubelets: Sequence[str], platform: Platform, reason: str
) -> None:
    found, why = recognize(infrastructure=infrastructure, kubelets=kubelets)
    assert found == platform
    assert reason in why


def test_k3s_has_no_static_pod_to_own() -> None:
    with pytest.raises(UnsupportedCluster, match=r"inside its own process.*v1\.35\.4\+k3s1"):
        recognize(infrastructure=False, kubelets=["v1.35.4+k3s1"])


# --- asking ---------------------------------------------------------------------------------------


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[ApiClient]:
    async with ApiClient(
        api.credentials(), field_manager="me", backoff=NO_RETRIES, timeout=2
    ) as made:
        yield made


def node(api: FakeApi, name: str, version: str, **labels: str) -> None:
    api.put(NODES, name, labels=labels, status={"nodeInfo": {"kubeletVersion": version}})


def openshift(api: FakeApi) -> None:
    api.served |= {CLUSTER_VERSIONS, INFRASTRUCTURES}
    api.put(INFRASTRUCTURES, "cluster")


async def test_openshift_has_its_kinds_and_its_object(api: FakeApi, client: ApiClient) -> None:
    openshift(api)
    node(api, "a", "v1.35.4", **{LABEL: ""})
    assert (await detect(client)).platform == OPENSHIFT
    assert not api.requests("GET", "/nodes")


async def test_the_operators_own_kinds_of_the_group_do_not_count(
    api: FakeApi, client: ApiClient
) -> None:
    api.served |= {CLUSTER_OPERATORS}
    node(api, "a", "v1.35.4", **{LABEL: ""})
    found = await detect(client)
    assert (found.platform, found.unanswered) == (KUBEADM, ())
    assert not api.requests("GET", "/infrastructures"), "no request that could be refused"


@pytest.mark.parametrize("served", [{INFRASTRUCTURES}, {INFRASTRUCTURES, CLUSTER_VERSIONS}])
async def test_kinds_without_the_object_do_not_count(
    api: FakeApi, client: ApiClient, served: set[Resource]
) -> None:
    api.served |= served
    api.put(INFRASTRUCTURES, "another")
    assert (await detect(client)).platform == KUBEADM


async def test_only_control_plane_nodes_count(api: FakeApi, client: ApiClient) -> None:
    node(api, "worker", "v1.35.4+k3s1")
    node(api, "server", "v1.35.4+rke2r1", **{LABEL: "true"})
    assert (await detect(client)).platform == RKE2


async def test_after_a_forbidden_request_the_next_one_decides(
    api: FakeApi, client: ApiClient
) -> None:
    openshift(api)
    node(api, "a", "v1.35.4+rke2r1", **{LABEL: "true"})
    api.fail(403, path="/infrastructures", times=None, reason="Forbidden")
    found = await detect(client)
    assert found.platform == RKE2
    assert len(found.unanswered) == 1
    api.fail(403, path="/nodes", times=None, reason="Forbidden")
    found = await detect(client)
    assert found.platform == KUBEADM
    assert len(found.unanswered) == 2


async def test_after_a_failed_request_the_next_one_decides(api: FakeApi, client: ApiClient) -> None:
    api.fail(503, path="/config.openshift.io", times=None)
    node(api, "a", "v1.35.4+rke2r1", **{LABEL: "true"})
    assert (await detect(client)).platform == RKE2


async def test_unavailable_api_server_is_an_error(api: FakeApi, client: ApiClient) -> None:
    api.fail(503, times=None)
    with pytest.raises(Unavailable):
        await detect(client)
    api.faults.clear()
    api.tokens.clear()
    with pytest.raises(Unauthorized):
        await detect(client)


# --- callers --------------------------------------------------------------------------------------


async def test_command_reports_failed_requests(cluster: Cluster) -> None:
    cluster.api.fail(403, path="/nodes", times=None, reason="Forbidden")
    done = await cluster.run("status")
    assert done.err.startswith("note: --platform kubeadm is assumed: ")
    assert len(done.err.splitlines()) == 1


async def test_command_with_a_platform_sends_no_request(cluster: Cluster) -> None:
    cluster.api.fail(403, path="/nodes", times=None, reason="Forbidden")
    done = await cluster.run("status", "--platform", "kubeadm")
    assert done.err == ""
    assert not cluster.api.requests("GET", "/nodes")


async def test_command_refuses_k3s(cluster: Cluster) -> None:
    node(cluster.api, "a", "v1.35.4+k3s1", **{LABEL: "true"})
    done = await cluster.run("status")
    assert done.code == 1
    assert "k3s runs its scheduler inside its own process" in done.err


def run_operator(monkeypatch: pytest.MonkeyPatch, found: Any, *words: str) -> list[Platform]:
    """`kube-scheduler-operator operator WORDS` with this detection; returns what it runs."""
    started: list[Platform] = []

    async def detected(_: ApiClient) -> Detected:
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, Detected)
        return found

    def run(options: Any) -> int:
        started.append(options.platform)
        return 0

    monkeypatch.setattr("kube_scheduler_operator.engine.detect_platform.detect", detected)
    monkeypatch.setattr("kube_scheduler_operator.engine.process.run", run)
    monkeypatch.setattr("kube_scheduler_operator.base.klog.configure", lambda **_: None)
    code = main(["operator", *words])
    assert code == (0 if started else 1)
    return started


def test_operator_runs_for_the_detected_platform_and_logs_the_reason(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=operator.__name__)
    words = ("--kubeconfig", str(cluster.kubeconfig))
    found = Detected(RKE2, "so it is", ("one question was refused",))
    assert run_operator(monkeypatch, found, *words) == [RKE2]
    (record,) = [each for each in caplog.records if each.name == operator.__name__]
    assert record.klog_kv == {  # type: ignore[attr-defined]
        "platform": "rke2",
        "reason": "so it is; one question was refused",
    }


def test_operator_with_a_platform_sends_no_request(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--kubeconfig", str(cluster.kubeconfig), "--platform", "openshift")
    assert run_operator(monkeypatch, AssertionError("asked"), *words) == [OPENSHIFT]


def test_operator_does_not_start_on_k3s(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--kubeconfig", str(cluster.kubeconfig))
    assert run_operator(monkeypatch, UnsupportedCluster("this is k3s"), *words) == []
    assert "this is k3s" in capsys.readouterr().err
