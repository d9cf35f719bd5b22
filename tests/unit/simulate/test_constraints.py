"""The constraints of a pod, and what removing each of them leaves."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kube_scheduler_operator.simulate.constraints import (
    constraints_of,
    quantity_text,
    without,
)
from kube_scheduler_operator.simulate.world import World

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
NEW = {"key": "generation", "operator": "Gt", "values": ["4"]}


def _container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", **fields}


CASES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "a request": (
        {"containers": [_container(resources={"requests": {"cpu": "1", "memory": "1Gi"}})]},
        "request less cpu",
        {"containers": [_container(resources={"requests": {"memory": "1Gi"}})]},
    ),
    "a limit that is the request": (
        {"containers": [_container(resources={"limits": {"cpu": "1"}, "requests": {}})]},
        "request less cpu",
        {"containers": [_container(resources={"limits": {}, "requests": {}})]},
    ),
    "a label of the nodeSelector": (
        {"nodeSelector": {"disk": "ssd", "zone": "a"}},
        "remove disk=ssd from the nodeSelector",
        {"nodeSelector": {"zone": "a"}},
    ),
    "an expression of the only term": (
        {"affinity": {"nodeAffinity": {REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [ZONE_A, NEW]}]}}}},
        "remove generation greater than 4 from the node affinity",
        {"affinity": {"nodeAffinity": {REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [ZONE_A]}]}}}},
    ),
    "the last expression of the only term": (
        {"affinity": {"nodeAffinity": {REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [ZONE_A]}]}}}},
        "remove zone in a from the node affinity",
        {"affinity": {"nodeAffinity": {}}},
    ),
    "several terms, of which one has to match": (
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
            {"matchExpressions": [ZONE_A]}, {"matchExpressions": [NEW]}]}}}},
        "remove the required node affinity",
        {"affinity": {"nodeAffinity": {}}},
    ),
    "a host port": (
        {"containers": [_container(ports=[{"hostPort": 80}, {"hostPort": 81}])]},
        "remove the hostPort 80/TCP",
        {"containers": [_container(ports=[{"hostPort": 81}])]},
    ),
    "a spread": (
        {"topologySpreadConstraints": [SPREAD, {**SPREAD, "topologyKey": "host"}]},
        "use ScheduleAnyway for the spread over zone",
        {"topologySpreadConstraints": [{**SPREAD, "topologyKey": "host"}]},
    ),
    "an anti-affinity": (
        {"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}},
        "remove the pod anti-affinity to pods with app=db per zone",
        {"affinity": {"podAntiAffinity": {REQUIRED: []}}},
    ),
    "a volume": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        "remove the volume v (data)",
        {"volumes": []},
    ),
    "a device": (
        {
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}],
            "containers": [_container(resources={"claims": [{"name": "gpu"}]})],
        },
        "remove the resource claim gpu",
        {"resourceClaims": [], "containers": [_container(resources={"claims": []})]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_constraint_is_removed(name: str) -> None:
    spec, fix, left = CASES[name]
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    before = copy.deepcopy(pod)
    found = {each.fix: each for each in constraints_of(pod, World())}
    assert without(pod, [found[fix]])["spec"] == left
    assert pod == before


def test_all_constraints_together_leave_a_pod_that_fits_everywhere() -> None:
    spec: dict[str, Any] = {}
    for case, _, _ in CASES.values():
        for key, value in copy.deepcopy(case).items():
            known = spec.get(key)
            if isinstance(value, list) and known is not None:
                known += value
            elif isinstance(value, dict) and known is not None:
                known.update(value)
            else:
                spec[key] = value
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    world = World()
    world.add(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "a"},
            "spec": {"taints": [{"key": "k", "effect": "NoExecute"}]},
        }
    )
    left = without(pod, constraints_of(pod, world))
    assert [each.fix for each in constraints_of(left, World())] == ["uncordon the node"]
    assert {"key": "k", "operator": "Equal", "value": "", "effect": "NoExecute"} in left["spec"][
        "tolerations"
    ]


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 4 * 2**30, "4Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 1000, "1000"),
        ("example.com/gpu", 3, "3"),
    ],
)
def test_amounts_are_written_as_users_do(resource: str, amount: float, text: str) -> None:
    assert quantity_text(resource, amount) == text
