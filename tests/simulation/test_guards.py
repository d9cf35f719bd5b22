"""Guard pods stand for schedulers, and a changed kubeconfig starts these again, one by one."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import DISRUPTION_BUDGETS, NODES, PODS

from .world import World

pytestmark = pytest.mark.presubmit_first

BUDGET = "kube-scheduler-guard-pdb"


def adopted(nodes: int) -> World:
    world = World(nodes=nodes)
    world.settle(120)
    world.run_until(lambda: world.guarded() == set(world.machines), 30)
    return world


def budget(world: World) -> int | None:
    found = world.server.find(DISRUPTION_BUDGETS, BUDGET, world.platform.target_namespace)
    return None if found is None else int(found["spec"]["minAvailable"])


def cordon(world: World, node: str, *, unschedulable: bool) -> None:
    world.server.edit(
        "user", NODES, node, lambda obj: obj["spec"].update(unschedulable=unschedulable)
    )


def started(world: World) -> dict[str, str]:
    """The kubeconfig that every scheduler was started with."""
    return {
        name: machine.process.manifest.kubeconfig
        for name, machine in world.machines.items()
        if machine.process is not None
    }


@pytest.mark.parametrize(("nodes", "available"), [(1, None), (2, 1), (3, 2)])
def test_the_budget_allows_one_eviction_at_a_time(nodes: int, available: int | None) -> None:
    world = adopted(nodes)
    assert budget(world) == available


def test_the_budget_follows_the_number_of_nodes() -> None:
    world = adopted(1)
    world.add_node("node-x")
    world.run_until(lambda: budget(world) == 1 and len(world.guarded()) == 2, 120)
    world.remove_node("node-x")
    world.run_until(lambda: budget(world) is None and world.guarded() == {"node-a"}, 120)


def test_a_guard_that_was_evicted_comes_back_unless_its_node_is_cordoned() -> None:
    world = adopted(2)
    pod = world.guard_pods()[0]
    node = pod["spec"]["nodeName"]
    world.server.delete("user", PODS.ref(pod))
    world.run(2)
    world.run_until(lambda: len(world.guarded()) == 2, 20)

    cordon(world, node, unschedulable=True)
    world.run(2)
    assert len(world.guarded()) == 2, "cordoning alone evicts no pod"
    world.server.delete("user", PODS.ref(pod))
    world.run(60)
    assert node not in world.guarded()
    cordon(world, node, unschedulable=False)
    world.run_until(lambda: len(world.guarded()) == 2, 20)


def test_a_failed_guard_is_replaced() -> None:
    world = adopted(1)
    pod = world.guard_pods()[0]
    world.server.replace("kubelet", PODS, {**pod, "status": {"phase": "Failed"}})
    world.run_until(lambda: world.guarded() == {"node-a"}, 30)


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_renewed_kubeconfig_starts_schedulers_again_one_by_one_without_a_revision(
    nodes: int,
) -> None:
    world = adopted(nodes)
    for machine in world.machines.values():
        machine.renew("renewed")
    # That never two are down at once is an invariant.
    world.run_until(lambda: set(started(world).values()) == {"renewed"}, 60 + 60 * nodes)
    world.settle(60)
    assert len(world.revisions) == 1
    processes = {name: machine.process for name, machine in world.machines.items()}
    world.run(120)
    assert processes == {name: machine.process for name, machine in world.machines.items()}
    messages = [message for _, _, message in world.operator.recorder.events]
    reports = [m for m in messages if "scheduler.conf changed" in m]
    assert len(reports) == nodes, reports
    assert world.condition(names.STATIC_PODS_DEGRADED) == "False"


def test_only_the_node_whose_kubeconfig_changed_is_disturbed() -> None:
    world = adopted(3)
    others = {name: world.machines[name].process for name in ("node-a", "node-c")}
    world.machines["node-b"].renew("renewed")
    world.run_until(lambda: started(world).get("node-b") == "renewed", 60)
    world.settle(60)
    assert others == {name: world.machines[name].process for name in others}


def test_a_kubeconfig_that_is_put_back_starts_a_scheduler_once_at_most() -> None:
    world = adopted(1)
    machine = world.machines["node-a"]
    seen = {id(machine.process)}
    machine.renew("renewed")
    world.run(8.5)
    machine.renew("first")
    for _ in range(120):
        world.run(1)
        seen.add(id(machine.process))
    assert len(seen - {id(None)}) <= 2
    assert machine.healthy
    assert world.guarded() == {"node-a"}


def test_a_change_while_the_guard_was_away_is_noticed() -> None:
    world = adopted(1)
    cordon(world, "node-a", unschedulable=True)
    world.run(1)
    world.server.delete("user", PODS.ref(world.guard_pods()[0]))
    world.run(3)
    assert not world.guard_pods()
    world.machines["node-a"].renew("renewed")
    world.run(60)
    assert started(world) == {"node-a": "first"}
    cordon(world, "node-a", unschedulable=False)
    world.run_until(lambda: started(world) == {"node-a": "renewed"}, 60)


def test_a_guard_follows_the_probe_of_its_scheduler() -> None:
    world = adopted(1)
    before = world.guard_pods()[0]
    machine = world.machines["node-a"]
    machine.probe = {"port": 10260, "path": "/readyz"}
    world.server.delete(
        "user", machine.mirror_ref
    )  # the kubelet shows it again, in its current state
    world.run(5)
    world.run_until(lambda: world.guarded() == {"node-a"}, 30)
    container = world.guard_pods()[0]["spec"]["containers"][0]
    assert container["readinessProbe"]["httpGet"] == machine.probe
    assert before["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] == 10259
