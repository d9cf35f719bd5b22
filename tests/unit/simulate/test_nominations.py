"""The stand-ins of nominated pods; tests/integration/test_held_rooms.py has kube-scheduler."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.kinds import PODS
from kube_scheduler_operator.simulate.nominations import Nominations, nominated
from kube_scheduler_operator.simulate.store import WorldStore
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]


def _pod(**spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "app", "uid": "u", "labels": {"app": "web"}},
        "spec": {"priority": 7, "containers": [], "schedulerName": "default-scheduler", **spec},
        "status": {"phase": "Pending", "nominatedNodeName": "n"},
    }


def _held(pod: Object, version: Version, *names: str) -> tuple[list[Object], list[Object]]:
    world = World()
    world.add(pod)
    store = WorldStore(world)
    nominations = Nominations(store, world)
    profiles = nominations.profiles(default_configuration(), names, lambda: Gates(version))
    return profiles, [*map(_parsed, store.contents(PODS))]


def _parsed(content: bytes) -> Object:
    parsed: Object = orjson.loads(content)
    return parsed


def test_a_stand_in_has_the_demands_and_the_nomination_and_fits_nowhere() -> None:
    groups = {"schedulingGroup": {"podGroupName": "g"}, "preemptionPolicy": "PreemptLowerPriority"}
    (profile,), (stand_in,) = _held(_pod(**groups), Version(1, 35), "default-scheduler")
    assert stand_in["metadata"]["labels"] == {"app": "web"}
    assert stand_in["metadata"]["name"].startswith("simulation_")
    spec = stand_in["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")
    assert spec["schedulerName"] == profile["schedulerName"]
    assert spec["nodeSelector"]
    assert "schedulingGroup" not in spec
    assert nominated(stand_in) == "n"


def test_another_scheduler_knows_no_nomination() -> None:
    assert _held(_pod(), Version(1, 35), "other") == ([], [])


@pytest.mark.parametrize(("minor", "held"), [(36, 0), (37, 1)])
def test_a_gated_pod_holds_room_from_1_37_on(minor: int, held: int) -> None:
    gated = _pod(schedulingGates=[{"name": "example.com/wait"}])
    assert len(_held(gated, Version(1, minor), "default-scheduler")[1]) == held


def test_pods_that_end_or_run_are_not_nominated() -> None:
    ending = _pod()
    ending["metadata"]["deletionTimestamp"] = "2026-03-01T08:05:00Z"
    assert _held(ending, Version(1, 37), "default-scheduler") == ([], [])
    assert nominated(_pod(nodeName="n")) == ""
