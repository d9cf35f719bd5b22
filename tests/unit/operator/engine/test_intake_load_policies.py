"""Watches of load policies, and the changes of them that wake the queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, PLATFORMS, Platform
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    LOAD_POLICIES,
    SECONDARY_SCHEDULERS,
    SECRETS,
)
from kube_scheduler_operator.operator.engine.watches import LOAD_KINDS, watches

from ....builders import load_policy
from .test_intake import Harness

TARGET = KUBEADM.target_namespace


@pytest.fixture
def harness() -> Harness:
    return Harness()


def made(name: str, whose: str = "default", namespace: str = TARGET) -> dict[str, Any]:
    labels = {names.LOAD_LABEL: whose, **names.OWN_LABELS}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
@pytest.mark.parametrize("namespaces", [None, (), ("batch",)], ids=str)
def test_objects_of_load_policies_are_watched_whatever_the_secondary_namespaces(
    platform: Platform, namespaces: Any
) -> None:
    found = watches(platform, namespaces)
    for resource in LOAD_KINDS:
        places = [w.namespace for w in found if w.resource == resource]
        assert places.count(platform.target_namespace) == 1, resource
    (kind,) = (watch for watch in found if watch.resource == LOAD_POLICIES)
    assert kind.optional, "an operator that was upgraded before its kinds must work"


def test_edited_load_policy_is_urgent_and_a_status_is_not(harness: Harness) -> None:
    harness.event(LOAD_POLICIES, "ADDED", load_policy())
    assert harness.urgent
    harness.event(LOAD_POLICIES, "MODIFIED", {**load_policy(), "status": {"source": "x"}})
    assert not harness.urgent
    harness.event(LOAD_POLICIES, "MODIFIED", load_policy(2))
    assert harness.urgent


def test_objects_of_load_policies_are_in_their_part_of_the_snapshot_only(harness: Harness) -> None:
    harness.event(LOAD_POLICIES, None, load_policy())
    harness.event(CONFIG_MAPS, None, made("load-policy-default"))
    harness.event(CONFIG_MAPS, None, made("load-state", whose=""))
    harness.event(DAEMON_SETS, None, made("node-metrics-default"))

    snapshot = harness.snapshot()

    assert snapshot.config_maps == {}, "otherwise the removal would delete it"
    assert set(snapshot.loads.objects[CONFIG_MAPS]) == {"load-policy-default", "load-state"}
    assert set(snapshot.loads.objects[DAEMON_SETS]) == {"node-metrics-default"}
    assert set(snapshot.loads.policies or ()) == {"default"}


def test_load_policies_that_are_not_served_are_none(harness: Harness) -> None:
    assert harness.snapshot().loads.policies == {}
    assert harness.snapshot(missing=(LOAD_POLICIES,)).loads.policies is None


def test_write_errors_are_found_by_object(harness: Harness) -> None:
    policy, other = LOAD_POLICIES.named("default"), SECONDARY_SCHEDULERS.named("default")
    snapshot = replace(harness.snapshot(), write_errors={policy: "403", other: "1"})
    assert snapshot.write_errors[policy] == "403"
    assert snapshot.write_errors[other] == "1"
    assert LOAD_POLICIES.named("x") not in snapshot.write_errors


def token(**labels: str) -> dict[str, Any]:
    metadata = {"name": "prometheus", "namespace": TARGET, "labels": labels}
    return {"metadata": metadata, "data": {"token": "c2VjcmV0"}}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
def test_only_the_labels_of_a_secret_are_kept(platform: Platform) -> None:
    harness = Harness(platform)
    secret = token(**{names.TOKEN_FOR_LABEL: "prometheus.monitoring"})
    secret["metadata"]["namespace"] = platform.target_namespace
    harness.event(SECRETS, "ADDED", secret)
    assert harness.woken()
    (found,) = harness.snapshot().loads.secrets.values()
    assert "data" not in found
    secret["metadata"]["labels"] = {}
    harness.event(SECRETS, "MODIFIED", secret)
    assert harness.woken()
    assert harness.snapshot().loads.secrets == {}


def test_a_secret_that_has_its_label_again_is_known_again(harness: Harness) -> None:
    secret = token(**{names.TOKEN_FOR_LABEL: "prometheus.monitoring"})
    for kind in ("ADDED", "DELETED", "ADDED"):  # to a watch with a selector, it was deleted
        harness.event(SECRETS, kind, secret)
    assert len(harness.snapshot().loads.secrets) == 1


def test_secrets_without_the_label_are_not_read() -> None:
    (watch,) = (each for each in watches(KUBEADM) if each.resource == SECRETS)
    assert (watch.namespace, watch.label_selector) == (TARGET, names.TOKEN_FOR_LABEL)
