"""New pods get what the API server's admission gives them, or the reasons why it refuses them.

tests/integration/test_new_pods_against_api_server.py compares it with a real API server.
"""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.admission import Admission, admit
from kube_scheduler_operator.simulate.quotas import Quotas
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]
CONTAINER: Object = {"name": "c", "image": "i"}


def pod(**spec: Any) -> Object:
    metadata = {"name": "p", "namespace": "shop"}
    spec = {"containers": [dict(CONTAINER)], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def priority_class(name: str, value: int, **fields: Any) -> Object:
    version = "scheduling.k8s.io/v1"
    made = {"apiVersion": version, "kind": "PriorityClass", "metadata": {"name": name}}
    return {**made, "value": value, **fields}


def quota(hard: dict[str, str], used: dict[str, str] | None = None, name: str = "q") -> Object:
    metadata = {"name": name, "namespace": "shop"}
    status = {"hard": hard, "used": used} if used is not None else {}
    made = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    return {**made, "spec": {"hard": hard}, "status": status}


def admitted(world: World, **spec: Any) -> tuple[Object, Admission]:
    made = pod(**spec)
    admission = admit(made, world)
    return made["spec"], admission


@pytest.mark.parametrize(
    ("name", "priority"),
    [(None, 5), ("high", 1000), ("system-node-critical", 2_000_001_000)],
)
def test_priority_is_that_of_the_class(name: str | None, priority: int) -> None:
    world = World()
    world.add(priority_class("high", 1000, preemptionPolicy="Never"))
    world.add(priority_class("higher-default", 9, globalDefault=True))
    world.add(priority_class("normal", 5, globalDefault=True))
    spec, admission = admitted(world, **({"priorityClassName": name} if name else {}))
    assert spec["priority"] == priority
    assert (spec["preemptionPolicy"] == "Never") == (name == "high")
    assert admission == Admission()


@pytest.mark.parametrize("field", ["priorityClassName", "runtimeClassName"])
def test_what_files_without_its_kind_lack_is_not_known(field: str) -> None:
    _, admission = admitted(World(), **{field: "x"})
    (unknown,) = admission.unknown
    assert '"x" is not known' in unknown
    assert admission.refused == []


def test_a_class_that_is_not_among_those_of_the_files_does_not_exist() -> None:
    world = World()
    world.add(priority_class("high", 1000))
    world.add({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "a"}})
    _, admission = admitted(world, priorityClassName="x", runtimeClassName="y")
    assert admission.unknown == []
    assert admission.refused == [
        "no PriorityClass with name x was found",
        'pod rejected: RuntimeClass "y" not found',
    ]


def test_default_tolerations_are_added_unless_there_is_one() -> None:
    key = "node.kubernetes.io/not-ready"
    own = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7}
    spec, _ = admitted(World(), tolerations=[own])
    first, second = spec["tolerations"]
    assert first == own
    assert second["key"] == "node.kubernetes.io/unreachable"
    assert second["tolerationSeconds"] == 300


def test_requests_default_to_limits() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    spec, _ = admitted(World(), containers=[{**CONTAINER, "resources": resources}])
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("container", "whole", "message"),
    [
        ({"requests": {"cpu": "9"}, "limits": {"cpu": "2"}}, {},
         'spec.containers[0].resources.requests: Invalid value: "9": must be less than or equal to '
         "cpu limit of 2"),
        ({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}, {},
         'spec.containers[0].resources.requests: Invalid value: "1": must be equal to '
         "example.com/gpu limit of 2"),
        ({"requests": {"example.com/gpu": "1"}}, {},
         "spec.containers[0].resources.limits: Required value: Limit must be set for non "
         "overcommitable resources"),
        ({"requests": {"cpu": "9"}}, {"requests": {"cpu": "4"}},
         'spec.resources.requests[cpu]: Invalid value: "4": must be greater than or equal to '
         "aggregate container requests of 9"),
        ({"limits": {"memory": "2Gi"}}, {"limits": {"memory": "1Gi"}},
         'spec.resources.containers[0][memory].limits: Invalid value: "2Gi": must be less than or '
         "equal to pod limits of 1Gi"),
    ],
)  # fmt: skip
def test_resources_that_do_not_fit_each_other_are_refused(
    container: Object, whole: Object, message: str
) -> None:
    containers = [{**CONTAINER, "resources": container}]
    _, admission = admitted(World(), containers=containers, resources=whole)
    assert message in admission.refused


def test_a_default_limit_below_a_request_is_refused() -> None:
    world = World()
    limits = [{"type": "Container", "default": {"cpu": "2"}}]
    world.add({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": limits},
               "metadata": {"name": "l", "namespace": "shop"}})  # fmt: skip
    resources = {"requests": {"cpu": "9"}}
    _, admission = admitted(world, containers=[{**CONTAINER, "resources": resources}])
    assert len(admission.refused) == 1


@pytest.mark.parametrize(
    ("version", "memory"), [("v1.36.3", "6Gi"), ("v1.37.2", "1Gi"), ("", "1Gi")]
)
def test_requests_of_a_pod_default_to_its_limits(version: str, memory: str) -> None:
    """Those of containers come first; from 1.37 on also those that a LimitRange gives them."""
    world = World(version=version)
    limits = [{"type": "Container", "defaultRequest": {"memory": "1Gi"}}]
    world.add({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": limits},
               "metadata": {"name": "l", "namespace": "shop"}})  # fmt: skip
    containers = [{**CONTAINER, "resources": {"requests": {"cpu": "1"}}}]
    spec, admission = admitted(
        world, containers=containers, resources={"limits": {"cpu": "4", "memory": "6Gi"}}
    )
    assert spec["resources"]["requests"] == {"cpu": "1", "memory": memory}
    assert admission.refused == []


def test_a_quota_admits_as_many_pods_as_it_has_room_for() -> None:
    """A quota without a status, which no controller has counted, is used by the pods there are."""
    world = World()
    running = pod(nodeName="n")
    running["metadata"]["name"] = "running"
    world.add(running)
    world.add(quota({"pods": "3"}))
    quotas = Quotas(world)
    first = quotas.admit(pod(), 1)
    assert (first.count, first.reasons) == (1, ())
    rest = quotas.admit(pod(), 5)
    assert rest.count == 1
    assert rest.reasons == ("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3",)


def test_every_quota_that_refuses_a_pod_is_named() -> None:
    world = World()
    world.add(quota({"pods": "3"}, {"pods": "3"}))
    world.add(quota({"limits.cpu": "1", "requests.memory": "1Gi"}, {}, "r"))
    found = Quotas(world).admit(pod(), 1)
    assert found.count == 0
    assert sorted(found.reasons) == [
        "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3",
        "failed quota: r: must specify limits.cpu for: c; requests.memory for: c",
    ]


def test_a_quota_of_another_namespace_or_of_other_objects_admits_all() -> None:
    world = World()
    elsewhere = quota({"pods": "0"}, {"pods": "0"})
    elsewhere["metadata"]["namespace"] = "other"
    world.add(elsewhere)
    world.add(quota({"requests.storage": "0", "configmaps": "0"}, {"configmaps": "0"}))
    assert Quotas(world).admit(pod(), 9).count == 9
