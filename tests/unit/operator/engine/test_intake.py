"""Watches, the changes that wake the queue, and the snapshot of a reconcile."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.objects import NamespacedName
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.oversized import LEFT_OUT
from kube_scheduler_operator.kube.resource import (
    API_SERVERS,
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    FEATURE_GATES,
    INFRASTRUCTURES,
    JOBS,
    KUBE_SCHEDULERS,
    LEASES,
    LOAD_POLICIES,
    NODES,
    OPERATOR_SETTINGS,
    PODS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
    Stream,
)
from kube_scheduler_operator.kube.store import Store
from kube_scheduler_operator.operator.engine.intake import MOST_MIRRORS, Intake
from kube_scheduler_operator.operator.engine.snapshots import take_snapshot
from kube_scheduler_operator.operator.engine.watches import watches
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .... import builders
from ....builders import config_map

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = KUBEADM.target_namespace


class Harness:
    """An intake with a clock that tests set."""

    def __init__(self, platform: Platform = KUBEADM) -> None:
        self.platform = platform
        self.now = BEGIN
        self.wakes = 0
        self.version = 0
        self.store = Store()
        self.intake = Intake(self.store, platform, self._wake, lambda: self.now)

    def _wake(self, *, urgent: bool) -> None:
        self.wakes += 1
        self.urgent = urgent

    def woken(self) -> bool:
        woken, self.wakes = self.wakes > 0, 0
        return woken

    def event(self, resource: Resource, kind: str | None, obj: dict[str, Any]) -> None:
        self.version += 1
        metadata = {"uid": "u", "resourceVersion": str(self.version), **obj["metadata"]}
        self.intake.event(resource, kind, {**obj, "metadata": metadata})

    def lease(self, holder: str, kind: str = "MODIFIED", **spec: Any) -> None:
        name, namespace = KUBEADM.operand_lease_name, KUBEADM.operand_lease_namespace
        metadata = {"name": name, "namespace": namespace}
        body = {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec}
        self.event(LEASES, kind, {"metadata": metadata, "spec": body})

    def snapshot(
        self,
        *,
        missing: Container[Resource] = (),
        leases_seen: Mapping[NamespacedName, datetime] = MappingProxyType({}),
    ) -> Snapshot:
        return take_snapshot(
            self.store,
            self.platform,
            Settings(),
            self.now,
            missing_kinds=missing or self.intake.unread,
            leases_seen=leases_seen,
        )


@pytest.fixture
def harness() -> Harness:
    return Harness()


# --- waking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", None])
def test_changed_object_wakes(harness: Harness, kind: str | None) -> None:
    harness.event(CONFIG_MAPS, kind, config_map("a"))
    assert harness.woken()


def test_old_version_does_not_wake(harness: Harness) -> None:
    harness.event(CONFIG_MAPS, "ADDED", config_map("a"))
    harness.woken()
    old = config_map("a")
    old["metadata"]["resourceVersion"] = "1"
    harness.event(CONFIG_MAPS, "MODIFIED", old)
    assert not harness.woken()


def test_deletion_with_metadata_only_wakes(harness: Harness) -> None:
    harness.event(CONFIG_MAPS, "ADDED", config_map("a"))
    harness.woken()
    harness.event(CONFIG_MAPS, "DELETED", {"metadata": {"name": "a", "namespace": TARGET}})
    assert harness.woken()
    assert harness.snapshot().config_maps == {}


def test_an_object_that_is_too_large_is_left_out_until_it_can_be_read(harness: Harness) -> None:
    profile = {"metadata": {"name": "a"}, "spec": {}}
    harness.event(SCHEDULER_PROFILES, "ADDED", profile)
    harness.woken()
    harness.event(SCHEDULER_PROFILES, "DELETED", {**profile, LEFT_OUT: "a size"})
    assert harness.woken()
    assert harness.snapshot().scheduler_profiles == {}
    harness.event(SCHEDULER_PROFILES, "MODIFIED", profile)
    assert harness.woken()
    assert harness.snapshot().scheduler_profiles is not None
    assert "a" in (harness.snapshot().scheduler_profiles or {})


def test_settings_that_are_too_large_are_not_known_until_they_are_deleted(
    harness: Harness,
) -> None:
    settings = {"metadata": {"name": "cluster"}}
    harness.event(OPERATOR_SETTINGS, "ADDED", {**settings, "spec": {}})
    harness.event(OPERATOR_SETTINGS, "DELETED", {**settings, LEFT_OUT: "a size"})
    assert harness.snapshot().operator_settings is None
    harness.event(OPERATOR_SETTINGS, "MODIFIED", {**settings, "spec": {}})
    assert [*(harness.snapshot().operator_settings or {})] == ["cluster"]
    harness.event(OPERATOR_SETTINGS, "DELETED", {**settings, LEFT_OUT: "a size"})
    harness.event(OPERATOR_SETTINGS, "DELETED", settings)
    assert harness.snapshot().operator_settings == {}


@pytest.mark.parametrize("resource", [SCHEDULERS, KUBE_SCHEDULERS, SCHEDULER_PROFILES])
def test_edited_spec_is_urgent_and_edited_labels_are_not(
    harness: Harness, resource: Resource
) -> None:
    harness.event(resource, "ADDED", {"metadata": {"name": "cluster", "generation": 1}})
    assert harness.urgent
    harness.event(resource, "MODIFIED", {"metadata": {"name": "cluster", "generation": 2}})
    assert harness.urgent
    labelled = {"name": "cluster", "generation": 2, "labels": {"a": "b"}}
    harness.event(resource, "MODIFIED", {"metadata": labelled})
    assert not harness.urgent


def test_pods_and_deletions_are_urgent_and_changed_config_maps_are_not(harness: Harness) -> None:
    harness.event(PODS, "MODIFIED", {"metadata": {"name": "p", "namespace": TARGET}})
    assert harness.urgent
    harness.event(CONFIG_MAPS, "MODIFIED", config_map("a"))
    assert not harness.urgent
    harness.event(CONFIG_MAPS, "DELETED", config_map("a"))
    assert harness.urgent


# --- the scheduler's Lease ------------------------------------------------------------------------


def test_deletion_of_a_control_plane_node_is_noted(harness: Harness) -> None:
    label = {"node-role.kubernetes.io/control-plane": ""}
    master = {"metadata": {"name": "a", "labels": label}}
    worker = {"metadata": {"name": "b", "labels": {}}}
    for node in (master, worker):
        harness.event(NODES, "ADDED", node)
    harness.event(NODES, "DELETED", worker)
    assert harness.intake.node_left is None
    harness.event(NODES, "DELETED", master)
    assert harness.intake.node_left == BEGIN


def test_first_event_of_the_lease_wakes(harness: Harness) -> None:
    harness.lease("a_1", "ADDED")
    assert harness.woken()
    assert harness.intake.lease_seen == BEGIN


def test_renewals_are_noted_and_do_not_wake(harness: Harness) -> None:
    harness.lease("a_1", "ADDED")
    harness.woken()
    for second in range(2, 60, 2):
        harness.now = BEGIN + timedelta(seconds=second)
        harness.lease("a_1")
    assert not harness.woken()
    assert harness.intake.lease_seen == harness.now


def test_new_holder_wakes(harness: Harness) -> None:
    harness.lease("a_1", "ADDED")
    harness.woken()
    harness.lease("b_2")
    assert harness.woken()


def test_late_renewal_wakes(harness: Harness) -> None:
    harness.lease("a_1", "ADDED")
    harness.woken()
    harness.now = BEGIN + timedelta(seconds=15)
    harness.lease("a_1")
    assert not harness.woken()
    harness.now += timedelta(seconds=15.5)
    harness.lease("a_1")
    assert harness.woken()


def test_deletion_of_the_lease_wakes(harness: Harness) -> None:
    harness.lease("a_1", "ADDED")
    harness.woken()
    harness.lease("a_1", "DELETED")
    assert harness.woken()
    assert harness.snapshot().operand_lease is None


@pytest.mark.parametrize("renewed", ["2025-12-31T23:50:00.000000Z", "2026-01-01T00:10:00.000000Z"])
def test_renewals_are_timed_by_the_operators_clock(harness: Harness, renewed: str) -> None:
    harness.lease("a_1", "ADDED", renewTime=renewed)
    assert harness.intake.lease_seen == BEGIN
    harness.now = BEGIN + timedelta(seconds=2)
    harness.lease("a_1", renewTime="2025-12-31T23:50:02.000000Z")
    assert harness.intake.lease_seen == harness.now


def test_a_lease_that_the_watch_does_not_show_as_renewed_is_read(harness: Harness) -> None:
    harness.lease("a_1", "ADDED")
    late = []
    for seconds in (14, 16, 19, 59, 61):
        harness.now = BEGIN + timedelta(seconds=seconds)
        late.append([ref.name for ref in harness.intake.late_leases()])
    name = KUBEADM.operand_lease_name
    assert late == [[], [name], [name], [name], []]


def test_other_leases_do_not_count(harness: Harness) -> None:
    metadata = {"name": "kube-controller-manager", "namespace": "kube-system"}
    harness.event(LEASES, "ADDED", {"metadata": metadata, "spec": {"holderIdentity": "x"}})
    assert harness.intake.lease_seen is None
    assert not harness.woken()


# --- the snapshot ---------------------------------------------------------------------------------


def pod(
    name: str, namespace: str, labels: dict[str, str], node: str | None = "a"
) -> dict[str, Any]:
    metadata = {"uid": "u"}
    return builders.pod(
        name, namespace=namespace, labels=labels, node=node or "", metadata=metadata
    )


OPERAND = dict(KUBEADM.static_pod_labels)
CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}


def test_snapshot_has_the_operators_objects_by_name(harness: Harness) -> None:
    harness.event(SCHEDULERS, "ADDED", {"metadata": {"name": "cluster"}})
    harness.event(KUBE_SCHEDULERS, "ADDED", {"metadata": {"name": "cluster"}})
    harness.event(CLUSTER_OPERATORS, "ADDED", {"metadata": {"name": "kube-scheduler"}})
    harness.event(CONFIG_MAPS, "ADDED", config_map("config"))
    harness.event(SERVICE_ACCOUNTS, "ADDED", config_map("installer-sa"))
    harness.event(PODS, "ADDED", pod("installer-1-a", TARGET, {"app": "installer"}))
    snapshot = harness.snapshot()
    assert snapshot.scheduler is not None
    assert snapshot.kubescheduler is not None
    assert snapshot.cluster_operator is not None
    assert set(snapshot.config_maps) == {"config"}
    assert set(snapshot.service_accounts) == {"installer-sa"}
    assert set(snapshot.installer_pods) == {"installer-1-a"}


@pytest.mark.parametrize("resource", [SCHEDULERS, KUBE_SCHEDULERS], ids=str)
def test_only_the_object_named_cluster_counts(harness: Harness, resource: Resource) -> None:
    harness.event(resource, "ADDED", {"metadata": {"name": "other"}})
    snapshot = harness.snapshot()
    assert (snapshot.scheduler, snapshot.kubescheduler) == (None, None)


@pytest.mark.parametrize(
    ("name", "labels", "node", "seen"),
    [
        ("kube-scheduler-a", OPERAND, "a", True),
        ("kube-scheduler-worker", OPERAND, "worker", False),
        ("kube-scheduler-gone", OPERAND, "gone", False),
        ("kube-scheduler-x", OPERAND, "a", False),
        ("kube-scheduler-a", {"component": "kube-scheduler"}, "a", False),
        ("kube-scheduler-", OPERAND, None, False),
    ],
    ids=["mirror pod", "on a worker", "of no node", "an imitation", "other labels", "not bound"],
)
def test_operand_pods_are_the_mirror_pods(
    harness: Harness, name: str, labels: dict[str, str], node: str | None, *, seen: bool
) -> None:
    harness.event(NODES, "ADDED", {"metadata": {"name": "a", "labels": CONTROL_PLANE}})
    harness.event(NODES, "ADDED", {"metadata": {"name": "worker"}})
    harness.event(PODS, "ADDED", pod(name, "kube-system", labels, node))
    assert bool(harness.snapshot().operand_pods) is seen


def test_of_a_node_few_mirror_pods_are_kept(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """A node may make any number of them, in any namespace, of a megabyte each."""

    def mirror(name: str, node: str) -> dict[str, Any]:
        made = pod(name, "kube-system", OPERAND, node)
        made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
        return made

    for node in "ab":
        harness.event(
            NODES, "ADDED", {"metadata": {"name": node, "labels": CONTROL_PLANE, "uid": node}}
        )
    for number in range(2000):
        harness.event(PODS, "ADDED", mirror(f"forged-{number}", "a"))
    harness.event(PODS, "ADDED", mirror("kube-scheduler-b", "b"))
    assert len(list(harness.store.all(PODS))) == MOST_MIRRORS + 1
    assert set(harness.snapshot().operand_pods) == {"b"}
    assert len(caplog.records) == 1
    for number in range(2000):
        harness.event(PODS, "DELETED", mirror(f"forged-{number}", "a"))
    harness.event(PODS, "ADDED", mirror("kube-scheduler-a", "a"))
    assert set(harness.snapshot().operand_pods) == {"a", "b"}


def test_labels_that_other_clients_wrote_are_not_the_mirror_pods(harness: Harness) -> None:
    mark = {"kubernetes.io/config.mirror": "1"}
    written: dict[str, Any] = {
        "f:annotations": {"f:kubernetes.io/config.mirror": {}},
        "f:labels": {f"f:{key}": {} for key in OPERAND},
    }
    made = pod("kube-scheduler-a", "kube-system", {**OPERAND, "revision": "7"}, "a")
    made["metadata"] |= {
        "annotations": mark, "managedFields": [{"fieldsV1": {"f:metadata": written}}],
    }  # fmt: skip
    harness.event(NODES, "ADDED", {"metadata": {"name": "a", "labels": CONTROL_PLANE}})
    harness.event(PODS, "ADDED", made)
    snapshot = harness.snapshot()
    assert snapshot.operand_pods["a"]["metadata"]["labels"] == OPERAND
    assert snapshot.foreign_metadata == {"a": ("labels.revision",)}


@pytest.mark.parametrize(
    ("labels", "counts"),
    [
        ({"node-role.kubernetes.io/control-plane": ""}, True),
        ({"node-role.kubernetes.io/master": "true"}, True),
        ({"node-role.kubernetes.io/worker": ""}, False),
        ({}, False),
    ],
    ids=["control-plane", "master, with a value", "worker", "none"],
)
def test_control_plane_nodes_have_a_label_with_any_value(
    harness: Harness, labels: dict[str, str], *, counts: bool
) -> None:
    harness.event(NODES, "ADDED", {"metadata": {"name": "a", "labels": labels}})
    assert bool(harness.snapshot().nodes) is counts


def test_workers_are_not_stored_and_do_not_wake(harness: Harness) -> None:
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        harness.event(NODES, kind, {"metadata": {"name": "worker"}})
    assert not harness.woken()
    assert list(harness.store.view()) == []


def test_node_may_gain_and_lose_its_control_plane_role(harness: Harness) -> None:
    labels = {"node-role.kubernetes.io/control-plane": ""}
    harness.event(NODES, "ADDED", {"metadata": {"name": "a"}})
    harness.event(NODES, "MODIFIED", {"metadata": {"name": "a", "labels": labels}})
    assert harness.woken()
    assert set(harness.snapshot().nodes) == {"a"}
    harness.event(NODES, "MODIFIED", {"metadata": {"name": "a"}})
    assert harness.woken()
    assert harness.snapshot().nodes == {}
    harness.event(NODES, "MODIFIED", {"metadata": {"name": "a", "labels": labels}})
    assert set(harness.snapshot().nodes) == {"a"}


def test_node_whose_label_comes_back_is_back(harness: Harness) -> None:
    """The watch selects by label, so it reports a lost label as a deletion."""
    labels = {"node-role.kubernetes.io/control-plane": ""}
    metadata = {"name": "a", "uid": "u", "labels": labels}
    harness.event(NODES, "ADDED", {"metadata": metadata})
    harness.event(NODES, "DELETED", {"metadata": {"name": "a", "uid": "u"}})
    assert harness.snapshot().nodes == {}
    harness.event(NODES, "ADDED", {"metadata": metadata})
    assert set(harness.snapshot().nodes) == {"a"}


@pytest.mark.parametrize("platform", [KUBEADM, OPENSHIFT], ids=lambda platform: platform.name)
def test_only_control_plane_nodes_are_watched(platform: Platform) -> None:
    (watch,) = (each for each in watches(platform) if each.resource == NODES)
    assert (watch.label_selector, *watch.or_label_selectors) == platform.node_selectors


def test_snapshot_is_immutable(harness: Harness) -> None:
    harness.event(CONFIG_MAPS, "ADDED", config_map("a"))
    snapshot = harness.snapshot()
    harness.event(CONFIG_MAPS, "ADDED", config_map("b"))
    assert set(snapshot.config_maps) == {"a"}


def test_all_kinds_of_the_snapshot_are_watched() -> None:
    kinds = {watch.resource for watch in watches(KUBEADM, ())}
    assert kinds == {
        SCHEDULERS,
        KUBE_SCHEDULERS,
        SCHEDULER_PROFILES,
        SCHEDULER_EXTENDERS,
        OPERATOR_SETTINGS,
        CLUSTER_OPERATORS,
        NODES,
        SECRETS,
        CONFIG_MAPS,
        SERVICE_ACCOUNTS,
        DISRUPTION_BUDGETS,
        DAEMON_SETS,
        PODS,
        LEASES,
        LOAD_POLICIES,
        DAEMON_SETS,
        DEPLOYMENTS,
        JOBS,
    }


def test_optional_kinds() -> None:
    optional = {w.resource for w in watches(KUBEADM) if w.optional}
    assert optional == {
        SCHEDULER_PROFILES,
        SCHEDULER_EXTENDERS,
        OPERATOR_SETTINGS,
        LOAD_POLICIES,
    }


def test_kind_without_objects_and_kind_that_is_not_served_differ(harness: Harness) -> None:
    assert harness.snapshot().scheduler_profiles == {}
    assert harness.snapshot(missing=(SCHEDULER_PROFILES,)).scheduler_profiles is None
    harness.event(SCHEDULER_PROFILES, "ADDED", {"metadata": {"name": "team"}})
    assert set(harness.snapshot().scheduler_profiles or ()) == {"team"}


def test_the_operators_objects_are_selected_by_their_label() -> None:
    selectors = {w.resource: w.label_selector for w in watches(KUBEADM) if w.namespace == TARGET}
    assert selectors[CONFIG_MAPS] == f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    assert selectors[PODS] == (
        "app in (installer,guard,scheduler-extender,config-reader,secondary-scheduler)"
    )


# --- credentials of schedulers in the cluster -----------------------------------------------------
SOURCE = "openshift-config-managed"


def kept(name: str, namespace: str = SOURCE) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {}}


@pytest.mark.parametrize("platform", [KUBEADM, OPENSHIFT], ids=lambda platform: platform.name)
def test_each_stream_is_watched_once(platform: Platform) -> None:
    streams = [watch.stream for watch in watches(platform)]
    assert len(set(streams)) == len(streams)


def test_credentials_are_watched_in_their_namespace() -> None:
    found = {w.stream: w.field_selector for w in watches(OPENSHIFT)}
    assert found[Stream(SECRETS, SOURCE)] == "metadata.name=kube-scheduler-client-cert-key"
    assert Stream(CONFIG_MAPS, SOURCE) in found
    assert Stream(SECRETS, "openshift-kube-scheduler") in found
    assert {Stream(r) for r in (API_SERVERS, FEATURE_GATES, INFRASTRUCTURES)} <= found.keys()


def test_one_watch_covers_schedulers_and_other_pods_of_a_namespace() -> None:
    (watch,) = (watch for watch in watches(OPENSHIFT) if watch.resource == PODS)
    apps = "installer,guard,scheduler-extender,secondary-scheduler,openshift-kube-scheduler"
    assert watch.label_selector == f"app in ({apps})"


def test_irrelevant_objects_are_ignored() -> None:
    harness = Harness(OPENSHIFT)
    for resource, obj in (
        (CONFIG_MAPS, kept("console-public")),
        (SECRETS, kept("installer-sa-token", "openshift-kube-scheduler")),
    ):
        harness.event(resource, "ADDED", obj)
        assert not harness.woken()


def test_relevant_objects_are_distinguished_by_namespace() -> None:
    harness = Harness(OPENSHIFT)
    target = OPENSHIFT.target_namespace
    for resource, obj in (
        (CONFIG_MAPS, kept("kube-apiserver-server-ca")),
        (CONFIG_MAPS, kept("config", target)),
        (CONFIG_MAPS, kept("my-policy", "openshift-config")),
        (SECRETS, kept("kube-scheduler-client-cert-key")),
        (SECRETS, kept("serving-cert", target)),
        (API_SERVERS, {"metadata": {"name": "cluster"}}),
        (FEATURE_GATES, {"metadata": {"name": "cluster"}}),
        (INFRASTRUCTURES, {"metadata": {"name": "cluster"}}),
    ):
        harness.event(resource, "ADDED", obj)
        assert harness.woken()
    seen = harness.snapshot()
    assert set(seen.source_config_maps) == {"kube-apiserver-server-ca"}
    assert set(seen.config_maps) == {"config"}
    assert set(seen.user_config_maps) == {"my-policy"}
    assert set(seen.source_secrets) == {"kube-scheduler-client-cert-key"}
    assert set(seen.secrets) == {"serving-cert"}
    assert None not in (seen.apiserver, seen.feature_gate, seen.infrastructure)


def test_platform_without_credentials_has_no_source_objects(harness: Harness) -> None:
    harness.event(CONFIG_MAPS, "ADDED", config_map("a"))
    assert harness.snapshot().source_config_maps == {}
    assert harness.snapshot().user_config_maps == {}
