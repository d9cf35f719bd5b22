"""An edit that is simulated before it is rolled out: held, approved, reverted, killed, too late."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import OPERATOR_SETTINGS, ObjectRef
from kube_scheduler_operator.operator.model.plan import PlacementQuestion
from kube_scheduler_operator.operator.model.snapshot import PlacementAnswer
from kube_scheduler_operator.operator.status.placement_check import (
    GRACE_SECONDS,
    REPEAT_LIMIT,
    REPEAT_SECONDS,
    RETRY_SECONDS,
)

from ..expect import expect_forgotten
from .invariants import revisions_are_complete_and_in_order
from .scheduler import REFUSAL, STOCK, Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

LOST = "12 running pods could no longer be placed: node(s) had untolerated taint(s) (default/a)"
WORSE, BETTER, REFUSED = 7, 8, 41
SCRIPT = {REFUSED: Behavior(refused=REFUSAL)}
STRIDE = 3


def decides(question: PlacementQuestion) -> PlacementAnswer:
    """An edit to BETTER or REFUSED loses no pod, every other one loses some."""
    found = question.after.config.get("percentageOfNodesToScore")
    if found in (BETTER, REFUSED):
        return PlacementAnswer(question.identity, False, "each of 40 pods can be placed as today")
    return PlacementAnswer(question.identity, True, LOST)


def fails(question: PlacementQuestion) -> PlacementAnswer:
    return PlacementAnswer(question.identity, error="no node is Ready and has room")


def checked(mode: str, nodes: int = 1, *, simulate: Any = decides, **check: Any) -> World:
    """A settled cluster that checks edits."""
    world = World(nodes=nodes, script=SCRIPT)
    world.settle(90)
    body = {"apiVersion": OPERATOR_SETTINGS.api_version, "kind": OPERATOR_SETTINGS.kind}
    spec = {"placementCheck": {"mode": mode, **check}}
    world.server.create(
        "admin", OPERATOR_SETTINGS, {**body, "metadata": {"name": "cluster"}, "spec": spec}
    )
    world.operator.simulate = simulate
    world.run(3.0)
    world.settle(30)
    return world


def settings(world: World) -> dict[str, Any]:
    return dict(world.server.get(ObjectRef(OPERATOR_SETTINGS, None, "cluster")))


def record(world: World) -> dict[str, Any]:
    return dict(settings(world)["status"].get("placementCheck") or {})


def approve(world: World, configuration: str = "") -> None:
    chosen = configuration or record(world)["configuration"]

    def change(obj: Any) -> None:
        obj["spec"]["placementCheck"]["approved"] = chosen

    world.server.edit("user", OPERATOR_SETTINGS, "cluster", change)


def percentage(world: World) -> Any:
    """The value that all nodes run."""
    (number,) = set(world.current().values())
    return json.loads(world.config(number)).get("percentageOfNodesToScore")


def condition(world: World) -> tuple[str, str, str]:
    found = world.full_condition(names.PLACEMENT_CHECK_PROGRESSING)
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def checked_annotation(world: World) -> str:
    annotations = world.revisions[-1].status["metadata"]["annotations"]
    return str(annotations.get(names.PLACEMENT_CHECK_ANNOTATION, ""))


def events(world: World, reason: str) -> list[str]:
    return [message for _, kind, message in world.operator.recorder.events if kind == reason]


def test_nothing_is_checked_by_default() -> None:
    world = checked("Off")
    world.tune(WORSE)
    world.run(1.0)
    world.settle(60)
    assert (percentage(world), world.operator.simulations, condition(world)[0]) == (WORSE, [], "")


@pytest.mark.parametrize("nodes", [1, 3])
def test_gate_holds_an_edit_that_costs_pods_their_place_until_it_is_approved(nodes: int) -> None:
    world = checked("Gate", nodes)
    world.tune(WORSE)
    world.run(5.0)
    assert condition(world)[:2] == ("True", "Simulating")
    world.run(120.0)
    status, reason, message = condition(world)
    assert (status, reason) == ("True", "Held")
    assert LOST in message
    assert "kubectl scheduler rollout approve" in message
    found = world.operator_condition("Progressing")
    assert (found["status"], LOST in found["message"]) == ("True", True)
    assert [revision.number for revision in world.revisions] == [1]
    assert percentage(world) is None
    assert len(events(world, "PlacementCheckHeld")) == 1
    approve(world)
    world.run(1.0)
    world.settle(120)
    assert percentage(world) == WORSE
    assert condition(world) == ("False", "Approved", f"approved: {LOST}")
    assert checked_annotation(world) == f"approved: {LOST}"
    assert len(world.operator.simulations) == 1
    assert len(events(world, "PlacementCheckHeld")) == 1


def test_warn_reports_what_the_edit_changes_and_rolls_it_out() -> None:
    world = checked("Warn")
    world.tune(WORSE)
    world.run(15.0)
    world.settle(60)
    assert percentage(world) == WORSE
    assert condition(world)[:2] == ("False", "Worse")
    assert LOST in checked_annotation(world)
    assert len(events(world, "PlacementCheckPassed")) == 1


def test_gate_does_not_hold_an_edit_that_costs_no_pod_its_place() -> None:
    world = checked("Gate")
    world.tune(BETTER)
    world.run(15.0)
    world.settle(60)
    assert percentage(world) == BETTER
    assert condition(world)[1] == "NothingWorse"
    assert "no Pod loses its place" in checked_annotation(world)


def test_a_new_edit_after_the_approval_is_held_again() -> None:
    world = checked("Gate")
    world.tune(WORSE)
    world.run(15.0)
    first = record(world)["configuration"]
    world.tune(WORSE + 2)
    world.run(15.0)
    approve(world, first)
    world.run(15.0)
    status, reason, message = condition(world)
    assert (status, reason, percentage(world)) == ("True", "Held", None)
    assert "approved of OperatorSettings names another configuration" in message
    approve(world)
    world.run(1.0)
    world.settle(60)
    assert percentage(world) == WORSE + 2
    assert len(events(world, "PlacementCheckHeld")) == 2  # once for each edit


def test_a_held_edit_that_is_reverted_leaves_nothing() -> None:
    world = checked("Gate")
    world.tune(WORSE)
    world.run(15.0)
    world.tune(None)
    world.run(5.0)
    world.settle(30)
    assert condition(world)[:2] == ("False", "Unchanged")
    assert record(world).keys() == {"ran"}
    assert [revision.number for revision in world.revisions] == [1]


def test_what_decides_no_placements_is_rolled_out_while_an_edit_is_held() -> None:
    world = checked("Gate")
    world.tune(WORSE)
    world.run(15.0)
    world.spec(logLevel="Debug")
    world.run(1.0)
    world.settle(60)
    manifest = world.machines["node-a"].manifest
    assert manifest is not None
    assert "-v=4" in manifest.arguments
    assert (percentage(world), condition(world)[1]) == (None, "Held")
    approve(world)
    world.run(1.0)
    world.settle(60)
    assert percentage(world) == WORSE


def test_a_configuration_that_ran_before_is_never_held() -> None:
    world = checked("Warn")
    world.tune(WORSE)
    world.run(15.0)
    world.settle(60)

    def gate(obj: Any) -> None:
        obj["spec"]["placementCheck"]["mode"] = "Gate"

    world.server.edit("user", OPERATOR_SETTINGS, "cluster", gate)
    world.operator.simulate = fails
    world.tune(None)
    world.run(1.0)
    world.settle(60)
    assert percentage(world) is None
    assert "revision 1 ran with this configuration" in checked_annotation(world)
    assert len(world.operator.simulations) == 1


def removed(world: World) -> None:
    """`managementState: Removed`, until the scheduler from before the operator runs again."""
    world.spec(managementState="Removed")
    stock = lambda: not world.entries and not world.revisions  # noqa: E731
    world.run_until(stock, 300.0, "removed")
    world.run(5.0)


def test_leaving_never_waits_and_coming_back_with_an_edit_does() -> None:
    world = checked("Gate")
    world.tune(WORSE)
    world.run(15.0)
    ran = record(world)["ran"]
    removed(world)
    expect_forgotten(settings(world)["status"], placementCheck={"ran": ran})
    world.spec(managementState="Managed")
    world.run(60.0)
    status, reason, message = condition(world)
    assert (status, reason) == ("True", "Held")
    assert "no revision is in use" in message
    assert world.revisions == ()
    assert {machine.manifest for machine in world.machines.values()} == {STOCK}
    assert len(world.operator.simulations) == 1
    approve(world)
    world.run(5.0)
    world.settle(120)
    world.run(2.0)
    assert percentage(world) == WORSE
    assert record(world)["ran"][-1] == record(world)["configuration"]


def test_coming_back_as_before_does_not_wait_and_neither_does_what_was_approved() -> None:
    world = checked("Gate")
    removed(world)
    world.spec(managementState="Managed")
    world.run(5.0)
    world.settle(120)
    assert (percentage(world), world.operator.simulations) == (None, [])
    world.tune(WORSE)
    world.run(15.0)
    approve(world)
    world.run(1.0)
    removed(world)
    assert "approved" in settings(world)["spec"]["placementCheck"]
    world.spec(managementState="Managed")
    world.run(5.0)
    world.settle(120)
    assert percentage(world) == WORSE


def test_an_edit_while_unmanaged_waits_as_well() -> None:
    world = checked("Gate")
    world.spec(managementState="Unmanaged")
    world.run(5.0)
    world.tune(WORSE)
    world.spec(managementState="Managed")
    world.run(20.0)
    assert (condition(world)[:2], percentage(world)) == (("True", "Held"), None)


def test_a_revision_that_is_refused_returns_to_the_last_good_one_without_a_check() -> None:
    world = checked("Gate")
    world.tune(REFUSED)
    world.run(60.0)
    assert world.revisions[-1].outcome == names.OUTCOME_REFUSED
    assert percentage(world) is None
    world.tune(None)
    world.run(1.0)
    world.run(60.0)
    assert condition(world)[:2] == ("False", "Unchanged")
    assert len(world.operator.simulations) == 1


@pytest.mark.parametrize(("mode", "value"), [("Warn", WORSE), ("Gate", None)])
def test_a_simulation_that_cannot_be_run_holds_with_gate_only(mode: str, value: Any) -> None:
    world = checked(mode, simulate=fails)
    world.tune(WORSE)
    world.run(60.0)
    assert percentage(world) == value
    _, reason, message = condition(world)
    assert reason == ("Failed" if mode == "Warn" else "Held")
    assert "no node is Ready and has room" in message
    if mode == "Gate":
        approve(world)
        world.run(60.0)
        assert percentage(world) == WORSE
        assert "is not known" in checked_annotation(world)


def test_a_held_edit_whose_simulation_failed_is_simulated_again() -> None:
    world = checked("Gate", simulate=fails)
    world.tune(BETTER)
    world.run(30.0)
    assert condition(world)[1] == "Held"
    world.operator.simulate = decides
    world.run(2 * RETRY_SECONDS + 30.0)
    assert percentage(world) == BETTER
    assert len(world.operator.simulations) == 2
    assert len(events(world, "PlacementCheckHeld")) == 1


def test_a_held_edit_is_rolled_out_when_its_pods_are_gone() -> None:
    world = checked("Gate", timeoutSeconds=60)
    world.tune(WORSE)
    world.run(REPEAT_SECONDS - 60.0)
    assert len(world.operator.simulations) == 1
    world.operator.simulate = lambda asked: PlacementAnswer(asked.identity, effect="40 as today")
    world.run(120.0)
    world.settle(120)
    assert percentage(world) == WORSE
    assert condition(world) == ("False", "NothingWorse", "no Pod loses its place: 40 as today")
    assert len(world.operator.simulations) == 2
    assert len(events(world, "PlacementCheckHeld")) == 1


def test_repetitions_of_a_held_edit_are_bounded() -> None:
    world = checked("Gate", timeoutSeconds=60)
    world.tune(WORSE)
    world.run(6 * 3600.0)
    number = len(world.operator.simulations)
    assert 3 + 6 * 3600.0 / REPEAT_LIMIT >= number >= 6 * 3600.0 / REPEAT_LIMIT
    assert (condition(world)[1], percentage(world)) == ("Held", None)
    assert len(events(world, "PlacementCheckHeld")) == 1
    world.operator.kill()
    world.operator.start()
    world.run(REPEAT_LIMIT - 60.0)
    assert len(world.operator.simulations) <= number + 1, "a restart does not shorten the waits"


@pytest.mark.parametrize(("mode", "value"), [("Warn", WORSE), ("Gate", None)])
def test_a_simulation_that_never_answers_ends_at_its_limit(mode: str, value: Any) -> None:
    world = checked(mode, simulate=lambda _: None, timeoutSeconds=60)
    world.tune(WORSE)
    world.run(60.0)
    assert condition(world)[:2] == ("True", "Simulating")
    world.run(GRACE_SECONDS + 60.0)
    assert percentage(world) == value
    assert "there was no answer within 60 s" in condition(world)[2]


def test_a_restarted_operator_remembers_what_is_held() -> None:
    world = checked("Gate")
    world.tune(WORSE)
    world.run(15.0)
    world.operator.kill()
    world.operator.start()
    world.run(120.0)
    assert condition(world)[1] == "Held"
    assert len(world.operator.simulations) == 1
    assert len(events(world, "PlacementCheckHeld")) == 1


@pytest.mark.parametrize("first", range(1, STRIDE + 1))
@pytest.mark.parametrize("mode", ["Warn", "Gate"])
def test_killed_at_any_write_a_checked_edit_ends_in_the_same_state(mode: str, first: int) -> None:
    def history(kill_at: int | None, *, after: bool) -> World:
        world = checked(mode)
        world.tune(WORSE)
        connection = world.operator.connection
        connection.kill_at = None if kill_at is None else connection.writes + kill_at
        connection.kill_after_effect = after
        if kill_at is not None:
            alive: Callable[[], bool] = lambda: not world.operator.alive  # noqa: E731
            world.run_until(alive, 60.0, f"write {kill_at}")
            world.run(1.0)
            world.operator.start()
        world.run(60.0)
        return world

    def outcome(world: World) -> Any:
        kept = {key: value for key, value in record(world).items() if key != "started"}
        revisions = [(r.number, r.outcome, r.hash) for r in world.revisions]
        return kept, revisions, percentage(world), condition(world)

    expected = outcome(history(None, after=False))
    assert expected[2] == (WORSE if mode == "Warn" else None)
    for kill_at, after in itertools.product(range(first, 100, STRIDE), (False, True)):
        try:
            world = history(kill_at, after=after)
        except AssertionError as error:
            if f"write {kill_at}" in str(error):
                assert kill_at > 2
                break  # there are no more writes to be killed at
            raise
        revisions_are_complete_and_in_order(world.revisions)
        assert outcome(world) == expected, f"killed at write {kill_at}, after effect: {after}"
