"""Secondary schedulers: no needless writes, and none disturbs another scheduler."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
)

from .secondary import BAD, PlayedSecondaries
from .world import World

pytestmark = pytest.mark.presubmit_first

NAMES = ("one", "two", "three")


@pytest.fixture
def secondary() -> PlayedSecondaries:
    """Three settled secondary schedulers, and a settled control plane."""
    world = World(nodes=3, secondary=True)
    secondary = PlayedSecondaries(world)
    for name in NAMES:
        secondary.put(name, replicas=3)
    world.settle(90)
    world.run(60)
    for name in NAMES:
        assert secondary.condition(name, names.AVAILABLE) == "True"
        assert secondary.outcomes(name) == [names.OUTCOME_INSTALLED]
    return secondary


def test_an_hour_without_a_change_is_an_hour_without_a_write(secondary: PlayedSecondaries) -> None:
    world = secondary.world
    writes, events = world.operator.connection.writes, len(world.operator.recorder.events)
    passes = world.operator.passes
    world.run(3600)
    assert world.operator.connection.writes == writes
    assert len(world.operator.recorder.events) == events
    assert world.operator.passes - passes < 3600 / 4, "no pass for each renewal of each Lease"


def test_an_hour_with_one_that_was_refused_is_an_hour_without_a_write(
    secondary: PlayedSecondaries,
) -> None:
    world = secondary.world
    secondary.put("one", replicas=3, config={"parallelism": BAD})
    world.run(240)  # ClusterOperator reports it after two minutes
    assert secondary.outcomes("one") == [names.OUTCOME_INSTALLED, names.OUTCOME_REFUSED]
    assert secondary.condition("one", names.AVAILABLE) == "True"
    writes = world.operator.connection.writes
    world.run(3600)
    assert world.operator.connection.writes == writes


def test_a_restart_and_a_relist_write_nothing(secondary: PlayedSecondaries) -> None:
    world = secondary.world
    writes = world.operator.connection.writes
    for _ in range(5):
        world.operator.kill()
        world.run(7)
        world.operator.start()
        world.run(60)
    for informer in world.operator.informers:
        informer.relist()
    world.run(60)
    assert world.operator.connection.writes == writes


def test_a_rollout_of_the_control_plane_touches_none_of_them(secondary: PlayedSecondaries) -> None:
    world = secondary.world
    before = {name: secondary.status(name) for name in NAMES}
    world.tune(7)
    world.settle(300)
    assert {name: secondary.status(name) for name in NAMES} == before


def test_an_edit_of_one_touches_neither_the_others_nor_the_control_plane(
    secondary: PlayedSecondaries,
) -> None:
    world = secondary.world
    before = {name: secondary.status(name) for name in NAMES}
    revisions = len(world.revisions)
    secondary.put("two", replicas=3, config={"parallelism": 4})
    world.run(60)
    assert secondary.outcomes("two") == [names.OUTCOME_INSTALLED] * 2
    assert {name: secondary.status(name) for name in ("one", "three")} == {
        name: before[name] for name in ("one", "three")
    }
    assert len(world.revisions) == revisions


def test_unmanaged_concerns_static_pods_only(secondary: PlayedSecondaries) -> None:
    world = secondary.world
    world.spec(managementState="Unmanaged")
    world.run(30)
    secondary.put("two", replicas=3, config={"parallelism": 4})
    world.run(60)
    assert secondary.outcomes("two") == [names.OUTCOME_INSTALLED] * 2
    writes = world.operator.connection.writes
    world.run(3600)
    assert world.operator.connection.writes == writes
    secondary.lose_pods("one")
    world.run(30)
    assert secondary.condition("one", names.AVAILABLE) == "False"
    assert secondary.status("one")["readyReplicas"] == 0


@pytest.mark.parametrize("number", range(1, 14))
def test_killed_at_any_write_it_ends_the_same(number: int) -> None:
    world = World(secondary=True)
    secondary = PlayedSecondaries(world)
    world.settle(90)
    connection = world.operator.connection
    connection.kill_at, connection.kill_after_effect = connection.writes + number, number % 2 == 0
    secondary.put("one", replicas=2)
    world.run(30)
    if not world.operator.alive:
        world.operator.start()
    world.run(60)
    assert secondary.outcomes("one") == [names.OUTCOME_INSTALLED]
    assert secondary.condition("one", names.AVAILABLE) == "True"


def test_deleting_a_secondary_scheduler_deletes_all_its_objects(
    secondary: PlayedSecondaries,
) -> None:
    world = secondary.world
    world.server.delete("user", ObjectRef(SECONDARY_SCHEDULERS, None, "one"))
    world.run(60)
    namespace = world.platform.target_namespace
    left = [
        obj["metadata"]["name"]
        for kind in (CONFIG_MAPS, DEPLOYMENTS)
        for obj in world.server.list(kind, namespace)
        if (obj["metadata"].get("labels") or {}).get(names.SECONDARY_LABEL) == "one"
    ]
    assert left == []
    writes = world.operator.connection.writes
    world.run(600)
    assert world.operator.connection.writes == writes
