"""Users edit, change their minds, and make mistakes."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names

from .invariants import configuration, revisions_are_complete_and_in_order
from .scheduler import REFUSAL, SENTENCE, Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

REFUSED, UNHEALTHY, SLOW, CRASHES, CRASHES_LATER = 41, 42, 43, 44, 45
SCRIPT = {
    REFUSED: Behavior(refused=REFUSAL),
    UNHEALTHY: Behavior(ready_after=None),
    SLOW: Behavior(pending_for=8.0, preflight_for=8.0, ready_after=8.0),
    CRASHES: Behavior(lifetimes=(0.5,)),
    CRASHES_LATER: Behavior(lifetimes=(25.0, 0.5)),
}


def adopted(nodes: int = 1, **kwargs: object) -> World:
    world = World(nodes=nodes, script=SCRIPT, **kwargs)  # type: ignore[arg-type]
    world.settle(90)
    return world


def starts(world: World) -> int:
    """How often kube-scheduler was swapped, by what the nodes remember."""
    return sum(len(machine.outcomes) for machine in world.machines.values())


@pytest.mark.parametrize("nodes", [1, 3])
def test_profile_edit_reaches_every_node(nodes: int) -> None:
    world = adopted(nodes)
    world.profile("HighNodeUtilization")
    world.run(0.5)
    world.settle(120)
    assert set(world.current().values()) == {2}
    assert "MostAllocated" in world.config(2)
    revisions_are_complete_and_in_order(world.revisions)


def test_log_level_edit_is_a_new_revision() -> None:
    world = adopted()
    world.spec(logLevel="Debug")
    world.run(0.5)
    world.settle(60)
    manifest = world.machines["node-a"].manifest
    assert manifest is not None
    assert manifest.revision == 2
    assert "-v=4" in manifest.arguments


def test_operator_log_level_edit_is_not_a_new_revision() -> None:
    world = adopted()
    world.spec(operatorLogLevel="Trace")
    world.run(30)
    assert len(world.revisions) == 1


def test_force_redeployment_reason_makes_a_revision_with_the_same_configuration() -> None:
    world = adopted()
    world.spec(forceRedeploymentReason="2026-01-01, ticket 7")
    world.run(0.5)
    world.settle(60)
    assert world.config(1) == world.config(2)
    assert world.current() == {"node-a": 2}


def test_unknown_profile_stops_before_any_revision() -> None:
    world = adopted()
    world.profile("HighNodeUtilisation")
    world.run(30)
    degraded = world.full_condition(names.TARGET_CONFIG_DEGRADED)
    assert degraded["status"] == "True"
    assert degraded["reason"] == "UnknownProfile"
    assert "HighNodeUtilization" in degraded["message"]
    assert len(world.revisions) == 1
    assert world.condition(names.STATIC_PODS_AVAILABLE) == "True"
    world.profile("HighNodeUtilization")
    world.run(0.5)
    world.settle(60)
    assert world.condition(names.TARGET_CONFIG_DEGRADED) == "False"


def test_a_field_with_an_error_stops_no_other_edit_on_its_way_to_the_nodes() -> None:
    world = adopted(3)
    world.spec(logLevel="Debug", featureGates={"AllAlpha": True})
    world.run(1)
    world.settle(200)
    world.spec(featureGates={"AllAlfa": True}, unsupportedConfigOverrides={"parallelism": 0})
    world.run(5)
    assert len(world.revisions) == 2, "the accepted values stay, so there is nothing to do"
    world.profile("HighNodeUtilization")
    world.run(1)
    world.settle(200)
    assert set(world.current().values()) == {3}
    assert "MostAllocated" in world.config(3)
    for machine in world.machines.values():
        assert machine.manifest is not None
        assert {"--feature-gates=AllAlpha=true", "-v=4"} <= set(machine.manifest.arguments)
    degraded = world.full_condition(names.TARGET_CONFIG_DEGRADED)
    assert "(the value of revision 3 stays in use)" in degraded["message"]
    assert world.operator_condition("Degraded")["status"] == "True"
    world.operator.kill()
    world.operator.start()
    world.run(30)
    assert set(world.current().values()) == {3}, "the API is the only memory"


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_refused_edit_touches_no_node_and_reports_the_schedulers_message(nodes: int) -> None:
    world = adopted(nodes)
    world.tune(REFUSED)
    world.run(60)
    assert set(world.current().values()) == {1}
    assert starts(world) == nodes
    assert world.revision(2).outcome == names.OUTCOME_REFUSED
    degraded = world.full_condition(names.PREFLIGHT_DEGRADED)
    assert degraded["status"] == "True"
    assert SENTENCE in degraded["message"]
    assert world.operator_condition("Degraded")["status"] == "True"
    assert world.condition(names.NODE_INSTALLER_PROGRESSING) == "False"
    assert world.has_event("RevisionRefused")
    running = [p for p in world.installer_pods() if p["status"]["phase"] != "Succeeded"]
    assert running == [], "the refused installer pod is taken away"


@pytest.mark.parametrize("nodes", [1, 3])
def test_undoing_a_refused_edit_restarts_no_scheduler(nodes: int) -> None:
    world = adopted(nodes)
    world.tune(REFUSED)
    world.run(60)
    world.tune(None)
    world.run(60)
    assert world.condition(names.PREFLIGHT_DEGRADED) == "False"
    assert starts(world) == nodes
    assert set(world.current().values()) == {1}
    assert world.status["latestAvailableRevision"] == 2
    assert world.condition(names.NODE_INSTALLER_PROGRESSING) == "False"


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("moment", [0.3, 2.0, 9.0, 15.0])
def test_an_edit_that_is_undone_while_it_is_staged_restarts_no_scheduler(
    nodes: int, moment: float
) -> None:
    world = adopted(nodes)
    world.tune(SLOW)
    world.run(moment)
    world.tune(None)
    world.run(60)
    assert starts(world) == nodes
    assert set(world.current().values()) == {1}
    assert world.condition(names.NODE_INSTALLER_PROGRESSING) == "False"
    assert not [pod for pod in world.installer_pods() if pod["status"]["phase"] != "Succeeded"]
    world.tune(SLOW)
    world.run(1)
    world.settle(200)
    assert world.machines["node-a"].shown == world.status["latestAvailableRevision"] > 1


def test_a_node_that_joins_after_an_undone_edit_gets_the_good_revision() -> None:
    world = adopted(3)
    world.tune(REFUSED)
    world.run(60)
    world.add_node("node-d")
    world.run(60)
    assert set(world.current().values()) == {1}, "also while the mistake stands"
    world.tune(None)
    world.run(1)
    world.add_node("node-e")
    world.run(60)
    assert set(world.current().values()) == {1}
    assert starts(world) == 5
    assert len(world.revisions) == 2


def test_the_next_good_edit_after_a_refused_one_is_rolled_out() -> None:
    world = adopted()
    world.tune(REFUSED)
    world.run(30)
    world.tune(7)
    world.run(0.5)
    world.settle(60)
    assert world.current() == {"node-a": 3}
    assert configuration(world, 3)["percentageOfNodesToScore"] == 7
    revisions_are_complete_and_in_order(world.revisions)


@pytest.mark.parametrize("moment", [0.3, 1.0, 4.0, 9.0, 12.0, 17.0, 18.5, 24.0])
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_second_edit_overtakes_the_first_wherever_that_is(moment: float, nodes: int) -> None:
    world = adopted(nodes)
    world.tune(SLOW)
    world.run(moment)
    world.tune(8)
    world.run(0.5)
    world.settle(200)
    latest = world.status["latestAvailableRevision"]
    assert configuration(world, latest)["percentageOfNodesToScore"] == 8
    revisions_are_complete_and_in_order(world.revisions)
    assert all(revision.outcome for revision in world.revisions)


def test_edits_in_quick_succession_make_few_revisions() -> None:
    world = adopted()
    for percentage in range(1, 21):
        world.tune(percentage)
        world.run(0.05)
    world.settle(60)
    latest = world.status["latestAvailableRevision"]
    assert configuration(world, latest)["percentageOfNodesToScore"] == 20
    assert latest <= 12


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("kind", [UNHEALTHY, CRASHES])
def test_an_edit_that_does_not_get_healthy_is_rolled_back(kind: int, nodes: int) -> None:
    world = adopted(nodes)
    world.tune(kind)
    world.run(150)
    assert set(world.current().values()) == {1}
    assert {machine.shown for machine in world.machines.values()} == {1}
    assert starts(world) == nodes + 1, "only one node tried it"
    assert world.revision(2).outcome == names.OUTCOME_FAILED
    degraded = world.full_condition(names.NODE_INSTALLER_DEGRADED)
    assert degraded["status"] == "True"
    assert "revision 1 runs again" in degraded["message"]
    tried = next(entry for entry in world.entries if entry.get("lastFailedRevision"))
    assert tried["lastFailedReason"] == names.REASON_OPERAND_FALLBACK
    assert tried["lastFallbackCount"] == 1


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_next_good_edit_after_a_rolled_back_one_is_rolled_out(nodes: int) -> None:
    world = adopted(nodes)
    world.tune(UNHEALTHY)
    world.run(100)
    world.tune(9)
    world.run(0.5)
    world.settle(120)
    assert set(world.current().values()) == {3}
    assert world.condition(names.NODE_INSTALLER_DEGRADED) == "False"
    tried = [entry for entry in world.entries if entry.get("lastFailedRevision")]
    assert tried == [], "success is the end of the record of failures"


def test_undoing_a_rolled_back_edit_restarts_no_scheduler() -> None:
    world = adopted()
    world.tune(UNHEALTHY)
    world.run(100)
    before = starts(world)
    world.tune(None)
    world.run(60)
    assert starts(world) == before
    assert world.current() == {"node-a": 1}
    assert world.condition(names.NODE_INSTALLER_DEGRADED) == "False"


def test_a_first_revision_that_is_not_healthy_leaves_the_stock_scheduler() -> None:
    world = World(script=SCRIPT, start=False)
    world.tune(UNHEALTHY)
    world.operator.start()
    world.run(150)
    machine = world.machines["node-a"]
    assert machine.shown == 0
    assert machine.healthy
    assert world.revision(1).outcome == names.OUTCOME_FAILED
    world.tune(None)
    world.run(0.5)
    world.settle(60)
    assert world.current() == {"node-a": 2}


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_failure_after_it_was_healthy_is_followed_by_a_higher_revision_of_the_good_content(
    nodes: int,
) -> None:
    world = adopted(nodes)
    world.tune(CRASHES_LATER)
    world.run(400)
    assert world.revision(2).outcome == names.OUTCOME_FAILED
    assert set(world.current().values()) == {3}
    assert world.config(3) == world.config(1)
    assert world.revision(3).outcome == names.OUTCOME_INSTALLED
    assert all(machine.healthy for machine in world.machines.values())
    assert world.condition(names.NODE_INSTALLER_DEGRADED) == "True", "the edit still stands"
    world.run(600)
    assert len(world.revisions) == 3, "it stays in quarantine"


def test_quarantine_ends_when_an_input_changes() -> None:
    world = adopted()
    world.tune(CRASHES_LATER)
    world.run(200)
    world.tune(10)
    world.run(0.5)
    world.settle(60)
    assert world.current() == {"node-a": 4}
    assert world.condition(names.NODE_INSTALLER_DEGRADED) == "False"
    world.tune(CRASHES_LATER)
    world.run(20)
    assert world.current() == {"node-a": 5}, "it gets another chance"


def test_a_mistake_while_a_failed_revision_runs_does_not_prevent_its_rollback() -> None:
    world = adopted()
    world.tune(CRASHES_LATER)
    world.run_until(lambda: world.current() == {"node-a": 2}, 30)
    world.profile("Nonsense")
    world.run(200)
    assert world.machines["node-a"].healthy
    assert world.config(world.current()["node-a"]) == world.config(1)


def test_a_refused_edit_while_a_failed_revision_runs_does_not_prevent_its_rollback() -> None:
    world = adopted()
    world.tune(CRASHES_LATER)
    world.run_until(lambda: world.current() == {"node-a": 2}, 30)
    world.run(20)
    world.tune(REFUSED)
    world.run(300)
    assert world.machines["node-a"].healthy
    assert world.config(world.current()["node-a"]) == world.config(1)
    revisions = len(world.revisions)
    world.run(300)
    assert len(world.revisions) == revisions


def test_an_unhealthy_edit_on_top_of_a_failed_revision_ends_with_the_good_content() -> None:
    world = adopted()
    world.tune(CRASHES_LATER)
    world.run_until(lambda: world.current() == {"node-a": 2}, 30)
    world.run(26)
    world.tune(UNHEALTHY)
    world.run(900)
    assert world.machines["node-a"].healthy
    assert world.config(world.current()["node-a"]) == world.config(1)


def test_unmanaged_changes_nothing() -> None:
    world = adopted()
    world.spec(managementState="Unmanaged")
    world.run(5)
    world.tune(11)
    world.server.delete("user", world.config_map_ref(names.CONFIG))
    world.run(60)
    assert len(world.revisions) == 1
    assert world.operator_condition("Available")["status"] == "Unknown"
    assert world.operator_condition("Available")["reason"] == "Unmanaged"
    world.spec(managementState="Managed")
    world.run(0.5)
    world.settle(60)
    assert world.current() == {"node-a": 2}
