"""What is watched of load policies, and what of it wakes the pass."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, PLATFORMS, Platform
from kube_scheduler_operator.engine.handlers import MADE_FOR_LOADS, watches
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DAEMON_SETS, LOAD_POLICIES

from .test_handlers import Desk

TARGET = KUBEADM.target_namespace


@pytest.fixture
def desk() -> Desk:
    return Desk()


def policy(generation: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": "default", "generation": generation}, "spec": {}}


def made(name: str, whose: str = "default", namespace: str = TARGET) -> dict[str, Any]:
    labels = {names.LOAD_LABEL: whose, **names.OWN_LABELS}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
@pytest.mark.parametrize("namespaces", [None, (), ("batch",)], ids=str)
def test_wherever_further_schedulers_run_all_of_it_is_watched(
    platform: Platform, namespaces: Any
) -> None:
    found = watches(platform, namespaces)
    for resource in MADE_FOR_LOADS:
        places = [w.namespace for w in found if w.resource == resource]
        assert places.count(platform.target_namespace) == 1, resource
    (kind,) = (watch for watch in found if watch.resource == LOAD_POLICIES)
    assert kind.optional, "an operator that was upgraded before its kinds must work"


def test_an_edit_is_urgent_and_a_status_is_not(desk: Desk) -> None:
    desk.event(LOAD_POLICIES, "ADDED", policy())
    assert desk.urgent
    desk.event(LOAD_POLICIES, "MODIFIED", {**policy(), "status": {"source": "x"}})
    assert not desk.urgent
    desk.event(LOAD_POLICIES, "MODIFIED", policy(2))
    assert desk.urgent


def test_what_is_made_for_them_is_in_their_part_of_the_snapshot_only(desk: Desk) -> None:
    desk.event(LOAD_POLICIES, None, policy())
    desk.event(CONFIG_MAPS, None, made("load-policy-default"))
    desk.event(CONFIG_MAPS, None, made("load-state", whose=""))
    desk.event(DAEMON_SETS, None, made("node-metrics-default"))

    snapshot = desk.snapshot()

    assert snapshot.config_maps == {}, "or the way out would delete it"
    assert set(snapshot.loads.objects[CONFIG_MAPS]) == {"load-policy-default", "load-state"}
    assert set(snapshot.loads.objects[DAEMON_SETS]) == {"node-metrics-default"}
    assert set(snapshot.loads.policies or ()) == {"default"}


def test_a_kind_that_is_not_served_is_told_apart_from_none(desk: Desk) -> None:
    assert desk.snapshot().loads.policies == {}
    assert desk.snapshot(unserved=(LOAD_POLICIES,)).loads.policies is None


def test_troubles_are_told_apart_from_those_of_others(desk: Desk) -> None:
    snapshot = desk.snapshot(troubles={"LoadPolicy/default": "403", "LoadPolicy/": "404", "x": "1"})
    assert snapshot.loads.troubles == {"default": "403", "": "404"}
