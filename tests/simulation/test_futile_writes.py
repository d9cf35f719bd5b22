"""Writes that change nothing, or that another client undoes again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    KUBE_SCHEDULERS,
    PODS,
    SCHEDULER_PROFILES,
    SERVICE_ACCOUNTS,
    ObjectRef,
    Resource,
)

from .other_clients import prune, revert
from .world import World

pytestmark = pytest.mark.presubmit_first

FIRST_TEN_MINUTES = 40
"""Writes of one object that are not kept, until they are five minutes apart, and the reports."""

LATER = 12 * 3
"""Writes an hour of such an object, of KubeScheduler and of ClusterOperator."""


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        (KUBE_SCHEDULERS, ("status", "readyReplicas")),
        (KUBE_SCHEDULERS, ("status", "nodeStatuses", "nodeUID")),
        (KUBE_SCHEDULERS, ("status", "version")),
        (KUBE_SCHEDULERS, ("spec", "observedConfig")),
        (CLUSTER_OPERATORS, ("status", "versions")),
        (CLUSTER_OPERATORS, ("status", "relatedObjects")),
        (SCHEDULER_PROFILES, ("status", "accepted")),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else value.plural,
)
def test_a_field_that_the_crd_does_not_have_is_written_rarely_and_named(
    resource: Resource, path: tuple[str, ...]
) -> None:
    world = World(start=False)
    mend = prune(world, resource, *path)
    world.operator.start()
    if path[-1] in ("observedConfig", "accepted"):
        world.offer(
            "default-scheduler",
            plugins={"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}},
        )
    world.run(600)
    before = world.operator.connection.writes
    assert before < FIRST_TEN_MINUTES + 40, "a rollout and its reports come on top"
    world.run(3600)
    assert world.operator.connection.writes - before < LATER
    condition = world.full_condition(names.WRITES_DEGRADED)
    assert condition["status"] == "True"
    assert condition["reason"] == "FieldsDropped"
    assert path[-1] in condition["message"]
    assert "apply crds/" in condition["message"]
    mend()
    world.run(900)
    assert world.condition(names.WRITES_DEGRADED) == "False"


def labelled(obj: dict[str, Any]) -> None:
    obj["metadata"]["labels"] = {**obj["metadata"]["labels"], "app.kubernetes.io/part-of": "x"}


def emptied(obj: dict[str, Any]) -> None:
    obj["data"] = {}


def without_status(obj: dict[str, Any]) -> None:
    obj["status"]["readyReplicas"] = 77


def without_versions(obj: dict[str, Any]) -> None:
    obj["status"]["versions"] = []


def is_named(resource: Resource, name: str = "") -> Callable[[ObjectRef], bool]:
    return lambda ref: ref.resource == resource and ref.name.startswith(name)


OTHER_CLIENTS = {
    "reverts a ConfigMap": (is_named(CONFIG_MAPS, "config"), emptied, None),
    "reverts labels": (is_named(SERVICE_ACCOUNTS), labelled, None),
    "reverts KubeScheduler's status": (is_named(KUBE_SCHEDULERS), without_status, "status"),
    "reverts ClusterOperator": (is_named(CLUSTER_OPERATORS), without_versions, "status"),
    "deletes a ServiceAccount": (is_named(SERVICE_ACCOUNTS), None, None),
    "deletes guards": (is_named(PODS, "kube-scheduler-guard"), None, None),
    "deletes PodDisruptionBudgets": (is_named(DISRUPTION_BUDGETS), None, None),
}


@pytest.mark.parametrize("kind", OTHER_CLIENTS)
def test_a_client_that_reverts_each_write_is_answered_rarely_and_reported(kind: str) -> None:
    world = World(nodes=2)
    world.settle(60)
    world.run_until(world.is_guarded, 200, "guarded")
    selects, change, subresource = OTHER_CLIENTS[kind]
    if kind == "reverts a ConfigMap":
        selects = lambda ref: ref.resource == CONFIG_MAPS and ref.name == "config"  # noqa: E731
    stop = revert(world, selects, change, subresource)
    for ref in [ref for ref in world.server.objects if selects(ref)]:
        if change is None:
            world.server.delete("other", ref)
        else:
            world.server.edit("other", ref.resource, ref.name, change, ref.namespace, subresource)
    writes, events = world.operator.connection.writes, len(world.operator.recorder.events)
    world.run(600)
    assert world.operator.connection.writes - writes < FIRST_TEN_MINUTES
    assert len(world.operator.recorder.events) - events < 12
    writes = world.operator.connection.writes
    world.run(3600)
    assert world.operator.connection.writes - writes < LATER
    condition = world.operator_condition("Degraded")
    assert "another client" in condition["message"], condition
    assert condition["status"] == "True"
    stop()
    world.run(900)
    world.settle(60)
    assert world.condition(names.WRITES_DEGRADED) == "False"


def test_another_client_of_one_object_does_not_delay_an_edit() -> None:
    world = World(nodes=2)
    world.settle(60)
    revert(world, lambda ref: ref.resource == CLUSTER_OPERATORS, without_versions, "status")
    revert(world, lambda ref: ref.resource == SERVICE_ACCOUNTS, labelled)
    ref = ObjectRef(CLUSTER_OPERATORS, None, names.CLUSTEROPERATOR)
    world.server.edit("other", CLUSTER_OPERATORS, ref.name, without_versions, None, "status")
    world.run(300)
    world.tune(7)
    world.run_until(lambda: set(world.current().values()) == {2}, 30, "the edit arrives")


def test_one_edit_by_hand_is_put_back_at_once() -> None:
    world = World()
    world.settle(60)
    for _ in range(2):
        target = world.platform.target_namespace
        world.server.edit("user", CONFIG_MAPS, "config", emptied, target)
        world.run(2)
        assert world.config_map("config")["data"]
    assert world.condition(names.WRITES_DEGRADED) == "False"


def test_an_object_that_always_conflicts_is_tried_rarely_and_reported() -> None:
    world = World()
    world.settle(60)

    def conflict(verb: str, ref: ObjectRef, sub: str | None) -> Any:
        if ref.resource != CONFIG_MAPS or ref.name != "config":
            return None
        return world.server.error(verb, ref, 409, "Conflict", "refused by a webhook")

    world.operator.connection.faults.append(conflict)
    world.server.edit("user", CONFIG_MAPS, "config", emptied, world.platform.target_namespace)
    writes = world.operator.connection.writes
    world.run(600)
    assert world.operator.connection.writes - writes < FIRST_TEN_MINUTES
    assert world.full_condition(names.WRITES_DEGRADED)["reason"] == "RepeatedConflicts"
    world.tune(7)
    world.run_until(lambda: world.current() == {"node-a": 2}, 60, "the edit arrives")
