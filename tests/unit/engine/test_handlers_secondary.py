"""What is watched of further schedulers, and what of it wakes the pass."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, PLATFORMS, Platform
from kube_scheduler_operator.engine.handlers import MADE_FOR_SECONDARIES, Intake, watches
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
from kube_scheduler_operator.secondary.request import Request

from .test_handlers import BEGIN, Desk

TARGET = KUBEADM.target_namespace
NAMESPACES = [None, (), ("kube-system",), ("batch", "kube-system"), (TARGET, "batch")]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def secondary(name: str = "mine", namespace: str = TARGET, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": {"namespace": namespace}}


def made(name: str, namespace: str | None = TARGET, whose: str = "mine") -> dict[str, Any]:
    metadata = {"name": name, "labels": {names.SECONDARY_LABEL: whose}}
    return {"metadata": {**metadata, **({"namespace": namespace} if namespace else {})}}


def lease(name: str, holder: str, namespace: str = TARGET) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


# --- watches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
@pytest.mark.parametrize("namespaces", NAMESPACES, ids=str)
def test_a_stream_is_watched_once(platform: Platform, namespaces: Any) -> None:
    streams = [watch.stream for watch in watches(platform, namespaces)]
    assert len(set(streams)) == len(streams)


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
@pytest.mark.parametrize("namespaces", NAMESPACES, ids=str)
def test_namespaces_that_nobody_named_are_not_looked_into(
    platform: Platform, namespaces: Any
) -> None:
    known = {
        platform.operator_namespace, platform.target_namespace, platform.operand_namespace,
        platform.operand_lease_namespace, "kube-system", None,
    }  # fmt: skip
    if platform.credentials:
        known.add(platform.credentials.namespace)
    found = watches(platform, namespaces)
    assert {watch.namespace for watch in found} <= known | set(namespaces or ())
    everywhere = {watch.resource for watch in found if watch.namespace is None}
    assert not everywhere & {PODS, CONFIG_MAPS, SERVICE_ACCOUNTS, DEPLOYMENTS, LEASES}


def test_nowhere_means_that_not_even_the_kind_is_asked_for() -> None:
    kinds = {watch.resource for watch in watches(KUBEADM, ())}
    assert not kinds & {SECONDARY_SCHEDULERS, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
@pytest.mark.parametrize("place", ["kube-system", "batch", "target"])
def test_everything_that_is_made_there_is_seen(platform: Platform, place: str) -> None:
    namespace = platform.target_namespace if place == "target" else place
    labels = Request("mine", "u", namespace).labels
    found = {watch.stream: watch for watch in watches(platform, (namespace,))}
    for resource in MADE_FOR_SECONDARIES:
        where = namespace if resource.namespaced else None
        selector = found[Stream(resource, where)].label_selector or ""
        key, _, values = selector.replace(" in (", "=").rstrip(")").partition("=")
        assert labels[key] in values.split(","), selector
    assert Stream(ROLE_BINDINGS, "kube-system") in found
    assert found[Stream(LEASES, namespace)].field_selector is None, "they have names of their own"


def test_the_control_planes_schedulers_are_still_seen_where_others_run() -> None:
    (watch,) = (w for w in watches(KUBEADM, ("kube-system",)) if w.stream == OPERANDS)
    assert watch.label_selector == "component in (kube-scheduler,secondary-scheduler)"
    assert dict(KUBEADM.static_pod_labels)["component"] == names.OPERAND


OPERANDS = Stream(PODS, "kube-system")


# --- waking ---------------------------------------------------------------------------------------


def test_an_edit_is_urgent_and_what_we_say_ourselves_is_not(desk: Desk) -> None:
    desk.event(SECONDARY_SCHEDULERS, "ADDED", secondary(generation=1))
    assert desk.urgent
    desk.event(SECONDARY_SCHEDULERS, "MODIFIED", secondary(generation=1))
    assert not desk.urgent
    desk.event(SECONDARY_SCHEDULERS, "MODIFIED", secondary(generation=2))
    assert desk.urgent


def test_a_lease_wakes_when_it_changes_hands_and_renewals_are_only_noted(desk: Desk) -> None:
    desk.event(SECONDARY_SCHEDULERS, "ADDED", secondary())
    desk.event(LEASES, "ADDED", lease("mine", "a_1"))
    assert desk.woken()
    for second in range(2, 60, 2):
        desk.now = BEGIN + timedelta(seconds=second)
        desk.event(LEASES, "MODIFIED", lease("mine", "a_1"))
    assert not desk.woken()
    assert desk.intake.leases_seen[TARGET, "mine"] == desk.now
    assert desk.intake.lease_seen is None, "that is the control plane's"
    desk.event(LEASES, "MODIFIED", lease("mine", "b_2"))
    assert desk.woken()
    seen = desk.snapshot(leases_seen=desk.intake.leases_seen).secondaries
    assert seen.leases[TARGET, "mine"]["spec"]["holderIdentity"] == "b_2"
    assert seen.leases_seen == {(TARGET, "mine"): desk.now}


@pytest.mark.parametrize(
    ("name", "namespace"),
    [("kube-scheduler-operator-lock", TARGET), ("mine", "elsewhere"), ("others", TARGET)],
)
def test_leases_of_others_cost_neither_passes_nor_memory(
    desk: Desk, name: str, namespace: str
) -> None:
    desk.event(SECONDARY_SCHEDULERS, "ADDED", secondary())
    desk.woken()
    desk.event(LEASES, "ADDED", lease(name, "x", namespace))
    assert not desk.woken()
    assert desk.store.view().list(LEASES) == ()


def test_a_lease_that_was_heard_of_before_its_scheduler_is_remembered(desk: Desk) -> None:
    """Or whoever starts beside a healthy scheduler would say first that nobody leads."""
    desk.event(LEASES, None, lease("mine", "a_1"))
    desk.event(LEASES, None, lease("gone", "b_1"))
    desk.event(LEASES, "DELETED", lease("gone", "b_1"))
    for name in ("mine", "gone"):
        desk.event(SECONDARY_SCHEDULERS, None, secondary(name))
    seen = desk.snapshot(leases_seen=desk.intake.leases_seen).secondaries
    assert seen.leases[TARGET, "mine"]["spec"]["holderIdentity"] == "a_1"
    assert set(seen.leases_seen) == {(TARGET, "mine")}


# --- the snapshot ---------------------------------------------------------------------------------


def test_what_was_made_for_a_scheduler_is_known_by_kind_and_name(desk: Desk) -> None:
    desk.event(SECONDARY_SCHEDULERS, "ADDED", secondary())
    desk.event(SECONDARY_SCHEDULERS, "ADDED", secondary("other"))
    desk.event(CONFIG_MAPS, "ADDED", made("mine-config-abc"))
    desk.event(DEPLOYMENTS, "ADDED", made("mine"))
    desk.event(CLUSTER_ROLE_BINDINGS, "ADDED", made("mine-as-kube-scheduler", None))
    desk.event(ROLE_BINDINGS, "ADDED", made("mine-authentication-reader", "kube-system"))
    desk.event(DEPLOYMENTS, "ADDED", made("other", whose="other"))
    desk.event(DEPLOYMENTS, "ADDED", made("gone", whose="gone"))
    found = desk.snapshot(troubles={"mine": "x"}).secondaries
    assert set(found.schedulers) == {"mine", "other"}
    assert {kind: set(objects) for kind, objects in found.objects["mine"].items()} == {
        CONFIG_MAPS: {"mine-config-abc"},
        DEPLOYMENTS: {"mine"},
        CLUSTER_ROLE_BINDINGS: {"mine-as-kube-scheduler"},
        ROLE_BINDINGS: {"mine-authentication-reader"},
    }
    assert set(found.objects["other"]) == {DEPLOYMENTS}
    assert found.troubles == {"mine": "x"}


def test_what_a_namesake_left_in_another_namespace_is_not_taken_for_this_ones(desk: Desk) -> None:
    desk.event(SECONDARY_SCHEDULERS, "ADDED", secondary(namespace="batch"))
    desk.event(DEPLOYMENTS, "ADDED", made("mine", TARGET))
    assert desk.snapshot().secondaries.objects["mine"] == {}


@pytest.mark.parametrize("resource", [CONFIG_MAPS, SERVICE_ACCOUNTS, DISRUPTION_BUDGETS], ids=str)
def test_it_is_not_taken_for_the_operators_own_things(desk: Desk, resource: Resource) -> None:
    """Which are deleted when it is removed."""
    desk.event(resource, "ADDED", made("mine"))
    snapshot = desk.snapshot()
    found = (snapshot.config_maps, snapshot.service_accounts, snapshot.disruption_budgets)
    assert found == ({}, {}, {})


def test_config_maps_where_the_cluster_keeps_others_are_told_apart() -> None:
    desk = Desk(OPENSHIFT)
    assert OPENSHIFT.credentials is not None
    namespace = OPENSHIFT.credentials.namespace
    desk.event(SECONDARY_SCHEDULERS, "ADDED", secondary(namespace=namespace))
    desk.woken()
    desk.event(CONFIG_MAPS, "ADDED", made("mine-config-abc", namespace))
    assert desk.woken()
    assert CONFIG_MAPS in desk.snapshot().secondaries.objects["mine"]


def test_where_none_may_run_no_lease_is_of_interest() -> None:
    desk = Desk()
    desk.intake = Intake(desk.store, KUBEADM, desk._wake, lambda: desk.now, secondary=())
    desk.event(SECONDARY_SCHEDULERS, "ADDED", secondary())
    desk.event(LEASES, "ADDED", lease("mine", "x"))
    assert desk.store.view().list(LEASES) == ()
