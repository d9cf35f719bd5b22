"""The plan for a SecondaryScheduler: creation, rollout, edits, and errors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import DEPLOYMENTS, SECONDARY_SCHEDULERS

from .world import NAME, NAMESPACE, World, hanging


def test_objects_are_created_in_order_of_dependency(world: World) -> None:
    world.put(replicas=3)
    world.run()
    made = [write.rpartition(" ")[0] for write in world.writes]
    assert made == [
        "create ServiceAccount",
        "create ClusterRoleBinding",
        "create ClusterRoleBinding",
        "create RoleBinding",
        "create Role",
        "create RoleBinding",
        "create Service",
        "create PodDisruptionBudget",
        "create ConfigMap",
        "create Deployment",
        "replace status SecondaryScheduler",
    ]
    owners = {
        (owner["kind"], owner["name"], owner["uid"])
        for (kind, _, _), obj in world.objects.items()
        if kind != SECONDARY_SCHEDULERS
        for owner in obj["metadata"]["ownerReferences"]
    }
    assert owners == {("SecondaryScheduler", NAME, f"uid-of-{NAME}")}, (
        "the garbage collector deletes everything with it"
    )
    assert world.condition(names.PROGRESSING)[:2] == ("True", "RollingOut")
    assert world.condition(names.AVAILABLE)[:2] == ("False", "NoReadyScheduler")


def test_a_running_scheduler_is_reported_once_and_then_nothing_is_written(world: World) -> None:
    hash_ = world.installed(replicas=3)
    assert world.condition(names.AVAILABLE)[0] == "True"
    assert world.condition(names.PROGRESSING)[0] == "False"
    assert world.condition(names.DEGRADED)[0] == "False"
    status = world.status()
    assert (status["configHash"], status["readyReplicas"], status["replicas"]) == (hash_, 3, 3)
    assert status["leaseHolder"] == f"{NAME}-{hash_}-0_x"
    assert world.outcomes() == {hash_: names.OUTCOME_INSTALLED}
    world.run()
    assert world.writes == []


def test_nothing_is_written_while_the_lease_is_renewed(world: World) -> None:
    world.installed()
    for _ in range(20):
        world.cluster.now += timedelta(minutes=7)
        world.leases_seen[NAMESPACE, NAME] = world.cluster.now
        world.run()
        assert world.writes == []


def test_a_lease_that_is_not_renewed_is_reported_when_it_expires(
    world: World,
) -> None:
    world.installed()
    wait = world.wait
    assert wait is not None
    assert 20 <= wait <= 21
    world.cluster.now += timedelta(seconds=wait)
    world.run()
    assert world.condition(names.AVAILABLE)[:2] == ("False", "LeaseNotRenewed")
    expect_degraded_after_a_minute(world)


def test_schedulers_that_hang_are_reported(world: World) -> None:
    """Their Pods run, are not Ready, and wait for nothing."""
    hash_ = world.installed()
    for index in range(2):
        world.pod(hash_, index, **hanging(world.cluster.now))
    world.run()
    assert world.condition(names.AVAILABLE)[:2] == ("False", "NoReadyScheduler")
    expect_degraded_after_a_minute(world)


def test_schedulers_without_any_pod_are_reported(world: World) -> None:
    world.installed()
    world.no_pods()
    world.run()
    expect_degraded_after_a_minute(world)


def test_schedulers_are_not_judged_by_an_outage_of_the_api_server(world: World) -> None:
    world.installed()
    world.no_pods()
    world.run()
    world.cluster.now += timedelta(minutes=2)
    world.answered_since = world.cluster.now
    world.run()
    expect_degraded_after_a_minute(world)


def expect_degraded_after_a_minute(world: World) -> None:
    """A moment, as while a node restarts, does not count."""
    begin = world.cluster.now
    while world.condition(names.DEGRADED)[0] == "False":
        wait = world.wait
        assert wait is not None
        world.cluster.now += timedelta(seconds=wait)
        world.run()
    assert 59 <= (world.cluster.now - begin).total_seconds() <= 60
    assert world.condition(names.DEGRADED)[:2] == ("True", "Unavailable")
    assert world.condition(names.AVAILABLE)[2] in world.condition(names.DEGRADED)[2]
    assert world.secondary().conditions[0].status == "True"
    assert world.wait is None


def test_a_lease_that_its_leader_has_just_released_is_not_a_failure(world: World) -> None:
    """In every rollout the leader ends, and another replica takes the Lease two seconds later."""
    world.installed()
    world.leases[NAMESPACE, NAME]["spec"]["holderIdentity"] = ""
    world.cluster.now += timedelta(minutes=7)
    world.leases_seen[NAMESPACE, NAME] = world.cluster.now
    world.run()
    assert world.condition(names.AVAILABLE)[0] == "True"
    wait = world.wait
    assert wait is not None
    world.cluster.now += timedelta(seconds=wait)
    world.run()
    assert world.condition(names.AVAILABLE)[:2] == ("False", "LeaseNotRenewed")


@pytest.mark.parametrize("change", [{"replicas": 3}, {"replicas": 1}])
def test_scaling_does_not_change_the_configuration(world: World, change: dict[str, Any]) -> None:
    hash_ = world.installed(replicas=2)
    world.put(**change)
    world.run()
    assert "replace Deployment my-scheduler" in world.writes
    assert world.running() == hash_
    assert world.get(DEPLOYMENTS)["spec"]["replicas"] == change["replicas"]
    assert world.config_map_hashes() == {hash_}
    world.roll_out()
    world.run()
    assert world.condition(names.PROGRESSING)[0] == "False"


def test_an_edit_is_rolled_out_and_the_last_good_configuration_is_kept(world: World) -> None:
    old = world.installed()
    world.put(config={"parallelism": 4})
    world.run()
    new = world.running()
    assert new != old
    assert world.outcomes() == {
        new: names.OUTCOME_PROGRESSING,
        old: names.OUTCOME_INSTALLED,
    }
    assert world.condition(names.PROGRESSING)[0] == "True"
    world.roll_out()
    world.run()
    assert world.outcomes()[new] == names.OUTCOME_INSTALLED
    assert world.config_map_hashes() == {old, new}


def test_superseded_configurations_are_deleted(world: World) -> None:
    hashes = [world.installed()]
    for parallelism in range(1, 5):
        world.put(config={"parallelism": parallelism})
        world.run()
        hashes.append(world.running())
    outcomes = world.outcomes()
    assert [outcomes[hash_] for hash_ in hashes] == [
        names.OUTCOME_INSTALLED,
        *[names.OUTCOME_SUPERSEDED] * 3,
        names.OUTCOME_PROGRESSING,
    ]
    world.roll_out()
    world.run()
    assert world.config_map_hashes() == {hashes[0], hashes[-1]}


# --- findings -------------------------------------------------------------------------------------


def test_an_invalid_edit_is_reported_and_the_running_configuration_stays(world: World) -> None:
    hash_ = world.installed()
    plugins = {"score": {"enabled": [{"name": "ImageLocalty"}]}}
    world.put(profiles=[{"plugins": plugins}], replicas=3)
    world.run()
    assert world.running() == hash_
    status, reason, message = world.condition(names.DEGRADED)
    assert (status, reason) == ("True", "UnknownPlugin")
    assert message.startswith("spec.profiles[0].plugins.score.enabled[0].name: ")
    assert 'did you mean "ImageLocality"?' in message
    assert world.get(DEPLOYMENTS)["spec"]["replicas"] == 3, "valid fields are applied"


def test_nothing_is_created_for_an_invalid_new_scheduler(world: World) -> None:
    world.put(config={"parallelism": -1})
    world.run()
    assert world.writes == [f"replace status SecondaryScheduler {NAME}"]
    assert world.condition(names.AVAILABLE)[0] == "False"
    assert "spec.config.parallelism" in world.condition(names.DEGRADED)[2]


def test_a_namespace_that_is_not_allowed_is_reported(world: World) -> None:
    world.put(namespace="elsewhere")
    world.run()
    assert world.writes == [f"replace status SecondaryScheduler {NAME}"]
    status, reason, message = world.condition(names.DEGRADED)
    assert (status, reason) == ("True", "NamespaceNotAllowed")
    assert "SECONDARY_NAMESPACES" in message
    assert "secondarySchedulers.namespaces" in message
    assert world.condition(names.AVAILABLE)[0] == "Unknown"


def test_an_allowed_namespace_gets_the_scheduler() -> None:
    world = World(secondary_namespaces=("kube-system", "batch"))
    world.put(namespace="batch")
    world.run()
    assert (DEPLOYMENTS, "batch", NAME) in world.objects
    world.put("other")
    world.run()
    assert "kube-system or batch" in world.condition(names.DEGRADED, "other")[2]
