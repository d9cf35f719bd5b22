"""Edits of SecondarySchedulers, and of the managed one, that wait: held, killed, moved, left."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    KUBE_SCHEDULERS,
    OPERATOR_SETTINGS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
)
from kube_scheduler_operator.operator.model.plan import PlacementQuestion
from kube_scheduler_operator.operator.model.snapshot import PlacementAnswer
from kube_scheduler_operator.operator.status.placement_check import RETRY_SECONDS

from ..expect import condition_of
from .secondary import BAD, PlayedSecondaries
from .test_managed import NAME as MANAGED_NAME
from .test_managed import NEW, ManagedWorld
from .world import World

pytestmark = pytest.mark.presubmit_first

LOST = "12 running pods could no longer be placed: node(s) had untolerated taint(s) (default/a)"
WORSE, BETTER = 7, 8
STRIDE = 4


def decides(question: PlacementQuestion) -> PlacementAnswer:
    """An edit to WORSE loses pods, every other one loses none."""
    if question.after.config.get("percentageOfNodesToScore") == WORSE:
        return PlacementAnswer(question.identity, True, LOST)
    return PlacementAnswer(question.identity, effect="each of 40 pods can be placed as today")


def switch_on(world: World, mode: str) -> None:
    body = {"apiVersion": OPERATOR_SETTINGS.api_version, "kind": OPERATOR_SETTINGS.kind}
    spec = {"placementCheck": {"mode": mode}}
    world.server.create(
        "admin", OPERATOR_SETTINGS, {**body, "metadata": {"name": "cluster"}, "spec": spec}
    )
    world.operator.simulate = decides
    world.run(5.0)


def checked(mode: str = "Gate", schedulers: Sequence[str] = ("batch", "web")) -> PlayedSecondaries:
    """Settled SecondarySchedulers whose edits are checked."""
    world = World(nodes=1, secondary=True)
    played = PlayedSecondaries(world)
    for name in schedulers:
        tune(played, 50, name)
    world.settle(90)
    world.run(60)
    switch_on(world, mode)
    return played


def tune(played: PlayedSecondaries, value: int, name: str = "batch", **config: Any) -> None:
    config = {"percentageOfNodesToScore": value, **config}
    played.put(name, replicas=2, config=config)


def settings(world: World) -> Any:
    return world.server.get(ObjectRef(OPERATOR_SETTINGS, None, "cluster"))


def approve(world: World, name: str, configuration: str) -> None:
    def change(obj: Any) -> None:
        check = obj["spec"]["placementCheck"]
        if name:
            check["approvedSchedulers"] = {name: configuration}
        else:
            check["approved"] = configuration

    world.server.edit("user", OPERATOR_SETTINGS, "cluster", change)


def running(world: World, name: str = "batch") -> Any:
    """The configuration that its Deployment has."""
    namespace = world.platform.target_namespace
    template = world.server.get(DEPLOYMENTS.named(name, namespace))["spec"]["template"]
    content = template["metadata"]["labels"][names.CONFIG_HASH_LABEL]
    config_map = world.server.get(CONFIG_MAPS.named(f"{name}-config-{content}", namespace))
    return json.loads(config_map["data"][names.CONFIG_KEY])


def percentage(world: World, name: str = "batch") -> Any:
    return running(world, name).get("percentageOfNodesToScore")


def state(world: World, name: str = "batch") -> str:
    obj = world.server.get(SECONDARY_SCHEDULERS.named(name))
    return condition_of(obj, names.PLACEMENT_CHECK_PROGRESSING)[1]


def record(played: PlayedSecondaries, name: str = "batch") -> dict[str, Any]:
    return dict(played.status(name).get("placementCheck") or {})


def test_gate_holds_an_edit_and_its_approval_outlives_the_operator() -> None:
    played = checked()
    world = played.world
    tune(played, WORSE)
    world.run(30.0)
    assert (state(world), percentage(world)) == ("Held", 50)
    world.operator.kill()
    approve(world, "batch", record(played)["configuration"])
    world.run(30.0)
    world.operator.start()
    world.run(60.0)
    assert (percentage(world), record(played)["state"]) == (WORSE, "Approved")
    assert played.outcomes("batch")[0] == names.OUTCOME_INSTALLED
    assert len(world.operator.simulations) == 1


@pytest.mark.parametrize(("mode", "value"), [("Warn", WORSE), ("Gate", 50)])
def test_without_an_answer_only_gate_holds_and_others_do_not_wait(mode: str, value: int) -> None:
    played = checked(mode)
    world = played.world

    def answer(question: PlacementQuestion) -> PlacementAnswer | None:
        """That of `batch` hangs, because its image does not exist."""
        profiles = question.after.config.get("profiles") or [{}]
        return None if profiles[0].get("schedulerName") == "batch" else decides(question)

    world.operator.simulate = answer
    tune(played, WORSE)
    tune(played, BETTER, "web")
    world.run(60.0)
    assert (percentage(world), percentage(world, "web")) == (50, BETTER)
    world.tune(BETTER)
    world.run(30.0)
    world.settle(60)
    assert percentage(world) == 50
    world.run(400.0)
    assert percentage(world) == value
    assert state(world) == ("Held" if mode == "Gate" else "Failed")
    if mode == "Gate":
        world.operator.simulate = lambda asked: PlacementAnswer(asked.identity, effect="as today")
        world.run(2 * RETRY_SECONDS + 60.0)
        assert percentage(world) == WORSE


def test_a_content_that_is_refused_returns_to_the_last_good_one_without_a_check() -> None:
    played = checked()
    world = played.world
    tune(played, BETTER, parallelism=BAD)
    world.run(120.0)
    assert played.outcomes("batch")[0] == names.OUTCOME_REFUSED or percentage(world) == 50
    assert running(world).get("parallelism") != BAD
    tune(played, 50)
    world.run(60.0)
    assert (state(world), percentage(world)) == ("Unchanged", 50)
    assert len(world.operator.simulations) == 1


def test_a_deployment_that_is_deleted_returns_while_an_edit_is_held() -> None:
    played = checked()
    world = played.world
    tune(played, WORSE)
    world.run(30.0)
    namespace = world.platform.target_namespace
    world.server.finalize("user", DEPLOYMENTS.named("batch", namespace))
    world.run(60.0)
    assert (state(world), percentage(world)) == ("Held", 50)
    assert played.condition("batch", names.AVAILABLE) == "True"


def test_without_its_memory_an_edit_is_compared_again_and_its_approval_stays() -> None:
    """An operator of an older version writes the status without the field."""
    played = checked()
    world = played.world
    tune(played, WORSE)
    world.run(30.0)
    configuration = record(played)["configuration"]
    hashes = [entry["hash"] for entry in played.status("batch")["history"]]
    for approves in (False, True):
        world.operator.kill()
        world.server.edit(
            "older",
            SECONDARY_SCHEDULERS,
            "batch",
            lambda obj: obj["status"].pop("placementCheck"),
        )
        if approves:
            approve(world, "batch", configuration)
        world.operator.start()
        world.run(60.0)
        assert record(played)["configuration"] == configuration
        assert percentage(world) == (WORSE if approves else 50)
    assert [entry["hash"] for entry in played.status("batch")["history"]][1:] == hashes


@pytest.mark.parametrize("first", range(1, STRIDE + 1))
@pytest.mark.parametrize("mode", ["Warn", "Gate"])
def test_killed_at_any_write_an_edit_of_it_ends_in_the_same_state(mode: str, first: int) -> None:
    def history(kill_at: int | None, *, after: bool) -> PlayedSecondaries:
        played = checked(mode, ("batch",))
        world = played.world
        tune(played, WORSE)
        connection = world.operator.connection
        connection.kill_at = None if kill_at is None else connection.writes + kill_at
        connection.kill_after_effect = after
        if kill_at is not None:
            world.run_until(lambda: not world.operator.alive, 60.0, f"write {kill_at}")
            world.run(1.0)
            world.operator.start()
        world.run(90.0)
        return played

    def outcome(played: PlayedSecondaries) -> Any:
        kept = {key: value for key, value in record(played).items() if key != "started"}
        world = played.world
        return kept, played.outcomes("batch"), percentage(world), state(world)

    expected = outcome(history(None, after=False))
    assert expected[2] == (WORSE if mode == "Warn" else 50)
    for kill_at, after in itertools.product(range(first, 100, STRIDE), (False, True)):
        try:
            played = history(kill_at, after=after)
        except AssertionError as error:
            if f"write {kill_at}" in str(error):
                assert kill_at > 2
                break  # there are no more writes to be killed at
            raise
        assert outcome(played) == expected, f"killed at write {kill_at}, after effect: {after}"


# --- in the place of the control plane's scheduler -----------------------------------------------


def managed() -> ManagedWorld:
    made = ManagedWorld()
    made.begin()
    switch_on(made.world, "Gate")
    made.override(percentageOfNodesToScore=WORSE)
    made.world.run(60.0)
    return made


def managed_record(made: ManagedWorld) -> dict[str, Any]:
    return dict(settings(made.world)["status"].get("placementCheck") or {})


def managed_state(made: ManagedWorld) -> tuple[str, str]:
    kubescheduler = made.world.server.get(KUBE_SCHEDULERS.named("cluster"))
    return condition_of(kubescheduler, names.PLACEMENT_CHECK_PROGRESSING)[:2]


def test_the_managed_scheduler_follows_the_version_while_an_edit_is_held() -> None:
    made = managed()
    world = made.world
    assert managed_state(made) == ("True", "Held")
    assert percentage(world, MANAGED_NAME) is None
    found = world.operator_condition("Progressing")
    assert (found["status"], LOST in found["message"]) == ("True", True)
    world.operator.server_version = "v1.36.1-eks-1"
    world.operator.wake()
    world.run(120.0)
    assert made.images == {NEW}
    assert (managed_state(made), percentage(world, MANAGED_NAME)) == (("True", "Held"), None)
    approve(world, "", managed_record(made)["configuration"])
    world.run(120.0)
    assert percentage(world, MANAGED_NAME) == WORSE


def test_leaving_the_managed_scheduler_never_waits_and_coming_back_does() -> None:
    made = managed()
    world = made.world
    ran = managed_record(made)["ran"]
    world.spec(managementState="Removed")
    world.run(60.0)
    assert not made.exists
    assert managed_record(made) == {"ran": ran}
    world.spec(managementState="Managed")
    world.run(60.0)
    assert managed_state(made) == ("True", "Held")
    namespace = world.platform.target_namespace
    assert world.server.find(DEPLOYMENTS, MANAGED_NAME, namespace) is None
    made.override()
    world.run(5.0)
    made.played.renew(MANAGED_NAME)
    world.run(90.0)
    assert percentage(world, MANAGED_NAME) is None
    assert len(world.operator.simulations) == 1
