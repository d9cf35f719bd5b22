"""The API refuses, fails, or others are faster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.errors import ApiError, ApiRequest, from_response
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    PODS,
    SERVICE_ACCOUNTS,
    ObjectRef,
    Resource,
)

from .invariants import revisions_are_complete_and_in_order
from .world import World

pytestmark = pytest.mark.presubmit_first

Fault = Callable[[str, ObjectRef, str | None], ApiError | None]


def forbid(verb: str, resource: Resource, subresource: str | None = None) -> Fault:
    def fault(asked: str, ref: ObjectRef, sub: str | None) -> ApiError | None:
        if (asked, ref.resource, sub) != (verb, resource, subresource):
            return None
        request = ApiRequest(verb, ref.path, ref.resource, ref.namespace, ref.name, sub)
        message = f'User "x" cannot {verb} resource "{ref.resource.plural}"'
        return from_response(
            request, 403, {"kind": "Status", "reason": "Forbidden", "message": message}
        )

    return fault


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("create", CONFIG_MAPS),
        ("update", CONFIG_MAPS),
        ("create", PODS),
        ("create", SERVICE_ACCOUNTS),
    ],
    ids=str,
)
def test_a_missing_right_is_reported_until_it_is_granted(verb: str, resource: Resource) -> None:
    world = World(start=False)
    world.operator.connection.faults.append(forbid(verb, resource))
    world.operator.start()
    world.run(200)
    degraded = world.full_condition(names.INSTALLER_DEGRADED)
    assert degraded["status"] == "True"
    assert f"cannot {verb}" in degraded["message"]
    assert "Role" in degraded["message"], "and what to do about it"
    assert world.operator_condition("Degraded")["status"] == "True"
    assert world.machines["node-a"].shown == 0
    world.operator.connection.faults.clear()
    world.run(61)
    world.settle(120)
    assert world.condition(names.INSTALLER_DEGRADED) == "False"
    assert len(world.revisions) == 1


def test_a_cluster_operator_that_cannot_be_written_delays_nothing() -> None:
    world = World(start=False)
    world.operator.connection.faults.append(forbid("create", CLUSTER_OPERATORS))
    world.operator.start()
    world.run(200)
    assert world.current() == {"node-a": 1}
    world.tune(7)
    world.run(200)
    assert world.current() == {"node-a": 2}
    assert world.condition(names.INSTALLER_DEGRADED) == "True"
    world.operator.connection.faults.clear()
    world.run(61)
    world.settle(120)
    assert world.condition(names.INSTALLER_DEGRADED) == "False"


def test_a_spec_that_cannot_be_written_delays_nothing() -> None:
    world = World()
    world.settle(60)
    world.operator.connection.faults.append(forbid("update", KUBE_SCHEDULERS))
    world.spec(observedConfig={"x": 1})
    world.run(60)
    assert world.condition(names.INSTALLER_DEGRADED) == "True"
    world.tune(7)
    world.run(300)
    assert world.current() == {"node-a": 2}
    world.operator.connection.faults.clear()
    world.run(61)
    world.settle(120)
    assert world.kubescheduler["spec"]["observedConfig"] == {}


def test_an_outcome_that_cannot_be_recorded_does_not_bring_the_revision_back() -> None:
    from .scheduler import Behavior

    world = World(script={42: Behavior(ready_after=None)})
    world.settle(60)
    world.tune(42)
    world.run(30)
    world.operator.connection.faults.append(forbid("update", CONFIG_MAPS))
    world.run(400)
    assert len(world.machines["node-a"].outcomes) == 2, "tried once"
    world.operator.connection.faults.clear()
    world.run(120)
    assert world.revision(2).outcome == names.OUTCOME_FAILED
    assert len(world.machines["node-a"].outcomes) == 2


def test_a_missing_namespace_is_an_error_and_no_busy_loop() -> None:
    world = World(start=False)
    world.server.namespaces.remove("kube-scheduler-operator")
    world.operator.start()
    world.run(120)
    degraded = world.full_condition(names.INSTALLER_DEGRADED)
    assert degraded["status"] == "True"
    assert 'namespaces "kube-scheduler-operator" not found' in degraded["message"]
    assert world.operator.passes < 100
    world.server.namespaces.add("kube-scheduler-operator")
    world.settle(120)


@pytest.mark.parametrize("every", [2, 3, 5])
def test_conflicting_writes_cost_one_more_reconcile(every: int) -> None:
    world = World(nodes=2)
    counter = 0

    def meddle() -> None:
        nonlocal counter
        counter += 1
        if counter % every == 0 and counter < 200:
            world.server.edit(
                "user",
                KUBE_SCHEDULERS,
                "cluster",
                lambda obj: obj["metadata"].setdefault("labels", {}).update(count=str(counter)),
            )

    world.operator.connection.before_write = meddle
    world.settle(120)
    world.tune(7)
    world.run(0.5)
    world.settle(120)
    revisions_are_complete_and_in_order(world.revisions)
    assert len(world.revisions) == 2


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_an_unreliable_api_server_only_delays(share: float) -> None:
    world = World(nodes=2, start=False)

    def fault(verb: str, ref: ObjectRef, sub: str | None) -> ApiError | None:
        if world.rng.random() > share:
            return None
        request = ApiRequest(verb, ref.path, ref.resource, ref.namespace, ref.name, sub)
        return from_response(request, 503, "etcd is away")

    world.operator.connection.faults.append(fault)
    world.operator.start()
    world.run(120)
    world.tune(7)
    world.run(200)
    world.operator.connection.faults.clear()
    world.run(61)
    world.settle(200)
    latest = world.status["latestAvailableRevision"]
    assert set(world.current().values()) == {latest}
    assert '"percentageOfNodesToScore":7' in world.config(latest)
    revisions_are_complete_and_in_order(world.revisions)
    assert len(world.revisions) <= 2
