"""From what a scheduler decides about templates to what can make a node; here it is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.diagnosis import Diagnosis
from kube_scheduler_operator.simulate.kinds import CSI_NODES, NODES, PODS
from kube_scheduler_operator.simulate.new_node_trials import Rejection, Trial, new_nodes
from kube_scheduler_operator.simulate.new_nodes import (
    BLOCKED,
    CANNOT,
    FITS,
    SIZE_UNKNOWN,
    UNKNOWN,
    ComingNode,
    NewNode,
)
from kube_scheduler_operator.simulate.questions import NO_BINARY, read_answer, to_json
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.why import explain
from kube_scheduler_operator.simulate.world import World

from ...new_nodes import (
    POOL,
    READY,
    TYPE,
    ZONE,
    Object,
    autoscaler,
    daemon_set,
    group,
    node,
    node_pool,
    pod,
    requirement,
)

OPTIONS = RunOptions(NO_BINARY, default_configuration())
PREFIX = "simulation_new-"
TAINT = Rejection("taints", "the node has the taint x:NoSchedule, which the pod does not tolerate")
SPREAD = {"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}


class Played:
    """A scheduler that rejects the nodes for which `rejects` has a reason."""

    def __init__(self, rejects: Mapping[str, Sequence[Rejection]] | None = None) -> None:
        self.rejects = rejects or {}  # by a label's value, or "" for all
        self.worlds: list[World] = []

    async def trial(self, world: World) -> Mapping[str, Sequence[Rejection]]:
        self.worlds.append(world)
        found: dict[str, Sequence[Rejection]] = {}
        for one in world.all(NODES):
            values = {"", *one["metadata"]["labels"].values()}
            for value in values & self.rejects.keys():
                found[one["metadata"]["name"]] = self.rejects[value]
        return found

    def templates(self) -> list[list[Object]]:
        return [
            [one for one in world.all(NODES) if one["metadata"]["name"].startswith(PREFIX)]
            for world in self.worlds
        ]


async def ask(
    objects: Sequence[Object], waiting: Object, trial: Trial
) -> tuple[list[NewNode], list[ComingNode]]:
    world = World()
    for obj in (*objects, waiting):
        world.add(obj)
    (found,) = [one for one in world.all(PODS) if one["metadata"]["name"] == "waiting"]
    return await new_nodes(world, found, OPTIONS, trial)


def known(zone: str = "a", **labels: str) -> Object:
    return node(f"n-{zone}", zone, **{POOL: "general", TYPE: "m5.large", **labels})


async def test_nothing_is_tried_without_anything_that_makes_nodes() -> None:
    played = Played()
    assert await ask([node("n")], pod("waiting"), played.trial) == ([], [])
    assert played.worlds == []


async def test_a_pod_without_rules_about_others_is_tried_without_them() -> None:
    alone: Object = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    objects = [
        node_pool(), known(), node("b"), pod("runs", nodeName="n-a"),
        pod("alone", nodeName="b", affinity=alone),
    ]  # fmt: skip
    played = Played()
    await ask(objects, pod("waiting"), played.trial)
    (world,) = played.worlds
    names = {name for _, name in world.objects[NODES]}
    assert {name for name in names if not name.startswith(PREFIX)} == {"b"}
    assert [name for _, name in world.objects[PODS]] == ["alone"]


async def test_a_pod_with_rules_about_others_is_tried_beside_them() -> None:
    played = Played()
    waiting = pod("waiting", topologySpreadConstraints=[SPREAD])
    await ask([node_pool(), known(), pod("runs", nodeName="n-a")], waiting, played.trial)
    assert all(len(world.objects[PODS]) == 2 for world in played.worlds)


async def test_each_zone_is_tried_alone_where_the_pod_spreads() -> None:
    played = Played()
    waiting = pod("waiting", topologySpreadConstraints=[SPREAD])
    await ask([node_pool()], waiting, played.trial)
    zones = [{one["metadata"]["labels"][ZONE] for one in batch} for batch in played.templates()]
    assert zones == [{"a"}, {"b"}]


async def test_templates_that_were_not_tried_leave_the_answer_open() -> None:
    zones = [f"z{number}" for number in range(10)]
    pool = node_pool(template_requirements=[requirement(ZONE, "In", *zones)])
    waiting = pod("waiting", topologySpreadConstraints=[SPREAD])
    ((answer,), _) = await ask([pool], waiting, Played({"": [TAINT]}).trial)
    assert answer.outcome == UNKNOWN
    assert answer.causes[0] == "it could make other nodes, which were not tried"


async def test_one_pool_with_many_templates_takes_no_place_of_another() -> None:
    zones = [f"z{number}" for number in range(6)]
    large = [
        node_pool(f"large-{number}", template_requirements=[requirement(ZONE, "In", *zones)])
        for number in range(20)
    ]
    waiting = pod("waiting", topologySpreadConstraints=[SPREAD])
    answers, _ = await ask([*large, node_pool("small")], waiting, Played().trial)
    assert {one.outcome for one in answers} == {SIZE_UNKNOWN}


async def test_reasons_name_the_nodes_of_the_source() -> None:
    ((answer,), _) = await ask([node_pool()], pod("waiting"), Played({"": [TAINT]}).trial)
    assert answer.outcome == CANNOT
    assert answer.causes == (
        "its nodes have the taint x:NoSchedule, which the pod does not tolerate",
    )


async def test_a_known_type_that_is_too_small_does_not_exclude_larger_ones() -> None:
    small = Rejection("requests", "less than 3 of cpu is free", "cpu")
    played = Played({"m5.large": [small]})
    ((answer,), _) = await ask([node_pool(), known()], pod("waiting", "3"), played.trial)
    assert answer.outcome == SIZE_UNKNOWN
    assert "node n-a (m5.large) has 2 of cpu, and the Pod requests 3" in answer.causes


async def test_drivers_are_those_of_any_node_without_its_limits() -> None:
    driver = {"name": "ebs.csi.aws.com", "allocatable": {"count": 25}}
    csi_node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n-a"},
        "spec": {"drivers": [driver]},
    }
    played = Played()
    await ask([node_pool(), known(), csi_node], pod("waiting"), played.trial)
    (world,), (templates,) = played.worlds, played.templates()
    drivers = {one["metadata"]["name"]: one["spec"]["drivers"] for one in world.all(CSI_NODES)}
    of_known, of_unknown = (drivers[one["metadata"]["name"]] for one in templates)
    assert of_known == [driver]
    assert of_unknown == [{"name": "ebs.csi.aws.com"}]


def test_an_answer_survives_the_way_between_processes() -> None:
    explanation = Diagnosis("shop/waiting", "default-scheduler", ["default-scheduler"])
    explanation.new_nodes = [NewNode("NodePool a", FITS, ("x",), "node n", "1 of cpu", "kubectl")]
    explanation.coming_nodes = [ComingNode("NodeClaim c", "now", "not Launched", FITS)]
    content: Any = to_json({"answer": explanation})
    assert read_answer(explain, content) == explanation


async def test_sentences_about_all_nodes_become_those_about_the_nodes_of_the_source() -> None:
    demands = "the pod's nodeSelector demands"

    async def cause(text: str) -> str:
        rejection = Rejection("other", text)
        ((answer,), _) = await ask([node_pool()], pod("waiting"), Played({"": [rejection]}).trial)
        return answer.causes[0]

    host = f"{demands} the label kubernetes.io/hostname=gone"
    own_name = f"{host}, and a new node has a name of its own"
    assert await cause(f"{host}, which no node has; nodes have a, b") == own_name
    assert await cause(f"{host}, and no node has the label kubernetes.io/hostname") == own_name
    assert await cause(f"{demands} the label app=x, and no node has the label app") == (
        f"{demands} the label app=x, and none of its nodes has the label app; "
        "spec.template.metadata.labels of the NodePool can give it to them"
    )
    runs = "no pod with app=main runs {}, which the pod's affinity demands; some run in ip-1"
    on = runs.format("in kubernetes.io/hostname simulation_new-p0-1")
    assert await cause(on) == runs.format("on a new node")
    assert await cause(f"{demands} the label disk=x, which no node has; nodes have ssd") == (
        f"{demands} the label disk=x, which none of its nodes has"
    )


async def test_a_limit_that_leaves_less_than_the_smallest_node_is_reached() -> None:
    atleast = requirement("karpenter.k8s.aws/instance-cpu", "Gt", "3")
    status = {"resources": {"cpu": "46"}, "conditions": [READY]}
    pool = node_pool(limits={"cpu": "48"}, status=status, template_requirements=[atleast])
    ((answer,), _) = await ask([pool], pod("waiting"), Played().trial)
    assert (answer.outcome, answer.causes) == (
        BLOCKED,
        (
            "spec.limits.cpu is 48, of which 46 is used (status.resources), and a node of it has "
            "at least 4 (karpenter.k8s.aws/instance-cpu Gt 3)",
        ),
    )


async def test_the_disk_of_a_new_node_is_not_that_of_an_instance_type() -> None:
    waiting = pod("waiting")
    requests = {"cpu": "1", "ephemeral-storage": "50G"}
    waiting["spec"]["containers"][0]["resources"]["requests"] = requests
    ((answer,), _) = await ask([node_pool()], waiting, Played().trial)
    assert answer.causes[0].endswith(
        "has 1 of cpu is not known: the list of types is the cloud's; its NodeClass sets whether "
        "the disk has 46.5Gi of ephemeral-storage"
    )


async def test_cluster_autoscaler_expects_the_zones_that_a_group_has() -> None:
    label = {"eks.amazonaws.com/nodegroup": "w"}
    rejection = Rejection("volumes", "the volume demands another zone")
    objects = [node("n1", **label), autoscaler(group("w"))]
    ((answer,), _) = await ask(objects, pod("waiting"), Played({"": [rejection]}).trial)
    assert answer.outcome == CANNOT
    assert answer.causes[1].startswith("cluster-autoscaler expects a new node to be like those of")
    ((answer,), _) = await ask(objects, pod("waiting"), Played({"": [TAINT]}).trial)
    assert not any("expects" in cause for cause in answer.causes)


async def test_a_host_port_of_a_daemon_set_is_taken_on_its_new_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def everywhere(world: World, _: RunOptions, pods: Sequence[Object]) -> list[list[str]]:
        return [[name for _, name in world.objects[NODES]] for _ in pods]

    monkeypatch.setattr("kube_scheduler_operator.simulate.new_node_trials.eligible", everywhere)
    balancer = daemon_set("lb", "10m")
    port = {"containerPort": 80, "hostPort": 80}
    balancer["spec"]["template"]["spec"]["containers"][0]["ports"] = [port]
    waiting = pod("waiting")
    waiting["spec"]["containers"][0]["ports"] = [port]
    ((answer,), _) = await ask([node_pool(), balancer], waiting, Played().trial)
    assert answer.outcome == CANNOT
    assert "DaemonSet lb uses the host port 80/TCP of its nodes" in answer.causes
    ((answer,), _) = await ask([node_pool(), balancer], pod("waiting"), Played().trial)
    assert answer.outcome == SIZE_UNKNOWN
