"""What is watched, what wakes the pass, and what it gets to see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.engine.handlers import Intake, take_snapshot, watches
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
from kube_scheduler_operator.model.snapshot import Snapshot

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = KUBEADM.target_namespace


class Desk:
    """An intake with a clock that is set by hand."""

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

    def snapshot(self, **fields: Any) -> Snapshot:
        given = {
            "server_version": "",
            "lease_seen": None,
            "answered_since": self.now,
            "recovered_at": None,
            "trouble": "",
            "now": self.now,
        }
        return take_snapshot(self.store, self.platform, Settings(), **{**given, **fields})


@pytest.fixture
def desk() -> Desk:
    return Desk()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": TARGET}, "data": data}


# --- waking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", None])
def test_news_wakes(desk: Desk, kind: str | None) -> None:
    desk.event(CONFIG_MAPS, kind, config_map("a"))
    assert desk.woken()


def test_what_is_known_already_does_not_wake(desk: Desk) -> None:
    desk.event(CONFIG_MAPS, "ADDED", config_map("a"))
    desk.woken()
    old = config_map("a")
    old["metadata"]["resourceVersion"] = "1"
    desk.event(CONFIG_MAPS, "MODIFIED", old)
    assert not desk.woken()


def test_a_deletion_wakes_even_if_only_metadata_is_left(desk: Desk) -> None:
    desk.event(CONFIG_MAPS, "ADDED", config_map("a"))
    desk.woken()
    desk.event(CONFIG_MAPS, "DELETED", {"metadata": {"name": "a", "namespace": TARGET}})
    assert desk.woken()
    assert desk.snapshot().config_maps == {}


@pytest.mark.parametrize("resource", [SCHEDULERS, KUBE_SCHEDULERS, SCHEDULER_PROFILES])
def test_an_edit_of_the_spec_is_urgent_and_one_of_the_labels_is_not(
    desk: Desk, resource: Resource
) -> None:
    desk.event(resource, "ADDED", {"metadata": {"name": "cluster", "generation": 1}})
    assert desk.urgent
    desk.event(resource, "MODIFIED", {"metadata": {"name": "cluster", "generation": 2}})
    assert desk.urgent
    labelled = {"name": "cluster", "generation": 2, "labels": {"a": "b"}}
    desk.event(resource, "MODIFIED", {"metadata": labelled})
    assert not desk.urgent


def test_pods_and_deletions_are_urgent_and_a_changed_config_map_is_not(desk: Desk) -> None:
    desk.event(PODS, "MODIFIED", {"metadata": {"name": "p", "namespace": TARGET}})
    assert desk.urgent
    desk.event(CONFIG_MAPS, "MODIFIED", config_map("a"))
    assert not desk.urgent
    desk.event(CONFIG_MAPS, "DELETED", config_map("a"))
    assert desk.urgent


# --- the scheduler's Lease ------------------------------------------------------------------------


def test_it_is_noted_when_a_control_plane_node_leaves(desk: Desk) -> None:
    label = {"node-role.kubernetes.io/control-plane": ""}
    master = {"metadata": {"name": "a", "labels": label}}
    worker = {"metadata": {"name": "b", "labels": {}}}
    for node in (master, worker):
        desk.event(NODES, "ADDED", node)
    desk.event(NODES, "DELETED", worker)
    assert desk.intake.node_left is None
    desk.event(NODES, "DELETED", master)
    assert desk.intake.node_left == BEGIN


def test_the_first_sight_of_the_lease_wakes(desk: Desk) -> None:
    desk.lease("a_1", "ADDED")
    assert desk.woken()
    assert desk.intake.lease_seen == BEGIN


def test_renewals_are_noted_and_wake_nobody(desk: Desk) -> None:
    desk.lease("a_1", "ADDED")
    desk.woken()
    for second in range(2, 60, 2):
        desk.now = BEGIN + timedelta(seconds=second)
        desk.lease("a_1")
    assert not desk.woken()
    assert desk.intake.lease_seen == desk.now


def test_a_change_of_hands_wakes(desk: Desk) -> None:
    desk.lease("a_1", "ADDED")
    desk.woken()
    desk.lease("b_2")
    assert desk.woken()


def test_a_renewal_after_a_long_silence_wakes(desk: Desk) -> None:
    desk.lease("a_1", "ADDED")
    desk.woken()
    desk.now = BEGIN + timedelta(seconds=15)
    desk.lease("a_1")
    assert not desk.woken()
    desk.now += timedelta(seconds=15.5)
    desk.lease("a_1")
    assert desk.woken()


def test_the_deletion_of_the_lease_wakes(desk: Desk) -> None:
    desk.lease("a_1", "ADDED")
    desk.woken()
    desk.lease("a_1", "DELETED")
    assert desk.woken()
    assert desk.snapshot().operand_lease is None


def test_a_lease_that_nobody_renews_is_not_young_because_the_operator_is(desk: Desk) -> None:
    desk.lease("a_1", "ADDED", renewTime="2025-12-31T23:50:00.000000Z")
    assert desk.intake.lease_seen == BEGIN - timedelta(minutes=10)
    desk.woken()
    desk.now = BEGIN + timedelta(seconds=2)
    desk.lease("a_1", renewTime="2025-12-31T23:50:02.000000Z")
    assert desk.intake.lease_seen == desk.now, "its own clock counts from then on"
    assert desk.woken()


def test_a_clock_that_is_ahead_does_not_make_the_lease_younger_than_now(desk: Desk) -> None:
    desk.lease("a_1", "ADDED", renewTime="2026-01-01T00:10:00.000000Z")
    assert desk.intake.lease_seen == BEGIN


def test_other_leases_do_not_count(desk: Desk) -> None:
    metadata = {"name": "kube-controller-manager", "namespace": "kube-system"}
    desk.event(LEASES, "ADDED", {"metadata": metadata, "spec": {"holderIdentity": "x"}})
    assert desk.intake.lease_seen is None
    assert not desk.woken()


# --- the snapshot ---------------------------------------------------------------------------------


def pod(
    name: str, namespace: str, labels: dict[str, str], node: str | None = "a"
) -> dict[str, Any]:
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}


OPERAND = dict(KUBEADM.static_pod_labels)


def test_the_snapshot_has_what_is_ours_by_name(desk: Desk) -> None:
    desk.event(SCHEDULERS, "ADDED", {"metadata": {"name": "cluster"}})
    desk.event(KUBE_SCHEDULERS, "ADDED", {"metadata": {"name": "cluster"}})
    desk.event(CLUSTER_OPERATORS, "ADDED", {"metadata": {"name": "kube-scheduler"}})
    desk.event(CONFIG_MAPS, "ADDED", config_map("config"))
    desk.event(SERVICE_ACCOUNTS, "ADDED", config_map("installer-sa"))
    desk.event(PODS, "ADDED", pod("installer-1-a", TARGET, {"app": "installer"}))
    snapshot = desk.snapshot()
    assert snapshot.scheduler is not None
    assert snapshot.kubescheduler is not None
    assert snapshot.cluster_operator is not None
    assert set(snapshot.config_maps) == {"config"}
    assert set(snapshot.service_accounts) == {"installer-sa"}
    assert set(snapshot.installer_pods) == {"installer-1-a"}


@pytest.mark.parametrize("resource", [SCHEDULERS, KUBE_SCHEDULERS], ids=str)
def test_only_the_object_named_cluster_counts(desk: Desk, resource: Resource) -> None:
    desk.event(resource, "ADDED", {"metadata": {"name": "other"}})
    snapshot = desk.snapshot()
    assert (snapshot.scheduler, snapshot.kubescheduler) == (None, None)


@pytest.mark.parametrize(
    ("name", "labels", "node", "seen"),
    [
        ("kube-scheduler-a", OPERAND, "a", True),
        ("kube-scheduler-x", OPERAND, "a", False),
        ("kube-scheduler-a", {"component": "kube-scheduler"}, "a", False),
        ("kube-scheduler-", OPERAND, None, False),
    ],
    ids=["mirror pod", "an imitation", "other labels", "bound to no node"],
)
def test_operands_are_the_mirror_pods(
    desk: Desk, name: str, labels: dict[str, str], node: str | None, *, seen: bool
) -> None:
    desk.event(PODS, "ADDED", pod(name, "kube-system", labels, node))
    assert bool(desk.snapshot().operand_pods) is seen


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
def test_control_plane_nodes_are_known_by_a_label_whatever_its_value(
    desk: Desk, labels: dict[str, str], *, counts: bool
) -> None:
    desk.event(NODES, "ADDED", {"metadata": {"name": "a", "labels": labels}})
    assert bool(desk.snapshot().nodes) is counts


def test_workers_cost_neither_passes_nor_memory(desk: Desk) -> None:
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        desk.event(NODES, kind, {"metadata": {"name": "worker"}})
    assert not desk.woken()
    assert list(desk.store.view()) == []


def test_a_node_may_become_a_control_plane_node_and_cease_to_be_one(desk: Desk) -> None:
    labels = {"node-role.kubernetes.io/control-plane": ""}
    desk.event(NODES, "ADDED", {"metadata": {"name": "a"}})
    desk.event(NODES, "MODIFIED", {"metadata": {"name": "a", "labels": labels}})
    assert desk.woken()
    assert set(desk.snapshot().nodes) == {"a"}
    desk.event(NODES, "MODIFIED", {"metadata": {"name": "a"}})
    assert desk.woken()
    assert desk.snapshot().nodes == {}
    desk.event(NODES, "MODIFIED", {"metadata": {"name": "a", "labels": labels}})
    assert set(desk.snapshot().nodes) == {"a"}


def test_a_snapshot_does_not_change_any_more(desk: Desk) -> None:
    desk.event(CONFIG_MAPS, "ADDED", config_map("a"))
    snapshot = desk.snapshot()
    desk.event(CONFIG_MAPS, "ADDED", config_map("b"))
    assert set(snapshot.config_maps) == {"a"}


def test_everything_that_the_snapshot_shows_is_watched() -> None:
    kinds = {watch.resource for watch in watches(KUBEADM, ())}
    assert kinds == {
        SCHEDULERS,
        KUBE_SCHEDULERS,
        SCHEDULER_PROFILES,
        SCHEDULER_EXTENDERS,
        CLUSTER_OPERATORS,
        NODES,
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


def test_only_what_there_is_to_do_without_is_not_waited_for() -> None:
    optional = {w.resource for w in watches(KUBEADM) if w.optional}
    assert optional == {SCHEDULER_PROFILES, SCHEDULER_EXTENDERS, LOAD_POLICIES}


def test_no_profiles_and_no_such_kind_are_two_things(desk: Desk) -> None:
    assert desk.snapshot().scheduler_profiles == {}
    assert desk.snapshot(unserved=(SCHEDULER_PROFILES,)).scheduler_profiles is None
    desk.event(SCHEDULER_PROFILES, "ADDED", {"metadata": {"name": "team"}})
    assert set(desk.snapshot().scheduler_profiles or ()) == {"team"}


def test_objects_of_ours_are_selected_by_the_label_that_they_are_made_with() -> None:
    selectors = {w.resource: w.label_selector for w in watches(KUBEADM) if w.namespace == TARGET}
    assert selectors[CONFIG_MAPS] == f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    assert selectors[PODS] == "app in (installer,guard,scheduler-extender,secondary-scheduler)"


# --- where the cluster keeps what schedulers need -------------------------------------------------
SOURCE = "openshift-config-managed"


def kept(name: str, namespace: str = SOURCE) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {}}


@pytest.mark.parametrize("platform", [KUBEADM, OPENSHIFT], ids=lambda platform: platform.name)
def test_a_stream_is_watched_once(platform: Platform) -> None:
    streams = [watch.stream for watch in watches(platform)]
    assert len(set(streams)) == len(streams)


def test_credentials_are_watched_where_the_cluster_keeps_them() -> None:
    found = {w.stream: w.field_selector for w in watches(OPENSHIFT)}
    assert found[Stream(SECRETS, SOURCE)] == "metadata.name=kube-scheduler-client-cert-key"
    assert Stream(CONFIG_MAPS, SOURCE) in found
    assert Stream(SECRETS, "openshift-kube-scheduler") in found
    assert {Stream(r) for r in (API_SERVERS, FEATURE_GATES, INFRASTRUCTURES)} <= found.keys()


def test_schedulers_in_our_namespace_come_with_our_other_pods() -> None:
    (watch,) = (watch for watch in watches(OPENSHIFT) if watch.resource == PODS)
    apps = "installer,guard,scheduler-extender,secondary-scheduler,openshift-kube-scheduler"
    assert watch.label_selector == f"app in ({apps})"


def test_what_is_not_for_us_is_not_taken_in() -> None:
    desk = Desk(OPENSHIFT)
    for resource, obj in (
        (CONFIG_MAPS, kept("console-public")),
        (SECRETS, kept("installer-sa-token", "openshift-kube-scheduler")),
    ):
        desk.event(resource, "ADDED", obj)
        assert not desk.woken()


def test_what_is_for_us_is_told_apart_by_where_it_is() -> None:
    desk = Desk(OPENSHIFT)
    target = OPENSHIFT.target_namespace
    for resource, obj in (
        (CONFIG_MAPS, kept("kube-apiserver-server-ca")),
        (CONFIG_MAPS, kept("config", target)),
        (SECRETS, kept("kube-scheduler-client-cert-key")),
        (SECRETS, kept("serving-cert", target)),
        (API_SERVERS, {"metadata": {"name": "cluster"}}),
        (FEATURE_GATES, {"metadata": {"name": "cluster"}}),
        (INFRASTRUCTURES, {"metadata": {"name": "cluster"}}),
    ):
        desk.event(resource, "ADDED", obj)
        assert desk.woken()
    seen = desk.snapshot()
    assert set(seen.source_config_maps) == {"kube-apiserver-server-ca"}
    assert set(seen.config_maps) == {"config"}
    assert set(seen.source_secrets) == {"kube-scheduler-client-cert-key"}
    assert set(seen.secrets) == {"serving-cert"}
    assert None not in (seen.apiserver, seen.feature_gate, seen.infrastructure)


def test_elsewhere_there_are_no_sources(desk: Desk) -> None:
    desk.event(CONFIG_MAPS, "ADDED", config_map("a"))
    assert desk.snapshot().source_config_maps == {}
