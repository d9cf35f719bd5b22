"""What requirements leave, as Karpenter combines them."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.requirements import (
    MOST_ALTERNATIVES,
    ZONE,
    deciding_keys,
    demands,
    requirements_of,
    together,
    written,
)
from kube_scheduler_operator.simulate.world import World

from ...new_nodes import pod, requirement, volume

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("operator", "values", "admitted", "refused"),
    [
        ("In", ["a", "b"], "a", "c"),
        ("NotIn", ["a"], "b", "a"),
        ("Gt", ["4"], "5", "4"),
        ("Gte", ["4"], "4", "3"),
        ("Lt", ["4"], "3", "4"),
        ("Lte", ["4"], "4", "5"),
        ("DoesNotExist", [], None, "a"),
        ("Exists", [], "a", None),
        ("Gt", ["4"], None, "large"),
    ],
)
def test_operators(
    operator: str, values: list[str], admitted: str | None, refused: str | None
) -> None:
    left = requirements_of([requirement("k", operator, *values)])["k"]
    assert admitted is None or left.admits(admitted)
    assert refused is None or not left.admits(refused)


def test_requirements_of_one_label_hold_together() -> None:
    pool = requirements_of([requirement("k", "In", "a", "b"), requirement("k", "NotIn", "b")])
    assert pool["k"].some() == ["a"]
    assert together(pool, requirements_of([requirement("k", "In", "b")]))["k"].some() == []


def test_labels_with_the_same_value_are_one() -> None:
    beta = requirements_of([requirement("failure-domain.beta.kubernetes.io/zone", "In", "a")])
    assert beta[ZONE].some() == ["a"]


def test_a_number_without_an_end_is_its_bound() -> None:
    assert requirements_of([requirement("cpu", "Gt", "4")])["cpu"].some() == ["5"]
    assert requirements_of([requirement("cpu", "Lt", "9")])["cpu"].some() == ["8"]


def test_damaged_requirements_leave_anything() -> None:
    assert requirements_of("text") == {}
    assert requirements_of([None, 3, {"key": 1}])["1"].admits("x")


def test_a_pod_demands_one_term_and_its_selector_and_the_zone_of_its_volume() -> None:
    terms = [{"matchExpressions": [requirement("t", "In", value)]} for value in ("x", "y")]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    world = World()
    for obj in volume("c"):
        world.add(obj)
    asked = pod("p", nodeSelector={"disk": "ssd"}, affinity=affinity, volumes=[claim])
    assert [
        {key: values.some() for key, values in one.items()} for one in demands(asked, world)
    ] == [
        {"disk": ["ssd"], "t": ["x"], ZONE: ["c"]},
        {"disk": ["ssd"], "t": ["y"], ZONE: ["c"]},
    ]


def test_a_class_demands_one_of_its_topologies() -> None:
    world = World()
    topology = {"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}
    world.add(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "fast"},
            "provisioner": "p",
            "allowedTopologies": [topology],
        }
    )
    world.add(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"storageClassName": "fast"},
        }
    )
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    (asked,) = demands(pod("p", volumes=[claim]), world)
    assert asked[ZONE].some() == ["a", "b"]


def test_alternatives_are_few() -> None:
    terms = [{"matchExpressions": [requirement("t", "In", str(number))]} for number in range(500)]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    assert len(demands(pod("p", affinity=affinity), World())) == MOST_ALTERNATIVES + 1


def test_the_keys_of_spread_and_affinity_decide_by_their_values() -> None:
    spec: dict[str, Any] = {
        "topologySpreadConstraints": [{"topologyKey": ZONE}],
        "affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "rack"}]}},
    }
    world = World()
    theirs = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "row"}]}}
    world.add(pod("other", affinity=theirs, nodeName="n"))
    assert list(deciding_keys(pod("p", **spec), world)) == [ZONE, "rack", "row"]


def test_a_requirement_as_text_has_its_first_values() -> None:
    values = [f"m{number}" for number in range(9)]
    assert written(requirement("t", "In", *values)) == "t In m0, m1, m2, m3, m4, …"
    assert written(requirement("t\n", "Exists")) == "t\\n Exists"
