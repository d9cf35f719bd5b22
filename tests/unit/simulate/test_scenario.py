"""Changes of a cluster: which pods they displace, and what stays."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.kube.label_selector import matches
from kube_scheduler_operator.simulate.kinds import (
    CSI_NODES,
    NAMES_ITS_NODE,
    NODES,
    PODS,
    RESOURCE_SLICES,
)
from kube_scheduler_operator.simulate.scenario import (
    Scenario,
    ScenarioError,
    add_daemon_set,
    prepare,
)
from kube_scheduler_operator.simulate.utilization import utilization_of
from kube_scheduler_operator.simulate.workloads import read_workloads
from kube_scheduler_operator.simulate.world import World

from ... import builders

OURS = {"default-scheduler"}
HOST = "kubernetes.io/hostname"


def node(name: str, **spec: Any) -> dict[str, Any]:
    labels = {HOST: name, "topology.kubernetes.io/zone": "a"}
    resources = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return builders.node(name, labels=labels, resources=resources, **spec)


def pod(name: str, where: str = "", owner: str = "ReplicaSet", **metadata: Any) -> dict[str, Any]:
    owned = builders.controlled_by(owner) if owner else {}
    return builders.pod(
        name,
        node=where,
        containers=[builders.container({"cpu": "1"})],
        metadata={**owned, **metadata},
        status=builders.pod_status("Running" if where else "Pending"),
    )


def budget(name: str, allowed: int | None, **labels: str) -> dict[str, Any]:
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}},
        "status": status,
    }


def world(*objects: dict[str, Any]) -> World:
    made = World()
    for obj in (node("a"), node("b"), *objects):
        assert made.add(obj)
    made.complete()
    return made


def names(pods: list[dict[str, Any]]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def test_a_drain_moves_pods_of_controllers_and_leaves_those_of_the_node() -> None:
    mirror = pod("static", "a", "Node", annotations={"kubernetes.io/config.mirror": "x"})
    before = world(
        pod("web", "a"),
        pod("daemon", "a", "DaemonSet"),
        mirror,
        pod("bare", "a", ""),
        pod("other", "b"),
    )
    found = prepare(before, Scenario(drain=("a",)), OURS)
    (drain,) = found.drains
    assert drain.moved == ["default/web"]
    assert drain.lost == ["default/bare"]
    assert drain.stay == {"of DaemonSets": 1, "mirror pods": 1}
    assert names(found.pods) == ["web"]
    assert "nodeName" not in found.pods[0]["spec"]
    drained = found.world.get(NODES, "a")
    assert drained is not None
    assert drained["spec"]["unschedulable"]
    assert {name for _, name in found.world.objects[PODS]} == {"daemon", "static", "other"}
    assert before.get(PODS, "web", "default") is not None, "the world itself stays unchanged"


@pytest.mark.parametrize(("allowed", "moves"), [(0, False), (None, False), (1, True)])
def test_a_drain_respects_budgets(allowed: int | None, moves: bool) -> None:
    web = pod("web", "a", labels={"app": "web"})
    found = prepare(
        world(web, budget("pdb", allowed, app="web"), budget("none", 0, app="db")),
        Scenario(drain=("a",)),
        OURS,
    )
    (drain,) = found.drains
    assert bool(drain.moved) == moves
    assert drain.blocked == ({} if moves else {"default/pdb": ["default/web"]})
    assert drain.one_by_one == ({"default/pdb": 1} if moves else {})
    assert (found.world.get(PODS, "web", "default") is None) == moves


def test_a_pod_of_several_budgets_is_not_evicted() -> None:
    web = pod("web", "a", labels={"app": "web"})
    budgets = [budget("one", 1, app="web"), budget("two", 1, app="web")]
    found = prepare(world(web, *budgets), Scenario(drain=("a",)), OURS)
    (drain,) = found.drains
    assert (drain.moved, drain.budgets, drain.blocked) == ([], {}, {})
    assert drain.several == {"default/web": ["default/one", "default/two"]}
    assert found.world.get(PODS, "web", "default") is not None


@pytest.mark.parametrize("scenario", [Scenario(drain=("a",)), Scenario(without=("a",))])
def test_what_terminates_already_is_created_no_more(scenario: Scenario) -> None:
    """The controller of a StatefulSet alone waits until its pod is gone."""
    ending: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    pods = [
        pod("web", "a", **ending),
        pod("bare", "a", "", **ending),
        pod("db", "a", "StatefulSet", **ending),
    ]
    found = prepare(world(*pods), scenario, OURS)
    (drain,) = found.drains or found.removed
    assert drain.ending == ["default/web", "default/bare"]
    assert (drain.moved, drain.lost, names(found.pods)) == (["default/db"], [], ["db"])


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_selector_selects_as_in_the_api(selector: dict[str, Any], selected: bool) -> None:
    assert matches(selector, {"app": "web"}) == selected


def test_a_node_that_is_gone_takes_its_devices_and_its_own_pods_with_it() -> None:
    csi = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "a"}}
    devices = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
               "metadata": {"name": "gpus"}, "spec": {"nodeName": "a"}}  # fmt: skip
    before = world(
        pod("web", "a"), pod("daemon", "a", "DaemonSet"), pod("bare", "a", ""), csi, devices
    )
    found = prepare(before, Scenario(without=("a",)), OURS)
    (gone,) = found.removed
    assert (gone.moved, gone.lost) == (["default/web"], ["default/bare"])
    for resource in (NODES, CSI_NODES, RESOURCE_SLICES):
        assert found.world.get(resource, "a") is None
    assert not found.world.objects[RESOURCE_SLICES]
    assert not found.world.objects[PODS]


def test_new_nodes_are_like_the_old_one_without_its_state() -> None:
    taints = [{"key": "dedicated", "effect": "NoSchedule"},
              {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]  # fmt: skip
    like = node("c", unschedulable=True, taints=taints, providerID="x://c")
    devices = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
               "metadata": {"name": "gpus"},
               "spec": {"nodeName": "c", "pool": {"name": "c"}}}  # fmt: skip
    before = world(
        like, devices, pod("daemon", "c", "DaemonSet"), pod("web", "c"), node("c-new-1"),
        pod("daemon-new-2", "a"),
    )  # fmt: skip
    found = prepare(before, Scenario(add=((2, "c"),)), OURS)
    assert found.added == ["c-new-2", "c-new-3"]
    new = found.world.get(NODES, "c-new-2")
    assert new is not None
    assert new["metadata"]["labels"][HOST] == "c-new-2"
    assert new["spec"] == {"taints": taints[:1]}
    on_new = [
        entry.object() for entry in found.world.objects[PODS].values() if entry.node == "c-new-2"
    ]
    assert names(on_new) == ["daemon_new-2"]
    kept = found.world.get(PODS, "daemon-new-2", "default")
    assert kept is not None, "a Pod of the cluster keeps its place"
    slices = {obj["spec"]["nodeName"] for obj in found.world.all(RESOURCE_SLICES)}
    assert slices == {"c", "c-new-2", "c-new-3"}


def test_pods_of_a_daemon_set_have_names_that_no_pod_has() -> None:
    metadata = {"name": "web", "namespace": "default"}
    daemon_set = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata}
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    (workload,), _ = read_workloads([{**daemon_set, "spec": {"template": template}}], "file")
    prepared = prepare(world(pod("web-simulated-0", "a")), Scenario(), OURS)
    add_daemon_set(prepared, workload, ["a", "b"])
    assert names(prepared.pods) == ["web-simulated-1", "web-simulated-2"]


def test_a_replay_places_running_pods_in_the_order_in_which_they_came() -> None:
    def at(day: int) -> dict[str, str]:
        return {"creationTimestamp": f"2026-01-0{day}T00:00:00Z"}

    other = pod("other", "b", **at(1))
    other["spec"]["schedulerName"] = "other"
    before = world(
        pod("late", "a", **at(3)), pod("early", "b", **at(1)), pod("waiting", **at(2)),
        pod("daemon", "a", "DaemonSet"), other,
    )  # fmt: skip
    found = prepare(before, Scenario(replay=True, drain=("a",)), OURS)
    assert names(found.pods) == ["early", "waiting", "late"]
    assert found.subject == {"default/early", "default/late"}


def unscheduled(owner: str) -> list[dict[str, Any]]:
    """A Pod of the operator, one that its creator bound to node a, and a static one."""
    return [
        pod("guard", "a", "KubeScheduler"),
        pod("named", "a", owner, managedFields=NAMES_ITS_NODE),
        pod("static", "a", "Node", annotations={"kubernetes.io/config.mirror": "x"}),
    ]


def test_a_replay_leaves_pods_that_no_scheduler_placed() -> None:
    before = world(pod("web", "a"), *unscheduled(""))
    found = prepare(before, Scenario(replay=True), OURS)
    assert found.subject == {"default/web"}
    assert found.unplaced == {"created with spec.nodeName": 2, "mirror pods": 1}
    assert {name for _, name in found.world.objects[PODS]} == {"guard", "named", "static"}
    assert utilization_of(found.world).shares("cpu") == [75.0, 0.0]
    assert utilization_of(found.world).used == 0


@pytest.mark.parametrize(("owner", "lost"), [("ReplicaSet", []), ("", ["default/named"])])
def test_a_controller_that_sets_the_node_creates_its_pods_there_again(
    owner: str, lost: list[str]
) -> None:
    before = world(*unscheduled(owner))
    drained, without = (
        prepare(before, scenario, OURS)
        for scenario in (Scenario(drain=("a",)), Scenario(without=("a",)))
    )
    assert (drained.drains[0].moved, drained.drains[0].lost) == ([], lost)
    assert drained.drains[0].stay == {
        "created with spec.nodeName": 2 - len(lost), "mirror pods": 1
    }  # fmt: skip
    assert (without.removed[0].moved, without.removed[0].lost) == ([], lost)


def test_waiting_pods_compete_and_come_first() -> None:
    before = world(pod("web", "a"), pod("waiting"), pod("leaving", deletionTimestamp="x"))
    found = prepare(before, Scenario(drain=("a",)), OURS)
    assert names(found.pods) == ["waiting", "web"]
    assert found.subject == {"default/web"}


@pytest.mark.parametrize(
    "scenario", [Scenario(drain=("c",)), Scenario(without=("c",)), Scenario(add=((1, "c"),))]
)
def test_an_unknown_node_is_an_error_that_names_the_flag(scenario: Scenario) -> None:
    with pytest.raises(ScenarioError, match=r"^--\S+ c: no node has this name; nodes are a, b$"):
        prepare(world(), scenario, OURS)


def test_utilization_counts_requests_and_nodes_with_pods_of_their_own() -> None:
    found = utilization_of(
        world(pod("web", "a"), pod("web2", "a"), pod("daemon", "b", "DaemonSet"))
    )
    assert found.shares("cpu") == [50.0, 25.0]
    assert found.used == 1
    assert found.fullest == 50.0
    assert found.whole()["cpu"] == 37.5
    changed = found.copy()
    changed.add(pod("web", "a"), "a", -1)
    assert changed.shares("cpu") == [25.0, 25.0]
    assert found.shares("cpu") == [50.0, 25.0]
