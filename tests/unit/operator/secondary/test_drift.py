"""Changes by other clients to the objects of a secondary scheduler, and refused writes."""

from __future__ import annotations

import json

from kube_scheduler_operator.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECONDARY_SCHEDULERS,
    SERVICE_ACCOUNTS,
    SERVICES,
)

from .world import NAME, NAMESPACE, World, stamp


def test_a_deleted_object_is_recreated(world: World) -> None:
    world.installed()
    created = [key for key in world.objects if key[0] in KINDS]
    assert {kind for kind, _, _ in created} == set(KINDS)
    for key in created:
        world.cluster.remove(key[0], key[2], key[1])
        world.run()
        assert f"create {key[0].kind} {key[2]}" in world.writes
        if key[0] == DEPLOYMENTS:
            world.roll_out()
            world.run()


KINDS = (
    SERVICE_ACCOUNTS, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, ROLES, SERVICES, DISRUPTION_BUDGETS,
    CONFIG_MAPS, DEPLOYMENTS,
)  # fmt: skip


def test_an_edited_object_is_restored(world: World) -> None:
    hash_ = world.installed()
    spec = world.get(DEPLOYMENTS)["spec"]
    container = spec["template"]["spec"]["containers"][0]
    hacked = {**spec["template"]["spec"], "containers": [{**container, "image": "evil"}]}
    world.edit(DEPLOYMENTS, spec={**spec, "template": {**spec["template"], "spec": hacked}})
    world.edit(ROLES, rules=[])
    world.run()
    assert world.get(DEPLOYMENTS)["spec"] == spec
    assert world.get(ROLES)["rules"] != []
    assert world.running() == hash_
    world.run()
    assert world.writes == []


def test_a_restart_by_kubectl_is_kept(world: World) -> None:
    world.installed()
    spec = world.get(DEPLOYMENTS)["spec"]
    mark = {"kubectl.kubernetes.io/restartedAt": stamp(world.cluster.now)}
    metadata = spec["template"]["metadata"]
    annotations = {**metadata["annotations"], **mark}
    template = {**spec["template"], "metadata": {**metadata, "annotations": annotations}}
    world.edit(DEPLOYMENTS, spec={**spec, "template": template})
    world.run()
    found = world.get(DEPLOYMENTS)["spec"]["template"]["metadata"]["annotations"]
    assert mark.items() <= found.items()
    world.run()
    assert world.writes == []
    world.edit(DEPLOYMENTS, spec={**spec, "replicas": 9})
    world.run()
    assert world.get(DEPLOYMENTS)["spec"]["replicas"] == 2, "the next edit is still noticed"


def test_defaults_added_by_the_api_server_are_not_edits(world: World) -> None:
    world.installed()
    for resource in (SERVICES, DEPLOYMENTS):
        obj = world.get(resource)
        obj["spec"] = {**obj["spec"], "sessionAffinity": "None"}
    world.run()
    assert world.writes == []


def test_a_recreated_scheduler_takes_over_remaining_objects(world: World) -> None:
    """Deleted and recreated before the garbage collector has deleted its objects."""
    world.installed()
    world.put(uid="another")
    world.run()
    owners = {
        owner["uid"]
        for (kind, _, _), obj in world.objects.items()
        if kind not in (SECONDARY_SCHEDULERS, PODS) and "ownerReferences" in obj["metadata"]
        for owner in obj["metadata"]["ownerReferences"]
    }
    assert owners == {"another"}


def test_a_scheduler_that_is_being_deleted_is_not_changed(world: World) -> None:
    world.installed()
    metadata = world.get(SECONDARY_SCHEDULERS)["metadata"]
    leaving = {**metadata, "deletionTimestamp": stamp(world.cluster.now)}
    world.edit(SECONDARY_SCHEDULERS, metadata=leaving)
    world.cluster.remove(DEPLOYMENTS, NAME, NAMESPACE)
    world.run()
    assert world.writes == []


def test_a_refused_write_is_reported_before_the_retry(world: World) -> None:
    world.put()
    world.write_errors = {
        SECONDARY_SCHEDULERS.named(NAME): "create /api/v1/…: 403 Forbidden: quota"
    }
    writes = world.plan().write_sets[SECONDARY_SCHEDULERS.named(NAME)]
    assert writes[0].resource == SECONDARY_SCHEDULERS
    degraded = next(c for c in writes[0].obj["status"]["conditions"] if c["type"] == "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "SyncError")
    assert "quota" in degraded["message"]
    assert len(writes) > 1


def test_events_report_failures_and_recoveries(world: World) -> None:
    world.installed()
    assert any("Available is True" in event for event in world.events)
    world.put(config={"parallelism": -1})
    world.run()
    assert [event for event in world.events if "Degraded is True" in event]
    world.put()
    world.run()
    assert [event for event in world.events if "Degraded is False" in event]


def test_the_status_lists_the_plugins_of_the_running_configuration(world: World) -> None:
    profiles = [
        {
            "plugins": {
                "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}
            }
        }
    ]
    world.installed(profiles=profiles)
    (profile,) = world.status()["profiles"]
    assert profile["schedulerName"] == NAME
    assert profile["plugins"]["score"] == [{"name": "ImageLocality", "weight": 1}]
    assert {"name": "NodeResourcesFit"} in profile["plugins"]["filter"]
    json.dumps(world.status())
