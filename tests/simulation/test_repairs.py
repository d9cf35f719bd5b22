"""Deleted or edited objects of the operator are repaired."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    PODS,
    SERVICE_ACCOUNTS,
    ObjectRef,
)

from ..imitation.apiserver import Object, clone
from .invariants import revisions_are_complete_and_in_order
from .scheduler import Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

TARGET = "kube-scheduler-operator"
CRASHES_LATER, SLOW = 45, 43
SCRIPT = {
    CRASHES_LATER: Behavior(lifetimes=(25.0, 0.5)),
    SLOW: Behavior(pending_for=8.0, preflight_for=8.0, ready_after=8.0),
}


def rolled_out(nodes: int = 1, revisions: int = 2) -> World:
    """A cluster whose nodes run revision `revisions`."""
    world = World(nodes=nodes, script=SCRIPT)
    world.settle(90)
    for percentage in range(1, revisions):
        world.tune(percentage)
        world.run(0.5)
        world.settle(90)
    return world


def delete(resource: object, name: str, namespace: str | None = TARGET) -> Callable[[World], None]:
    return lambda world: world.server.delete(
        "user",
        ObjectRef(resource, namespace, name),  # type: ignore[arg-type]
    )


def change(
    resource: object,
    name: str,
    edit: Callable[[Object], object],
    namespace: str | None = TARGET,
    subresource: str | None = None,
) -> Callable[[World], None]:
    def act(world: World) -> None:
        world.server.edit("user", resource, name, edit, namespace, subresource)  # type: ignore[arg-type]

    return act


def remade(name: str, edit: Callable[[Object], object]) -> Callable[[World], None]:
    """Delete an immutable ConfigMap and create it again with other content."""

    def act(world: World) -> None:
        ref = ObjectRef(CONFIG_MAPS, TARGET, name)
        obj = clone(world.server.get(ref))
        edit(obj)
        world.server.delete("user", ref)
        world.server.create("user", CONFIG_MAPS, obj)

    return act


def without_label(obj: Object) -> None:
    obj["metadata"]["labels"].pop(names.MANAGED_BY_LABEL)


def picture(world: World) -> dict[str, object]:
    """Everything that the operator owns, without what the API server makes up."""
    found: dict[str, object] = {}
    for resource in (CONFIG_MAPS, SERVICE_ACCOUNTS):
        for obj in world.server.list(resource, TARGET):
            metadata = obj["metadata"]
            annotations = dict(metadata.get("annotations") or {})
            annotations.pop(names.OUTCOME_TIME_ANNOTATION, None)
            data = dict(obj.get("data") or {})
            data.pop("reason", None)
            found[metadata["name"]] = (metadata["labels"], annotations, data, obj.get("immutable"))
    return found


REPAIRS = {
    "config deleted": delete(CONFIG_MAPS, "config"),
    "config edited": change(
        CONFIG_MAPS, "config", lambda o: o["data"].update({"config.yaml": "x"})
    ),
    "config emptied": change(CONFIG_MAPS, "config", lambda o: o.pop("data")),
    "config sealed with other data": change(
        CONFIG_MAPS, "config", lambda o: o.update(immutable=True, data={"config.yaml": "x"})
    ),
    "config without its label": change(CONFIG_MAPS, "config", without_label),
    "pod deleted": delete(CONFIG_MAPS, "kube-scheduler-pod"),
    "pod edited": change(
        CONFIG_MAPS, "kube-scheduler-pod", lambda o: o["data"].update({"pod.yaml": "{}"})
    ),
    "copy of the latest config deleted": delete(CONFIG_MAPS, "config-2"),
    "copy of the latest pod deleted": delete(CONFIG_MAPS, "kube-scheduler-pod-2"),
    "copy of the latest config made again with other data": remade(
        "config-2", lambda o: o["data"].update({"config.yaml": "x"})
    ),
    "copy of the latest pod made again with other data": remade(
        "kube-scheduler-pod-2", lambda o: o["data"].update({"pod.yaml": "not JSON"})
    ),
    "copy of the latest pod made again without data": remade(
        "kube-scheduler-pod-2", lambda o: o.pop("data")
    ),
    "copy of the latest config made again unsealed": remade(
        "config-2", lambda o: o.pop("immutable")
    ),
    "copy of the latest config without its owner": change(
        CONFIG_MAPS, "config-2", lambda o: o["metadata"].pop("ownerReferences")
    ),
    "copy of the latest config without its label": change(CONFIG_MAPS, "config-2", without_label),
    "latest revision-status deleted": delete(CONFIG_MAPS, "revision-status-2"),
    "latest revision-status without its label": change(
        CONFIG_MAPS, "revision-status-2", without_label
    ),
    "latest revision-status not ready": change(
        CONFIG_MAPS,
        "revision-status-2",
        lambda o: o["metadata"]["annotations"].update({names.REVISION_READY_ANNOTATION: "false"}),
    ),
    "latest revision-status without annotations": change(
        CONFIG_MAPS, "revision-status-2", lambda o: o["metadata"].pop("annotations")
    ),
    "installer-sa deleted": delete(SERVICE_ACCOUNTS, "installer-sa"),
    "installer-sa mounts a token": change(
        SERVICE_ACCOUNTS, "installer-sa", lambda o: o.update(automountServiceAccountToken=True)
    ),
}


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("act", REPAIRS.values(), ids=REPAIRS.keys())
def test_what_it_owns_is_repaired_without_a_new_revision(
    act: Callable[[World], None], nodes: int
) -> None:
    world = rolled_out(nodes)
    before, current = picture(world), world.current()
    act(world)
    world.run(20)
    world.settle(60)
    assert picture(world) == before
    assert world.current() == current
    assert world.status["latestAvailableRevision"] == 2
    revisions_are_complete_and_in_order(world.revisions)
    assert sum(len(machine.outcomes) for machine in world.machines.values()) == 2 * nodes


def test_every_owned_object_is_in_the_table_of_repairs() -> None:
    world = rolled_out()
    owned = {name for name in picture(world) if not name.endswith("-1")}
    kinds = {"config", "kube-scheduler-pod", "config-2", "kube-scheduler-pod-2"}
    assert owned == kinds | {"revision-status-2", "installer-sa"}


def test_a_deleted_older_revision_is_gone_and_nothing_else_happens() -> None:
    world = rolled_out(revisions=3)
    delete(CONFIG_MAPS, "revision-status-1")(world)
    world.run(20)
    assert [revision.number for revision in world.revisions] == [2, 3]
    assert "config-1" not in picture(world), "its copies go with it"
    assert world.current() == {"node-a": 3}


def test_a_deleted_copy_of_an_older_revision_is_mentioned() -> None:
    world = rolled_out(revisions=3)
    delete(CONFIG_MAPS, "config-1")(world)
    world.run(10)
    assert "config-1" in world.full_condition(names.REVISION_DEGRADED)["message"]
    assert world.condition(names.REVISION_DEGRADED) == "False"


def test_cluster_operator_is_made_again() -> None:
    world = rolled_out()
    world.run(200)
    before = {c["type"]: c["status"] for c in cluster_operator(world)["status"]["conditions"]}
    world.server.delete("user", ObjectRef(CLUSTER_OPERATORS, None, "kube-scheduler"))
    world.run(10)
    after = {c["type"]: c["status"] for c in cluster_operator(world)["status"]["conditions"]}
    assert after == before


def test_status_of_the_cluster_operator_is_corrected() -> None:
    world = rolled_out()
    change(
        CLUSTER_OPERATORS,
        "kube-scheduler",
        lambda o: o["status"]["conditions"][0].update(status="Unknown", message="edited"),
        None,
        "status",
    )(world)
    world.run(10)
    assert cluster_operator(world)["status"]["conditions"][0]["status"] == "True"


def cluster_operator(world: World) -> Object:
    return world.server.get(ObjectRef(CLUSTER_OPERATORS, None, "kube-scheduler"))


def test_conditions_that_were_removed_come_back() -> None:
    world = rolled_out()
    before = {c["type"]: c["status"] for c in world.status["conditions"]}
    change(KUBE_SCHEDULERS, "cluster", lambda o: o["status"].pop("conditions"), None, "status")(
        world
    )
    world.run(10)
    assert {c["type"]: c["status"] for c in world.status["conditions"]} == before


def test_conditions_of_others_are_kept() -> None:
    world = rolled_out()
    foreign = {
        "type": "SomebodyElsesDegraded",
        "status": "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    change(
        KUBE_SCHEDULERS,
        "cluster",
        lambda o: o["status"]["conditions"].append(foreign),
        None,
        "status",
    )(world)
    world.run(10)
    assert foreign in world.status["conditions"]


def test_observed_config_is_corrected() -> None:
    world = rolled_out()
    world.spec(observedConfig={"percentageOfNodesToScore": 99})
    world.run(20)
    assert world.kubescheduler["spec"]["observedConfig"] == {}
    assert world.status["latestAvailableRevision"] == 2


def test_node_statuses_that_were_removed_come_back() -> None:
    world = rolled_out(nodes=2)
    change(KUBE_SCHEDULERS, "cluster", lambda o: o["status"].pop("nodeStatuses"), None, "status")(
        world
    )
    world.run(20)
    world.settle(30)
    assert world.current() == {"node-a": 2, "node-b": 2}
    assert sum(len(machine.outcomes) for machine in world.machines.values()) == 4


@pytest.mark.parametrize("moment", [3.0, 9.0, 14.0, 18.0, 22.0, 26.0])
@pytest.mark.parametrize("what", ["installer pod", "revision-status", "copy", "KubeScheduler"])
def test_a_rollout_survives_the_deletion_of_its_objects(what: str, moment: float) -> None:
    world = rolled_out()
    world.tune(SLOW)
    world.run(moment)
    if what == "installer pod":
        for pod in world.installer_pods():
            if pod["status"]["phase"] not in ("Succeeded", "Failed"):
                world.server.delete("user", PODS.ref(pod))
    elif what == "KubeScheduler":
        recreate_kubescheduler(world)
        world.tune(SLOW)
    else:
        name = "revision-status-3" if what == "revision-status" else "kube-scheduler-pod-3"
        delete(CONFIG_MAPS, name)(world)
    world.run(90)
    world.settle(90)
    latest = world.current()["node-a"]
    assert '"percentageOfNodesToScore":43' in world.config(latest)


def recreate_kubescheduler(world: World) -> None:
    world.server.delete("user", ObjectRef(KUBE_SCHEDULERS, None, "cluster"))
    world.run(5)
    body = {"apiVersion": "operator.openshift.io/v1", "kind": "KubeScheduler", "spec": {}}
    world.server.create("user", KUBE_SCHEDULERS, {**body, "metadata": {"name": "cluster"}})


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_new_kubescheduler_takes_over_the_running_configuration(nodes: int) -> None:
    world = World(nodes=nodes)
    world.settle(90)
    world.profile("HighNodeUtilization")
    world.run(0.5)
    world.settle(90)
    recreate_kubescheduler(world)
    world.run(20)
    world.settle(30)
    assert set(world.current().values()) == {2}
    assert world.status["latestAvailableRevision"] == 2
    assert sum(len(machine.outcomes) for machine in world.machines.values()) == 2 * nodes


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_loss_of_all_objects_restarts_no_scheduler(nodes: int) -> None:
    world = World(nodes=nodes)
    world.settle(90)
    world.profile("HighNodeUtilization")
    world.run(0.5)
    world.settle(90)
    world.operator.kill()
    world.server.delete("user", ObjectRef(KUBE_SCHEDULERS, None, "cluster"))
    for resource in (CONFIG_MAPS, SERVICE_ACCOUNTS):
        for obj in world.server.list(resource, TARGET):
            world.server.delete("user", resource.ref(obj))
    world.run(10)
    body = {"apiVersion": "operator.openshift.io/v1", "kind": "KubeScheduler", "spec": {}}
    world.server.create("user", KUBE_SCHEDULERS, {**body, "metadata": {"name": "cluster"}})
    world.operator.start()
    world.run(20)
    world.settle(60)
    assert set(world.current().values()) == {2}
    assert sum(len(machine.outcomes) for machine in world.machines.values()) == 2 * nodes


def test_revision_numbers_continue_after_the_loss_of_all_objects() -> None:
    world = rolled_out(revisions=3)
    world.operator.kill()
    world.server.delete("user", ObjectRef(KUBE_SCHEDULERS, None, "cluster"))
    for obj in world.server.list(CONFIG_MAPS, TARGET):
        world.server.delete("user", CONFIG_MAPS.ref(obj))
    body = {"apiVersion": "operator.openshift.io/v1", "kind": "KubeScheduler"}
    spec = {"unsupportedConfigOverrides": {"percentageOfNodesToScore": 77}}
    world.server.create(
        "user", KUBE_SCHEDULERS, {**body, "metadata": {"name": "cluster"}, "spec": spec}
    )
    world.operator.start()
    world.run(10)
    world.settle(60)
    assert world.current() == {"node-a": 4}


@pytest.mark.parametrize("damage", ["deleted", "not ready"])
def test_quarantine_outlives_damage_to_the_revision_that_imposed_it(damage: str) -> None:
    world = rolled_out()
    world.tune(CRASHES_LATER)
    world.run(200)
    assert world.current() == {"node-a": 4}
    if damage == "deleted":
        delete(CONFIG_MAPS, "revision-status-4")(world)
    else:
        change(
            CONFIG_MAPS,
            "revision-status-4",
            lambda o: o["metadata"]["annotations"].update(
                {names.REVISION_READY_ANNOTATION: "false"}
            ),
        )(world)
    world.run(120)
    assert world.current() == {"node-a": 4}
    assert len(world.revisions) == 4
    assert world.condition(names.NODE_INSTALLER_DEGRADED) == "True"


def test_a_mirror_pod_that_was_deleted_comes_back_by_itself() -> None:
    world = rolled_out()
    world.server.delete("user", ObjectRef(PODS, "kube-system", "kube-scheduler-node-a"))
    world.run(30)
    assert world.settled()
    assert world.status["latestAvailableRevision"] == 2
