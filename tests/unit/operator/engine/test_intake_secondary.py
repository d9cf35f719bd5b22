"""Watches of secondary schedulers, and the changes of them that wake the queue."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, PLATFORMS, Platform
from kube_scheduler_operator.config.effective.secondary.request import SchedulerRequest
from kube_scheduler_operator.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    LEASES,
    PODS,
    ROLE_BINDINGS,
    SECONDARY_SCHEDULERS,
    SERVICE_ACCOUNTS,
    Resource,
    Stream,
)
from kube_scheduler_operator.operator.engine.intake import Intake
from kube_scheduler_operator.operator.engine.watches import SECONDARY_KINDS, watches

from ....builders import secondary
from .test_intake import BEGIN, Harness

TARGET = KUBEADM.target_namespace
NAMESPACES = [None, (), ("kube-system",), ("batch", "kube-system"), (TARGET, "batch")]


@pytest.fixture
def harness() -> Harness:
    return Harness()


def made(name: str, namespace: str | None = TARGET, whose: str = "mine") -> dict[str, Any]:
    metadata = {"name": name, "labels": {names.SECONDARY_LABEL: whose}}
    return {"metadata": {**metadata, **({"namespace": namespace} if namespace else {})}}


def lease(name: str, holder: str, namespace: str = TARGET) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


# --- watches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
@pytest.mark.parametrize("namespaces", NAMESPACES, ids=str)
def test_each_stream_is_watched_once_with_secondary_namespaces(
    platform: Platform, namespaces: Any
) -> None:
    streams = [watch.stream for watch in watches(platform, namespaces)]
    assert len(set(streams)) == len(streams)


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
@pytest.mark.parametrize("namespaces", NAMESPACES, ids=str)
def test_other_namespaces_are_not_watched(platform: Platform, namespaces: Any) -> None:
    known = {
        platform.operator_namespace, platform.target_namespace, platform.operand_namespace,
        platform.operand_lease_namespace, "kube-system", None,
    }  # fmt: skip
    known |= set(platform.source_namespaces)
    found = watches(platform, namespaces)
    assert {watch.namespace for watch in found} <= known | set(namespaces or ())
    everywhere = {watch.resource for watch in found if watch.namespace is None}
    assert not everywhere & {PODS, CONFIG_MAPS, SERVICE_ACCOUNTS, DEPLOYMENTS, LEASES}


def test_without_namespaces_the_kind_is_not_watched() -> None:
    kinds = {watch.resource for watch in watches(KUBEADM, ())}
    assert not kinds & {SECONDARY_SCHEDULERS, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
@pytest.mark.parametrize("place", ["kube-system", "batch", "target"])
def test_all_objects_of_secondary_schedulers_are_watched(platform: Platform, place: str) -> None:
    namespace = platform.target_namespace if place == "target" else place
    labels = SchedulerRequest("mine", "u", namespace).labels
    found = {watch.stream: watch for watch in watches(platform, (namespace,))}
    for resource in SECONDARY_KINDS:
        where = namespace if resource.namespaced else None
        selector = found[Stream(resource, where)].label_selector or ""
        key, _, values = selector.replace(" in (", "=").rstrip(")").partition("=")
        assert labels[key] in values.split(","), selector
    assert Stream(ROLE_BINDINGS, "kube-system") in found
    assert found[Stream(LEASES, namespace)].field_selector is None, "their names differ"


def test_control_plane_and_secondary_schedulers_are_watched() -> None:
    (watch,) = (w for w in watches(KUBEADM, ("kube-system",)) if w.stream == OPERANDS)
    assert watch.label_selector == "component in (kube-scheduler,secondary-scheduler)"
    assert dict(KUBEADM.static_pod_labels)["component"] == names.OPERAND


OPERANDS = Stream(PODS, "kube-system")


# --- waking ---------------------------------------------------------------------------------------


def test_edited_secondary_scheduler_is_urgent_and_its_status_is_not(harness: Harness) -> None:
    harness.event(SECONDARY_SCHEDULERS, "ADDED", secondary(generation=1))
    assert harness.urgent
    harness.event(SECONDARY_SCHEDULERS, "MODIFIED", secondary(generation=1))
    assert not harness.urgent
    harness.event(SECONDARY_SCHEDULERS, "MODIFIED", secondary(generation=2))
    assert harness.urgent


def test_new_holder_of_a_secondary_lease_wakes_and_renewals_are_noted(harness: Harness) -> None:
    harness.event(SECONDARY_SCHEDULERS, "ADDED", secondary())
    harness.event(LEASES, "ADDED", lease("mine", "a_1"))
    assert harness.woken()
    for second in range(2, 60, 2):
        harness.now = BEGIN + timedelta(seconds=second)
        harness.event(LEASES, "MODIFIED", lease("mine", "a_1"))
    assert not harness.woken()
    assert harness.intake.leases_seen[TARGET, "mine"] == harness.now
    assert harness.intake.lease_seen is None, "it belongs to the control plane"
    harness.event(LEASES, "MODIFIED", lease("mine", "b_2"))
    assert harness.woken()
    seen = harness.snapshot(leases_seen=harness.intake.leases_seen).secondaries
    assert seen.leases[TARGET, "mine"]["spec"]["holderIdentity"] == "b_2"
    assert seen.leases_seen == {(TARGET, "mine"): harness.now}


@pytest.mark.parametrize(
    ("name", "namespace"),
    [("kube-scheduler-operator-lock", TARGET), ("mine", "elsewhere"), ("others", TARGET)],
)
def test_other_leases_are_not_stored_and_do_not_wake(
    harness: Harness, name: str, namespace: str
) -> None:
    harness.event(SECONDARY_SCHEDULERS, "ADDED", secondary())
    harness.woken()
    harness.event(LEASES, "ADDED", lease(name, "x", namespace))
    assert not harness.woken()
    assert harness.store.view().list(LEASES) == ()


def test_lease_listed_before_its_scheduler_is_kept(harness: Harness) -> None:
    """Otherwise a restarted operator would report a healthy scheduler as one without a leader."""
    harness.event(LEASES, None, lease("mine", "a_1"))
    harness.event(LEASES, None, lease("gone", "b_1"))
    harness.event(LEASES, "DELETED", lease("gone", "b_1"))
    for name in ("mine", "gone"):
        harness.event(SECONDARY_SCHEDULERS, None, secondary(name))
    seen = harness.snapshot(leases_seen=harness.intake.leases_seen).secondaries
    assert seen.leases[TARGET, "mine"]["spec"]["holderIdentity"] == "a_1"
    assert set(seen.leases_seen) == {(TARGET, "mine")}


# --- the snapshot ---------------------------------------------------------------------------------


def test_objects_of_a_secondary_scheduler_are_known_by_kind_and_name(harness: Harness) -> None:
    harness.event(SECONDARY_SCHEDULERS, "ADDED", secondary())
    harness.event(SECONDARY_SCHEDULERS, "ADDED", secondary("other"))
    harness.event(CONFIG_MAPS, "ADDED", made("mine-config-abc"))
    harness.event(DEPLOYMENTS, "ADDED", made("mine"))
    harness.event(CLUSTER_ROLE_BINDINGS, "ADDED", made("mine-as-kube-scheduler", None))
    harness.event(ROLE_BINDINGS, "ADDED", made("mine-authentication-reader", "kube-system"))
    harness.event(DEPLOYMENTS, "ADDED", made("other", whose="other"))
    harness.event(DEPLOYMENTS, "ADDED", made("gone", whose="gone"))
    errors = {SECONDARY_SCHEDULERS.named("mine"): "x"}
    snapshot = replace(harness.snapshot(), write_errors=errors)
    found = snapshot.secondaries
    assert set(found.schedulers) == {"mine", "other"}
    assert {kind: set(objects) for kind, objects in found.objects["mine"].items()} == {
        CONFIG_MAPS: {"mine-config-abc"},
        DEPLOYMENTS: {"mine"},
        CLUSTER_ROLE_BINDINGS: {"mine-as-kube-scheduler"},
        ROLE_BINDINGS: {"mine-authentication-reader"},
    }
    assert set(found.objects["other"]) == {DEPLOYMENTS}
    assert snapshot.write_errors == errors


def test_objects_of_a_deleted_scheduler_of_the_same_name_do_not_count(harness: Harness) -> None:
    harness.event(SECONDARY_SCHEDULERS, "ADDED", secondary(namespace="batch"))
    harness.event(DEPLOYMENTS, "ADDED", made("mine", TARGET))
    assert harness.snapshot().secondaries.objects["mine"] == {}


@pytest.mark.parametrize("resource", [CONFIG_MAPS, SERVICE_ACCOUNTS, DISRUPTION_BUDGETS], ids=str)
def test_objects_of_secondary_schedulers_are_not_the_control_planes(
    harness: Harness, resource: Resource
) -> None:
    """Which are deleted when it is removed."""
    harness.event(resource, "ADDED", made("mine"))
    snapshot = harness.snapshot()
    found = (snapshot.config_maps, snapshot.service_accounts, snapshot.disruption_budgets)
    assert found == ({}, {}, {})


def test_config_maps_in_the_namespace_of_the_credentials_are_distinguished() -> None:
    harness = Harness(OPENSHIFT)
    assert OPENSHIFT.credentials is not None
    namespace = OPENSHIFT.credentials.namespace
    harness.event(SECONDARY_SCHEDULERS, "ADDED", secondary(namespace=namespace))
    harness.woken()
    harness.event(CONFIG_MAPS, "ADDED", made("mine-config-abc", namespace))
    assert harness.woken()
    assert CONFIG_MAPS in harness.snapshot().secondaries.objects["mine"]


def test_without_secondary_namespaces_no_secondary_lease_counts() -> None:
    harness = Harness()
    harness.intake = Intake(
        harness.store, KUBEADM, harness._wake, lambda: harness.now, secondary=()
    )
    harness.event(SECONDARY_SCHEDULERS, "ADDED", secondary())
    harness.event(LEASES, "ADDED", lease("mine", "x"))
    assert harness.store.view().list(LEASES) == ()
