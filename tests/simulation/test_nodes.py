"""Several control-plane nodes, and what becomes of them."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names

from .scheduler import Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

SLOW, EVICTED, PULL, NEVER_PULLS, CRASHES_LATER, SLOW_TO_START = 43, 46, 47, 48, 45, 49
SCRIPT = {
    SLOW: Behavior(pending_for=8.0, preflight_for=8.0, ready_after=8.0),
    SLOW_TO_START: Behavior(ready_after=20.0),
    EVICTED: Behavior(evictions=2),
    PULL: Behavior(pull_error_for=90.0),
    NEVER_PULLS: Behavior(pull_error_for=1e9),
    CRASHES_LATER: Behavior(lifetimes=(25.0, 0.5)),
}


def adopted(nodes: int = 3) -> World:
    world = World(nodes=nodes, script=SCRIPT)
    world.settle(120)
    return world


def order(world: World, revision: int) -> list[str]:
    """The nodes in the order in which they got permission to move to `revision`."""
    marks = (f"-> revision {revision}",)
    events = [e[2] for e in world.operator.recorder.events if e[1] == "NodeTargetRevisionChanged"]
    return [text.split('"')[1] for text in events if text.endswith(marks)]


def test_nodes_move_one_at_a_time_and_the_leader_last() -> None:
    world = adopted()
    leader = world.leader
    world.tune(7)
    world.run(0.5)
    world.settle(120)
    moved = order(world, 2)
    assert sorted(moved) == ["node-a", "node-b", "node-c"]
    assert moved[-1] == leader


def test_the_node_without_a_healthy_scheduler_moves_first() -> None:
    world = adopted()
    sick = next(name for name in world.machines if name != world.leader)
    machine = world.machines[sick]
    assert machine.manifest is not None
    machine.proven.clear()
    crashing = type(machine.manifest)(
        machine.manifest.revision,
        machine.manifest.hash,
        machine.manifest.image,
        machine.manifest.arguments,
        Behavior(ready_after=None),
    )
    machine.overwrite(crashing)
    world.run(30)
    world.tune(7)
    world.run(0.5)
    world.settle(120)
    assert order(world, 2)[0] == sick


def test_a_node_that_is_not_ready_is_skipped_and_caught_up_later() -> None:
    world = adopted()
    world.machines["node-b"].fail()
    world.run(20)
    world.tune(7)
    world.run(60)
    assert world.current() == {"node-a": 2, "node-b": 1, "node-c": 2}
    progressing = world.full_condition(names.NODE_INSTALLER_PROGRESSING)
    assert progressing["status"] == "True"
    assert "node-b: the node is not Ready" in progressing["message"]
    assert world.condition(names.NODES_DEGRADED) == "True"
    world.machines["node-b"].recover()
    world.settle(60)
    assert set(world.current().values()) == {2}


def on_its_way(world: World) -> str:
    """The node that moves now, or any while all of them prepare."""
    return next((e["nodeName"] for e in world.entries if e.get("targetRevision")), "node-b")


@pytest.mark.parametrize("moment", [2.0, 9.0, 16.0, 18.0, 22.0])
def test_a_node_that_loses_power_during_its_rollout_continues_when_it_is_back(
    moment: float,
) -> None:
    world = adopted(2)
    world.tune(SLOW)
    world.run(moment)
    busy = on_its_way(world)
    world.machines[busy].fail()
    world.run(40)
    world.machines[busy].recover()
    world.run(1)
    world.settle(200)
    assert set(world.current().values()) == {2}


def test_a_node_that_stays_off_during_its_rollout_is_skipped() -> None:
    world = adopted(3)
    world.tune(SLOW)
    world.run_until(lambda: any(e.get("targetRevision") for e in world.entries), 60)
    world.run(1)
    busy = on_its_way(world)
    world.machines[busy].fail()
    world.run(50)
    assert on_its_way(world) == busy, "it may come back"
    others = set(world.machines) - {busy}
    world.run_until(lambda: all(world.current()[name] == 2 for name in others), 120)
    assert world.current()[busy] == 1
    assert world.condition(names.NODES_DEGRADED) == "True"
    world.machines[busy].recover()
    world.settle(200)
    assert set(world.current().values()) == {2}


def test_a_node_that_loses_power_after_permission_does_not_swap_at_the_same_time_as_another() -> (
    None
):
    world = adopted(3)
    world.tune(SLOW_TO_START)
    world.run_until(lambda: bool(permitted(world, 2)), 60)
    busy = on_its_way(world)
    machine = world.machines[busy]
    assert machine.journal is None, "it has not seen its permission yet"
    machine.fail()
    others = [other for name, other in world.machines.items() if name != busy]
    world.run_until(lambda: any(other.swapping for other in others), 120)
    machine.recover()  # that only one swaps at a time is checked at every step from here
    world.run_until(lambda: machine.swapping, 120)
    world.settle(200)
    assert set(world.current().values()) == {2}


def permitted(world: World, revision: int) -> list[str]:
    """The installer pods of a revision that may swap."""
    return [
        pod["metadata"]["name"]
        for pod in world.installer_pods()
        if pod["metadata"]["labels"].get(names.INSTALLER_REVISION_LABEL) == str(revision)
        and names.PERMISSION_ANNOTATION in pod["metadata"].get("annotations", {})
    ]


def test_a_removed_node_is_forgotten() -> None:
    world = adopted()
    world.remove_node("node-b")
    world.run(60)
    assert set(world.current()) == {"node-a", "node-c"}
    assert world.settled()


@pytest.mark.parametrize("moment", [2.0, 9.0, 16.0, 18.0, 22.0])
def test_a_node_that_is_removed_during_its_rollout_does_not_delay_the_others(moment: float) -> None:
    world = adopted()
    world.tune(SLOW)
    world.run(moment)
    busy = on_its_way(world)
    world.remove_node(busy)
    world.run(1)
    world.settle(200)
    assert set(world.current().values()) == {2}
    assert len(world.current()) == 2


def test_a_new_node_gets_the_current_revision() -> None:
    world = adopted(1)
    world.add_node("node-b")
    world.run(1)
    world.settle(60)
    assert world.current() == {"node-a": 1, "node-b": 1}
    assert len(world.machines["node-a"].outcomes) == 1


def test_another_machine_under_the_same_name_starts_from_scratch() -> None:
    world = adopted()
    uid = world.machines["node-b"].uid
    machine = world.replace_node("node-b")
    world.run(1)
    world.settle(120)
    assert machine.shown == 1
    entry = next(e for e in world.entries if e["nodeName"] == "node-b")
    assert entry["nodeUID"] == machine.uid != uid
    assert world.current()["node-b"] == 1


@pytest.mark.parametrize("moment", [2.0, 9.0, 16.0, 22.0])
def test_a_machine_that_is_replaced_during_its_rollout_starts_from_scratch(moment: float) -> None:
    world = adopted(2)
    world.tune(SLOW)
    world.run(moment)
    busy = on_its_way(world)
    world.replace_node(busy)
    world.run(1)
    world.settle(300)
    assert set(world.current().values()) == {2}


def test_evicted_installer_pods_are_made_again_after_a_wait() -> None:
    world = adopted(1)
    world.tune(EVICTED)
    world.run(5)
    assert world.condition(names.NODE_INSTALLER_DEGRADED) == "True"
    assert "low on resource" in world.full_condition(names.NODE_INSTALLER_DEGRADED)["message"]
    entry = world.entries[0]
    assert entry["lastFailedCount"] == 1
    assert entry["lastFailedReason"] == names.REASON_INSTALLER_FAILED
    world.settle(120)
    assert world.current() == {"node-a": 2}
    assert world.condition(names.NODE_INSTALLER_DEGRADED) == "False"
    pods = {pod["metadata"]["name"] for pod in world.installer_pods()}
    assert "installer-2-retry-2-node-a" in pods


def test_an_image_that_cannot_be_pulled_for_a_while_is_reported_and_waited_for() -> None:
    world = adopted(1)
    world.tune(PULL)
    world.run(30)
    waiting = world.full_condition(names.INSTALLER_POD_WAITING_DEGRADED)
    assert waiting["status"] == "True"
    assert waiting["reason"] in ("ErrImagePull", "ImagePullBackOff")
    assert world.machines["node-a"].healthy, "the old scheduler works meanwhile"
    world.settle(120)
    assert world.condition(names.INSTALLER_POD_WAITING_DEGRADED) == "False"


def test_an_image_that_can_never_be_pulled_is_left_by_the_next_edit() -> None:
    world = adopted(1)
    world.tune(NEVER_PULLS)
    world.run(600)
    assert world.current() == {"node-a": 1}
    world.tune(7)
    world.run(0.5)
    world.settle(60)
    assert world.current() == {"node-a": 3}


def test_an_installer_pod_that_does_not_start_is_reported() -> None:
    world = World(script={49: Behavior(pending_for=100.0)})
    world.settle(60)
    world.tune(49)
    world.run(90)
    pending = world.full_condition(names.INSTALLER_POD_PENDING_DEGRADED)
    assert pending["status"] == "True"
    world.settle(120)
    assert world.condition(names.INSTALLER_POD_PENDING_DEGRADED) == "False"


def test_a_cluster_without_a_control_plane_node_is_reported() -> None:
    world = World(nodes=1, start=False)
    world.remove_node("node-a")
    world.run(60)
    world.operator.start()
    world.run(20)
    assert world.full_condition(names.NODES_DEGRADED)["reason"] == "NoControlPlaneNodes"


def test_scheduling_continues_throughout_a_rollout_over_three_nodes() -> None:
    world = adopted()
    world.tune(SLOW)
    least = 3

    def watch() -> bool:
        nonlocal least
        least = min(least, sum(machine.healthy for machine in world.machines.values()))
        return world.current() == dict.fromkeys(world.current(), 2)

    world.run_until(watch, 200)
    assert least == 2
