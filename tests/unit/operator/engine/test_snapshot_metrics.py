"""Metrics of snapshots."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.base import names, x509
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS
from kube_scheduler_operator.node.protocol.disk_report import DiskReport
from kube_scheduler_operator.operator.engine.snapshot_metrics import SnapshotMetrics
from kube_scheduler_operator.operator.model.snapshot import (
    FutileWrite,
    Futility,
    Secondaries,
    Snapshot,
)
from kube_scheduler_operator.operator.telemetry.cluster_metrics import GAUGES, ClusterState
from kube_scheduler_operator.operator.telemetry.metrics import OperatorMetrics

from .... import builders
from ....builders import condition, kubescheduler, node, operand_pod, ready_condition, terminated

if TYPE_CHECKING:
    from ...conftest import CertificateFiles

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Object = dict[str, Any]


def snapshot(status: Object | None = None, **fields: Any) -> Snapshot:
    given: Object = {"kubescheduler": kubescheduler(status or {}), "nodes": {"a": node()}}
    return builders.snapshot(now=NOW, **{**given, **fields})


def pod(revision: int, *, ready: bool = True, expires: str = "") -> Object:
    annotations = {names.KUBECONFIG_EXPIRES_ANNOTATION: expires} if expires else {}
    return operand_pod("a", revision, is_ready=ready, annotations=annotations)


def revision(number: int, outcome: str = "", ended: str = "", created: str = "") -> Object:
    annotations = {
        names.REVISION_READY_ANNOTATION: "true",
        names.OUTCOME_ANNOTATION: outcome,
        names.OUTCOME_TIME_ANNOTATION: ended,
    }
    name = f"{names.REVISION_STATUS}-{number}"
    metadata = {"name": name, "creationTimestamp": created, "annotations": annotations}
    return {name: {"metadata": metadata, "data": {}}}


def state(seen: Snapshot) -> ClusterState:
    metrics = OperatorMetrics("0.1.0")
    SnapshotMetrics(metrics).observe(seen)
    for name, samples in metrics.state.samples.items():
        _, *labels = GAUGES[name]
        assert {len(values) for values in samples} <= {len(labels)}
    return metrics.state


def test_every_gauge_has_samples_of_a_snapshot() -> None:
    futile = (FutileWrite(KUBE_SCHEDULERS.ref(kubescheduler({})), Futility.DROPPED),)
    in_effect: Object = {"spec": {"assign": {}}, "status": {"assignment": {"namespaces": {}}}}
    schedulers: dict[str, Object] = {
        "waits": {"spec": {"assign": {}}},
        "by-name": {"spec": {}},
        "packed": in_effect,
    }
    for secondary in schedulers.values():
        secondary["metadata"] = {}
    seen = state(
        snapshot(
            {"nodeStatuses": [{"nodeName": "a"}]},
            scheduler={},
            operand_pods={"a": operand_pod("a", image="registry.k8s.io/kube-scheduler:v1.33.1")},
            server_version="v1.34.0",
            futile_writes=futile,
            secondaries=Secondaries(schedulers),
        )
    )
    at_the_scrape = {"lease_age_seconds", "waiting_pods", "waiting_pods_oldest_timestamp_seconds"}
    assert seen.samples.keys() == GAUGES.keys() - at_the_scrape
    assert seen.samples["node_version_skew"] == {("a",): 1}
    assert seen.samples["futile_writes"] == {("kubeschedulers", "FieldsDropped"): 1}
    assert seen.samples["assigned"] == {("waits",): False, ("packed",): True}


@pytest.mark.parametrize("number", range(8))
def test_reference_gauges_follow_the_scheduler_object(number: int) -> None:
    masters, policy, selector = (bool(number & bit) for bit in (1, 2, 4))
    spec: Object = {"mastersSchedulable": masters}
    spec |= {"policy": {"name": "policy-configmap"}} if policy else {}
    spec |= {"defaultNodeSelector": "type=worker"} if selector else {}
    metrics = OperatorMetrics("0.1.0")
    SnapshotMetrics(metrics).observe(snapshot(scheduler={"spec": spec}))
    gauges = (
        "cluster_master_schedulable",
        "cluster_legacy_scheduler_policy",
        "cluster_default_node_selector",
    )
    values = [metrics.registry.get_sample_value(name) for name in gauges]
    assert values == [masters, policy, selector]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("entry", "running", "ready", "drifted"),
    [
        pytest.param({"currentRevision": 3}, 3, True, False, id="as-it-should-be"),
        pytest.param({"currentRevision": 3}, 2, True, True, id="another-revision"),
        pytest.param({"currentRevision": 3}, 0, True, True, id="a-stranger"),
        pytest.param({"currentRevision": 3}, None, True, True, id="nothing"),
        pytest.param({"currentRevision": 3}, 2, False, False, id="out-of-reach"),
        pytest.param({"currentRevision": 3, "targetRevision": 4}, 4, True, False, id="moving"),
        pytest.param({"currentRevision": 3, "targetRevision": 3}, 0, True, True, id="put-back"),
        pytest.param({"currentRevision": 3, "lastFailedRevision": 4}, 4, True, False, id="late"),
        pytest.param({}, 0, True, False, id="not-adopted-yet"),
    ],
)
def test_node_that_runs_another_revision(
    entry: Object, running: int | None, ready: bool, drifted: bool
) -> None:
    status = {"nodeStatuses": [{"nodeName": "a", **entry}]}
    pods = {} if running is None else {"a": pod(running)}
    seen = state(
        snapshot(status, nodes={"a": node("a", ready_condition(ready or None))}, operand_pods=pods)
    )
    expected = {
        "node_current_revision": entry.get("currentRevision", 0),
        "node_target_revision": entry.get("targetRevision", 0),
        "node_running_revision": running or 0,
        "node_scheduler_ready": running is not None,
        "node_drifted": drifted,
    }
    for name, expected_value in expected.items():
        assert seen.samples[name] == {("a",): expected_value}, name
    assert seen.samples["node_version_skew"] == {}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"holderIdentity": "my_node_0-1", "leaseDurationSeconds": 137}, ("my_node", 142)),
        ({"holderIdentity": "a"}, ("a", 20)),
        ({"holderIdentity": ""}, ("", 20)),
        (None, ("", 20)),
    ],
)
def test_active_scheduler(spec: Object | None, expected: tuple[str, float]) -> None:
    lease = None if spec is None else {"metadata": {"name": "kube-scheduler"}, "spec": spec}
    seen = state(snapshot(operand_lease=lease))
    holder, allowance = expected
    assert seen.samples["active_scheduler"] == ({(holder,): True} if holder else {})
    assert seen.lease_allowance == allowance


def test_holder_of_the_lease_is_shown_if_its_host_is_not_a_node() -> None:
    status = {"nodeStatuses": [{"nodeName": name} for name in ("a.example.com", "b")]}
    lease = {"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "a_1"}}
    assert state(snapshot(status, operand_lease=lease)).samples["active_scheduler"] == {
        ("a",): True,
        ("a.example.com",): False,
        ("b",): False,
    }


def test_quarantined_outcomes() -> None:
    degraded, preflight = names.NODE_INSTALLER_DEGRADED, names.PREFLIGHT_DEGRADED
    for installer, refused, expected in [
        (("False", "AsExpected"), "False", (False, False)),
        (("True", "RevisionFailed"), "False", (False, True)),
        (("True", "InstallerFailed"), "False", (False, False)),
        (("False", "AsExpected"), "True", (True, False)),
    ]:
        conditions = [condition(degraded, *installer), condition(preflight, refused)]
        seen = state(snapshot({"conditions": conditions}))
        quarantined = seen.samples["quarantined"]
        assert (quarantined["refused",], quarantined["failed",]) == expected
        assert seen.samples["condition"][degraded, installer[1]] == (installer[0] == "True")


def test_time_of_the_last_revision_with_each_outcome() -> None:
    history = {
        **revision(1, "installed", "2026-01-01T00:00:10Z"),
        **revision(2, "failed", "2026-01-01T00:00:20Z"),
        **revision(3, "failed", "2026-01-01T00:00:30Z"),
        **revision(4),
    }
    seen = state(snapshot(config_maps=history))
    assert seen.samples["last_outcome_timestamp_seconds"] == {
        ("installed",): moment("2026-01-01T00:00:10+00:00"),
        ("failed",): moment("2026-01-01T00:00:30+00:00"),
    }


def test_rollout_starts_with_the_first_node_or_a_newer_revision() -> None:
    type_, began = names.NODE_INSTALLER_PROGRESSING, "2026-01-01T00:01:00Z"
    moving = {"conditions": [condition(type_, "True", "RollingOut", lastTransitionTime=began)]}
    older, newer = (revision(1, created=f"2026-01-01T00:0{n}:00Z") for n in (0, 2))

    def started(status: Object, history: Object) -> Any:
        seen = state(snapshot(status, config_maps=history))
        return seen.samples["rollout_started_timestamp_seconds"]

    assert started(moving, older) == {(): moment(began)}
    assert started(moving, newer) == {(): moment(began) + 60}
    still = {
        "conditions": [
            condition(type_, "False", "AllNodesAtLatestRevision", lastTransitionTime=began)
        ]
    }
    assert started(still, newer) == {}


def expiries(**fields: Any) -> Any:
    return state(snapshot(**fields)).samples["certificate_expiry_timestamp_seconds"]


def test_certificates_that_installers_found_on_nodes() -> None:
    pods = {"a": pod(1, expires="2027-01-01T00:00:00Z")}
    assert expiries(operand_pods=pods) == {("client", "a"): moment("2027-01-01T00:00:00+00:00")}
    assert expiries(operand_pods={"a": pod(1)}) == {}


def test_certificates_in_secrets(first_certificate: CertificateFiles) -> None:
    kept = OPENSHIFT.credentials
    assert kept is not None
    pem = first_certificate.certificate.read_bytes()
    secret = {"data": {"tls.crt": base64.b64encode(pem).decode(), "tls.key": ""}}
    until = x509.expires(pem)
    assert until is not None

    def found(source: Object, own: Object) -> Any:
        return expiries(platform=OPENSHIFT, source_secrets=source, secrets=own)

    client = {("client", ""): until.timestamp()}
    assert found({kept.client_certificate: secret}, {}) == client
    assert found({}, {kept.client_certificate: secret}) == client
    serving = {("serving", ""): until.timestamp()}
    assert found({}, {kept.serving_certificate: secret}) == serving
    for broken in ({}, {"data": {"tls.crt": "no"}}, {"data": {"tls.crt": "bm8="}}):
        assert found({kept.client_certificate: broken}, {}) == {}


def test_without_a_kubescheduler_only_metrics_of_other_objects_remain() -> None:
    seen = state(snapshot(kubescheduler=None, scheduler={"spec": {"mastersSchedulable": True}}))
    assert seen.samples.keys() == {
        "active_scheduler",
        "assigned",
        "cluster_master_schedulable",
        "cluster_legacy_scheduler_policy",
        "cluster_default_node_selector",
    }


def test_a_hand_edit_that_keeps_the_label_is_drift() -> None:
    report = DiskReport(revision=3, edits=("/m",), edit="e", labelled=3)
    guard: dict[str, Any] = {
        "metadata": {
            "name": "kube-scheduler-guard-a",
            "ownerReferences": [{"uid": "uid-cluster"}],
        },
        "spec": {"nodeName": "a"},
        "status": {
            "containerStatuses": [
                {"name": "guard", "lastState": terminated(3, report.serialise())},
            ]
        },
    }
    seen = state(
        snapshot(
            {"nodeStatuses": [{"nodeName": "a", "currentRevision": 3}]},
            nodes={"a": node("a")},
            operand_pods={"a": pod(3)},
            guard_pods={guard["metadata"]["name"]: guard},
        )
    )
    assert seen.samples["node_drifted"]["a",]
