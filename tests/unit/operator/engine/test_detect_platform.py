"""Detection of the kind of cluster, also with requests that are refused or fail."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.base.backoff import NO_RETRIES
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED, OPENSHIFT, RKE2, Platform
from kube_scheduler_operator.base.recognition import (
    NodeMarks,
    PlatformDecision,
    Recognition,
    Remembered,
    decide,
    recognize,
)
from kube_scheduler_operator.cli.programs import operator
from kube_scheduler_operator.kube.client import ApiClient, Patience
from kube_scheduler_operator.kube.errors import Unauthorized, Unavailable
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    INFRASTRUCTURES,
    NODES,
    Resource,
)
from kube_scheduler_operator.operator.engine.detect_platform import (
    decide_platform,
    detect,
    read_record,
)

from ...cli.conftest import Cluster
from ...cli.conftest import cluster as cluster
from ...kube.conftest import FakeApi
from ...kube.conftest import api as api

CLUSTER_VERSIONS = Resource("config.openshift.io", "v1", "clusterversions", "ClusterVersion", False)
LABEL = "node-role.kubernetes.io/control-plane"


def nodes_of(*kubelets: str) -> list[NodeMarks]:
    """Control-plane nodes with these kubelets."""
    return [NodeMarks(f"n{i}", True, kubelet) for i, kubelet in enumerate(kubelets)]


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
    found = recognize(infrastructure=infrastructure, nodes=nodes_of(*kubelets))
    assert found.platform == platform
    assert reason in found.reason
    assert found.provider == ""


# As `kubectl get nodes -o yaml` and `kubectl version` show them.
EKS = NodeMarks("e", False, "v1.35.4-eks-113cf36", labels={"eks.amazonaws.com/nodegroup": "x"})
KARPENTER = NodeMarks("e", False, "v1.35.4-eks-113cf36", labels={"karpenter.sh/nodepool": "x"})
GKE = NodeMarks("g", False, "v1.33.5-gke.1080000", labels={"cloud.google.com/gke-nodepool": "x"})
AKS = NodeMarks("a", False, "v1.33.2", labels={"kubernetes.azure.com/cluster": "MC_x"})
K3S = NodeMarks("k", True, "v1.33.1+k3s1")
K0S = NodeMarks("k", True, "v1.33.1+k0s", labels={"node.k0sproject.io/role": "control-plane"})
TALOS = NodeMarks("t", True, "v1.35.2", "Talos (v1.12.6)")
MICROK8S = NodeMarks("m", False, "v1.32.3", labels={"microk8s.io/cluster": "true"})


@pytest.mark.parametrize(
    ("node", "provider", "reason"),
    [
        (EKS, "EKS", 'node "e" has kubelet v1.35.4-eks-113cf36'),
        (KARPENTER, "EKS", 'node "e" has kubelet v1.35.4-eks-113cf36'),
        (GKE, "GKE", 'node "g" has kubelet v1.33.5-gke.1080000'),
        (AKS, "AKS", 'node "a" has the label kubernetes.azure.com/cluster=MC_x'),
        (K3S, "k3s", 'node "k" has kubelet v1.33.1+k3s1'),
        (replace(K3S, control_plane=False), "k3s", 'node "k" has kubelet v1.33.1+k3s1'),
        (
            NodeMarks("k", labels={"node.kubernetes.io/instance-type": "k3s"}),
            "k3s",
            'node "k" has the label node.kubernetes.io/instance-type=k3s',
        ),
        (K0S, "k0s", 'node "k" has kubelet v1.33.1+k0s'),
        (TALOS, "Talos", 'node "t" runs Talos (v1.12.6)'),
        (MICROK8S, "MicroK8s", 'node "m" has the label microk8s.io/cluster=true'),
    ],
)
def test_the_provider_is_recognized_by_its_mark(
    node: NodeMarks, provider: str, reason: str
) -> None:
    found = recognize(infrastructure=False, nodes=[node])
    assert (found.platform, found.provider, found.reason) == (MANAGED, provider, reason)
    assert found.certain
    assert found.summary == f"the control plane's scheduler is managed by {provider}"


@pytest.mark.parametrize("node", [EKS, GKE, AKS])
def test_with_a_control_plane_node_the_same_mark_is_that_of_a_product_with_kubeadm(
    node: NodeMarks,
) -> None:
    """EKS Anywhere, GKE on bare metal, Cluster API on Azure."""
    owner = replace(node, name="cp", control_plane=True)
    assert recognize(infrastructure=False, nodes=[owner, node]).platform == KUBEADM


@pytest.mark.parametrize(
    ("version", "provider"),
    [
        ("v1.35.4-eks-113cf36", "EKS"),
        ("v1.33.5-gke.1080000", "GKE"),
        ("v1.33.1+k3s1", "k3s"),
        ("v1.33.1+k0s", "k0s"),
    ],
)
def test_without_nodes_the_api_servers_version_is_the_mark(version: str, provider: str) -> None:
    found = recognize(infrastructure=False, nodes=[], server_version=version)
    assert (found.platform, found.provider) == (MANAGED, provider)
    assert found.reason == f"the API server is {version}"


def test_the_control_planes_own_version_counts_before_the_marks_of_nodes() -> None:
    """A cluster of EKS may have nodes of other distributions, and a kubelet writes its own Node."""
    for node in (TALOS, MICROK8S, AKS):
        worker = replace(node, control_plane=False)
        found = recognize(infrastructure=False, nodes=[worker], server_version="v1.35.4-eks-1")
        assert (found.platform, found.provider) == (MANAGED, "EKS")


def test_evidence_has_a_limit_whatever_a_node_or_the_record_contains() -> None:
    long = NodeMarks("t", os_image="Talos (" + "x" * 100_000)
    assert len(recognize(infrastructure=False, nodes=[long]).reason) <= 300
    data = {"platform": "managed", "provider": "x" * 100_000, "reason": "x" * 100_000}
    found = Remembered.of({"data": data})
    assert (found.provider, len(found.reason)) == ("", 300)


def test_without_a_control_plane_node_there_is_no_static_pod_to_own() -> None:
    found = recognize(infrastructure=False, nodes=[NodeMarks("w", False, "v1.35.4")])
    assert (found.platform, found.provider, found.certain) == (MANAGED, "", True)
    assert found.reason == "no node has a control-plane role label"
    assert found.summary.endswith("is managed by the provider of this cluster")


def test_without_any_node_nothing_is_certain() -> None:
    assert not recognize(infrastructure=False, nodes=[], server_version="v1.35.4").certain


def test_marks_are_read_from_a_node() -> None:
    obj: dict[str, Any] = {
        "metadata": {"name": "t", "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "status": {"nodeInfo": {"kubeletVersion": "v1.35.2", "osImage": "Talos (v1.12.6)"}},
    }
    assert NodeMarks.of(obj) == replace(TALOS, labels=obj["metadata"]["labels"])
    assert NodeMarks.of({}) == NodeMarks("")


# --- deciding once --------------------------------------------------------------------------------

FOUND_EKS = recognize(infrastructure=False, nodes=[EKS])
FOUND_KUBEADM = recognize(infrastructure=False, nodes=nodes_of("v1.35.4"))
UNCERTAIN = recognize(infrastructure=False, nodes=[])


def remembered(found: Recognition) -> Remembered:
    """What a process records that decided this."""
    used = found
    record = Remembered(used.platform.name, used.provider, used.reason, "v1.35.4")
    return Remembered.of({"data": record.data()})


def test_what_is_detected_first_is_used_and_recorded() -> None:
    assert decide(None, FOUND_EKS, Remembered()) == PlatformDecision(FOUND_EKS, remember=True)


def test_what_is_not_certain_is_used_and_not_recorded() -> None:
    assert decide(None, UNCERTAIN, Remembered()) == PlatformDecision(UNCERTAIN, open=True)


def test_a_provider_that_no_node_has_shown_yet_stays_open() -> None:
    unnamed = decide(MANAGED, UNCERTAIN, Remembered())
    assert (unnamed.platform, unnamed.used.provider, unnamed.open) == (MANAGED, "", True)
    assert decide(MANAGED, UNCERTAIN, remembered(unnamed.used)).open
    assert not decide(MANAGED, UNCERTAIN, remembered(FOUND_EKS)).open, "it is on record"
    workers = recognize(infrastructure=False, nodes=[NodeMarks("a")])
    assert not decide(MANAGED, workers, Remembered()).open, "there are nodes, without a mark"


def test_a_provider_is_recorded_when_a_node_shows_it() -> None:
    unnamed = decide(MANAGED, UNCERTAIN, Remembered()).used
    for chosen in (None, MANAGED):
        named = decide(chosen, FOUND_EKS, remembered(unnamed))
        assert (named.used.provider, named.remember, named.disagreement) == ("EKS", True, "")


@pytest.mark.parametrize(
    ("before", "now"), [(FOUND_EKS, FOUND_KUBEADM), (FOUND_KUBEADM, FOUND_EKS)]
)
def test_what_is_recorded_is_used_although_another_platform_is_detected(
    before: Recognition, now: Recognition
) -> None:
    decision = decide(None, now, remembered(before))
    assert (decision.used, decision.remember) == (before, True)
    assert f"platform {before.platform.name}" in decision.disagreement
    assert f"--platform={now.platform.name}" in decision.disagreement
    assert before.reason in decision.disagreement
    assert now.reason in decision.disagreement


@pytest.mark.parametrize("now", [FOUND_EKS, UNCERTAIN])
def test_what_is_recorded_agrees_with_the_same_and_with_nothing(now: Recognition) -> None:
    decision = decide(None, now, remembered(FOUND_EKS))
    assert decision == PlatformDecision(FOUND_EKS, remember=True)


def test_another_provider_is_a_disagreement() -> None:
    now = recognize(infrastructure=False, nodes=[GKE])
    decision = decide(None, now, remembered(FOUND_EKS))
    assert decision.used.provider == "EKS"
    assert "platform managed of GKE" in decision.disagreement


def test_the_flag_wins_and_a_disagreement_is_reported() -> None:
    decision = decide(MANAGED, FOUND_KUBEADM, remembered(FOUND_KUBEADM))
    assert (decision.platform, decision.used.provider) == (MANAGED, "")
    assert "--platform is managed, and the cluster looks like kubeadm" in decision.disagreement


def test_with_the_flag_the_provider_is_recorded_as_well() -> None:
    decision = decide(MANAGED, FOUND_EKS, Remembered())
    assert (decision.used, decision.remember) == (FOUND_EKS, True)
    assert decide(MANAGED, UNCERTAIN, remembered(FOUND_EKS)).used == FOUND_EKS


@pytest.mark.parametrize("data", [None, "x", {}, {"platform": "nope"}, {"platform": 1}])
def test_a_record_that_cannot_be_read_counts_as_none(data: Any) -> None:
    assert Remembered.of({"data": data}) == Remembered()


# --- asking ---------------------------------------------------------------------------------------


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[ApiClient]:
    async with ApiClient(
        api.credentials(), field_manager="me", patience=Patience(2, NO_RETRIES)
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


async def test_control_plane_nodes_count_before_others(api: FakeApi, client: ApiClient) -> None:
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


def record(api: FakeApi, found: Recognition, namespace: str = MANAGED.target_namespace) -> None:
    api.put(CONFIG_MAPS, "platform", namespace=namespace, data=remembered(found).data())


async def test_a_record_is_used_after_restarts(api: FakeApi, client: ApiClient) -> None:
    record(api, FOUND_EKS)
    node(api, "a", "v1.35.4", **{LABEL: ""})
    decided = await decide_platform(client, None)
    assert decided.used == FOUND_EKS
    assert "looks like platform kubeadm" in decided.disagreement
    assert (await read_record(client, [MANAGED])).version == "v1.35.4"


async def test_the_record_of_openshift_is_in_its_own_namespace(
    api: FakeApi, client: ApiClient
) -> None:
    record(api, Recognition(OPENSHIFT, reason="so"), OPENSHIFT.target_namespace)
    assert (await read_record(client, [OPENSHIFT])).platform == OPENSHIFT.name


async def test_a_record_is_looked_for_where_the_operator_has_rights(
    api: FakeApi, client: ApiClient
) -> None:
    node(api, "a", "v1.35.4", **{LABEL: ""})
    await decide_platform(client, None)
    assert not api.requests("GET", f"/namespaces/{OPENSHIFT.target_namespace}/configmaps")


async def test_a_record_of_openshift_counts_if_a_failure_hides_it(
    api: FakeApi, client: ApiClient
) -> None:
    openshift(api)
    record(api, Recognition(OPENSHIFT, reason="so"), OPENSHIFT.target_namespace)
    node(api, "a", "v1.35.4", **{LABEL: ""})
    api.fail(403, path="/infrastructures", times=None, reason="Forbidden")
    assert (await decide_platform(client, None)).platform == OPENSHIFT


async def test_without_the_right_to_read_the_record_detection_decides(
    api: FakeApi, client: ApiClient
) -> None:
    record(api, FOUND_EKS)
    node(api, "a", "v1.35.4", **{LABEL: ""})
    api.fail(403, path="/configmaps", times=None, reason="Forbidden")
    assert (await decide_platform(client, None)).platform == KUBEADM


async def test_a_record_that_cannot_be_reached_decides_nothing(
    api: FakeApi, client: ApiClient
) -> None:
    """The platform might be another one than detection finds."""
    node(api, "a", "v1.35.4", **{LABEL: ""})
    api.fail(503, path="/configmaps", times=None)
    with pytest.raises(Unavailable):
        await decide_platform(client, None)


async def test_a_named_platform_with_static_pods_needs_no_request(
    api: FakeApi, client: ApiClient
) -> None:
    api.fail(403, times=None, reason="Forbidden")
    decided = await decide_platform(client, RKE2)
    assert (decided.platform, decided.remember) == (RKE2, False)


async def test_without_control_plane_nodes_others_have_the_marks(
    api: FakeApi, client: ApiClient
) -> None:
    node(api, "w", "v1.35.4-eks-113cf36")
    found = (await detect(client)).used
    assert (found.platform, found.provider) == (MANAGED, "EKS")


# --- callers --------------------------------------------------------------------------------------


async def test_command_reports_failed_requests(cluster: Cluster) -> None:
    cluster.api.fail(403, path="/nodes", times=None, reason="Forbidden")
    done = await cluster.run("status")
    assert done.err.startswith("note: --platform kubeadm is assumed: ")
    assert len(done.err.splitlines()) == 1


async def test_command_with_a_platform_sends_no_request(cluster: Cluster) -> None:
    cluster.api.fail(403, path="/nodes", times=None, reason="Forbidden")
    done = await cluster.run("history", "--platform", "kubeadm")
    assert "KubeScheduler" in done.err
    assert not cluster.api.requests("GET", "/nodes")


def run_operator(monkeypatch: pytest.MonkeyPatch, found: Any, *words: str) -> list[Platform]:
    """`kube-scheduler-operator operator WORDS` with this detection; returns what it runs."""
    started: list[Platform] = []

    async def decided(_: ApiClient, chosen: Platform | None) -> PlatformDecision:
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, PlatformDecision)
        return found

    def run(options: Any) -> int:
        started.append(options.platform)
        return 0

    monkeypatch.setattr(
        "kube_scheduler_operator.operator.engine.detect_platform.decide_platform", decided
    )
    monkeypatch.setattr("kube_scheduler_operator.operator.engine.process.run", run)
    monkeypatch.setattr("kube_scheduler_operator.base.klog.configure", lambda **_: None)
    code = main(["operator", *words])
    assert code == (0 if started else 1)
    return started


def test_operator_runs_for_the_detected_platform_and_logs_the_reason(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=operator.__name__)
    words = ("--kubeconfig", str(cluster.kubeconfig))
    used = Recognition(RKE2, reason="so it is")
    found = PlatformDecision(used, unanswered=("one question was refused",))
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


def test_operator_names_the_provider_and_a_disagreement_in_its_log(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=operator.__name__)
    words = ("--kubeconfig", str(cluster.kubeconfig), "--platform", "managed")
    found = decide(None, FOUND_KUBEADM, remembered(FOUND_EKS))
    assert run_operator(monkeypatch, found, *words) == [MANAGED]
    first, second = [each for each in caplog.records if each.name == operator.__name__]
    assert first.klog_kv["provider"] == "EKS"  # type: ignore[attr-defined]
    assert second.levelname == "WARNING"
    assert "looks like platform kubeadm" in second.getMessage()
