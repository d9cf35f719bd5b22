"""Room that others hold: nominated pods, pods that terminate, and resizes; and preemption's part.

The cluster is in files and the kube-scheduler is real; test_why_against_cluster.py compares a
nominated pod with a real cluster.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.simulate import lifts, probes
from kube_scheduler_operator.simulate.configuration import default_configuration, only
from kube_scheduler_operator.simulate.diagnosis import Diagnosis
from kube_scheduler_operator.simulate.placements import placements
from kube_scheduler_operator.simulate.replicas import Replicas
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.why import explain
from kube_scheduler_operator.simulate.world import World

from .test_why import ZONE, node, pod

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]

Object = dict[str, Any]
Ask = Callable[..., Any]


def one_node(*pods: Object) -> list[Object]:
    return [node("n", "x"), *pods]


def ending(name: str, cpu: str, *finalizers: str) -> Object:
    made = pod(name, cpu, nodeName="n")
    made["metadata"] |= {
        "deletionTimestamp": "2026-03-01T08:05:00Z",
        "deletionGracePeriodSeconds": 30,
        "finalizers": list(finalizers),
    }
    return made


def nominated(name: str, cpu: str, priority: int = 1000, where: str = "n") -> Object:
    made = pod(name, cpu, priority=priority)
    made["status"]["nominatedNodeName"] = where
    return made


def shrinking(name: str, cpu: str, holds: str) -> Object:
    made = pod(name, cpu, nodeName="n")
    made["status"] = {
        "phase": "Running",
        "conditions": [{"type": "PodResizeInProgress", "status": "True"}],
        "containerStatuses": [
            {
                "name": "c",
                "allocatedResources": {"cpu": holds},
                "resources": {"requests": {"cpu": holds}},
            }
        ],
    }
    return made


def world_of(objects: list[Object]) -> World:
    world = World()
    for obj in objects:
        world.add(obj)
    world.complete()
    return world


@pytest.fixture
def options(kube_scheduler_binary: Path) -> RunOptions:
    return RunOptions(kube_scheduler_binary, default_configuration())


@pytest.fixture
def why(options: RunOptions) -> Callable[[list[Object], str], Diagnosis]:
    def ask(objects: list[Object], name: str) -> Diagnosis:
        world = world_of(objects)
        made = next(each for each in objects if each["metadata"]["name"] == name)
        return asyncio.run(explain(world, {**made, "apiVersion": "v1"}, options))

    return ask


@pytest.fixture
def command(
    kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    def run(objects: list[Object], *words: str) -> str:
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        binary = str(kube_scheduler_binary)
        command = [*words, "--from-files", str(path), "--kube-scheduler", binary]
        assert kubectl_plugin(command) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


def test_a_nominated_pod_waits_for_its_victim_and_its_finalizer(command: Ask) -> None:
    cluster = one_node(ending("old", "4", "example.com/cleanup"), nominated("urgent", "4"))
    text = command(cluster, "why", "urgent")
    waits = (
        "is nominated to node n and waits for a pod with a lower priority there: default/old "
        "terminates since 2026-03-01T08:04:30Z and stays until its finalizer "
        "example.com/cleanup is removed"
    )
    assert f"It {waits}." in text
    assert "Preemption does not help" not in text
    repair = (
        "let the controller of finalizer example.com/cleanup finish, or remove the finalizer of "
        "Pod default/old"
    )
    assert f"each was tried):\n  * {repair}: it fits on 1 node then (n)" in text
    document = json.loads(command(cluster, "why", "urgent", "-o", "json"))
    assert document["nominatedNodeName"] == "n"
    assert document["preemption"] == [f"It {waits}."]
    ((awaited,),) = (each["pods"] for each in document["awaited"])
    assert (awaited["pod"], awaited["finalizers"]) == ("default/old", ["example.com/cleanup"])
    listed = command(cluster, "pending")
    assert f"{waits}; Insufficient cpu" in listed
    assert f"helps   default/urgent: {repair}" in listed


def test_a_pod_that_ends_by_itself_needs_no_change(why: Ask) -> None:
    explanation = why(one_node(ending("old", "4"), pod("waiting", "2")), "waiting")
    (awaited,) = explanation.awaited
    assert [each.pod for each in awaited.pods] == ["default/old"]
    assert awaited.nodes == ("n",)
    assert not any("old" in fix.text for fix in explanation.fixes)


def test_a_pod_that_ends_and_the_one_that_is_nominated_to_its_room_are_both_named(
    why: Ask, command: Ask
) -> None:
    cluster = one_node(ending("old", "4", "example.com/cleanup"), nominated("urgent", "4"))
    cluster.append(pod("waiting", "2"))
    explanation = why(cluster, "waiting")
    (awaited,) = explanation.awaited
    assert [each.pod for each in awaited.pods] == ["default/old", "default/urgent"]
    assert not any("finalizer" in fix.text for fix in explanation.fixes)  # that alone does not help
    assert (
        "kube-scheduler keeps room for a nominated pod of the same or a higher priority: "
        "default/urgent on n. Without, and once pod default/old has ended (default/old terminates "
        "since 2026-03-01T08:04:30Z and stays until its finalizer example.com/cleanup is removed), "
        "it fits on 1 node (n): this was tried."
    ) in command(cluster, "why", "waiting")


def test_only_the_pods_whose_end_makes_room_are_named(why: Ask) -> None:
    cluster = one_node(ending("large", "3"), pod("waiting", "2"))
    other = ending("elsewhere", "1")
    other["spec"]["nodeName"] = "m"
    cluster += [node("m", "x"), other, pod("stays", "3", nodeName="m")]
    (awaited,) = why(cluster, "waiting").awaited
    assert [each.pod for each in awaited.pods] == ["default/large"]
    assert awaited.nodes == ("n",)


@pytest.mark.parametrize(("priority", "fits"), [(1000, False), (999, False), (1001, True)])
def test_a_nominated_pod_holds_its_room_against_its_priority_and_less(
    why: Ask, command: Ask, priority: int, fits: bool
) -> None:
    waiting = pod("waiting", "2", priority=priority, preemptionPolicy="Never")
    cluster = one_node(nominated("urgent", "3"), waiting)
    assert why(cluster, "waiting").candidates == (["n"] if fits else [])
    groups = json.loads(command(cluster, "pending", "-o", "json"))["groups"]
    kinds = {name: each["kind"] for each in groups for name in each["pods"]}
    assert kinds == {
        "default/waiting": "queued" if fits else "unschedulable",
        "default/urgent": "queued",  # it is not in its own way
    }


def test_the_pod_whose_room_is_kept_is_named(command: Ask) -> None:
    cluster = one_node(nominated("urgent", "3"), pod("waiting", "2"))
    assert (
        "kube-scheduler keeps room for a nominated pod of the same or a higher priority: "
        "default/urgent on n. Without, it fits on 1 node (n): this was tried."
    ) in command(cluster, "why", "waiting")


def test_a_simulation_keeps_the_room_of_a_nominated_pod(options: RunOptions) -> None:
    """It is not placed before its victim has ended, and nothing else takes the room."""
    waiting = [pod("waiting", "1"), nominated("urgent", "2")]
    world = world_of(one_node(ending("old", "2", "example.com/cleanup"), *waiting))
    names = {"default/waiting", "default/urgent"}
    (outcome,) = asyncio.run(placements(world, options, world.pending(), names, 1))
    assert outcome.placed == {"default/urgent": "n"}  # 2 of 4 are free
    assert list(outcome.pending) == ["default/waiting"] or outcome.placed.keys() == names
    full = world_of(one_node(ending("old", "3", "example.com/cleanup"), *waiting))
    (outcome,) = asyncio.run(placements(full, options, full.pending(), names, 1))
    assert outcome.placed == {}
    assert outcome.pending["default/urgent"].startswith(
        "nominated to node n, where room is not free yet: 0/1 nodes are available: 1 Insufficient "
    )


def test_a_resize_holds_room_until_it_has_ended(command: Ask) -> None:
    cluster = one_node(shrinking("shrinker", "500m", "3500m"), pod("waiting", "2"))
    text = command(cluster, "why", "waiting")
    assert (
        "Once the resize of default/shrinker has ended (it holds 3500m of cpu, and its spec asks "
        "for 500m), it fits on 1 node (n) without a change: this was tried." in text
    )
    assert "  * request 500m of cpu instead of 2: it fits on 1 node then (n)" in text


def test_a_proposed_request_is_one_that_people_write(why: Ask) -> None:
    cluster = [node("n", "x", amounts={"memory": "18181869946"}), pod("waiting")]
    waiting = cluster[1]
    waiting["spec"]["containers"][0]["resources"]["requests"]["memory"] = "20Gi"
    texts = [fix.text for fix in why(cluster, "waiting").fixes]
    assert "request 16.9Gi of memory instead of 20Gi" in texts


def test_a_pod_that_does_not_preempt_names_its_policy(why: Ask) -> None:
    waiting = pod("waiting", "4", priority=900, preemptionPolicy="Never")
    waiting["spec"]["priorityClassName"] = "quiet"
    explanation = why(one_node(pod("low", "4", nodeName="n"), waiting), "waiting")
    assert explanation.preemption == [
        "Preemption is not tried: its preemptionPolicy is Never (PriorityClass quiet)."
    ]


def test_a_preemption_that_breaks_a_budget_names_it(why: Ask) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    cluster = one_node(pod("low", "4", nodeName="n"), pod("waiting", "4", priority=9), budget)
    assert why(cluster, "waiting").preemption == [
        "kube-scheduler would preempt 1 pod with a lower priority on n: default/low.",
        "That breaks PodDisruptionBudget default/keep: it covers 1 of them and allows 0 "
        "disruptions.",
    ]


@pytest.mark.parametrize(
    ("low", "reason"),
    [
        (0, "would not fit even without all pods of a lower priority (Insufficient cpu)"),
        (9, "no pod with a lower priority would make room for it; its priority is 9."),
    ],
)
def test_what_preemption_cannot_do_is_the_reason_of_kube_scheduler(
    why: Ask, low: int, reason: str
) -> None:
    running = [pod("high", "3", nodeName="n", priority=10), pod("low", nodeName="n", priority=low)]
    waiting = pod("waiting", "3", priority=9)
    (sentence,) = why(one_node(*running, waiting), "waiting").preemption
    assert reason in sentence


def test_new_nodes_are_gone_before_the_pod_itself_is_scheduled(why: Ask) -> None:
    """Otherwise kube-scheduler may place it there, and its claim gets a volume.

    The class demands zone b, whose node is full; a node like that of zone a does not help.
    """
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "wait"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": topology,
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "wait",
        },
        "status": {"phase": "Pending"},
    }
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster = [node("a1", "a"), node("b1", "b"), pod("full", "3", nodeName="b1"), storage, claim]
    explanation = why([*cluster, pod("waiting", "2", volumes=volumes)], "waiting")
    assert [fix.text for fix in explanation.fixes if fix.text.startswith("add a node")] == [
        "add a node like b1"
    ]
    assert explanation.decision.message.startswith("0/2 nodes are available")


def test_lifted_pods_are_witnessed_where_two_handlers_take_pods(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kube-scheduler 1.34 has two; the others show the same when they are asked in that way."""
    asked: list[bool] = []
    until_known = lifts.Lifts._until_known

    async def counted(self: Any, made: Sequence[Object], *, known: bool) -> None:
        if made:
            asked.append(known)
        await until_known(self, made, known=known)

    def always(profile: Object, gates: Any, _: World) -> list[Object]:
        return [only(profile, gates, lifts.WITNESS, filters=["NodePorts"])]

    monkeypatch.setattr(lifts.Lifts, "_until_known", counted)
    monkeypatch.setattr(probes, "witness_profiles", always)
    running = [pod(f"r-{number}", "3", f"app-{number}", nodeName="n") for number in range(3)]
    replicas = [pod(f"of-{where}", "8", nodeName=where) for where in ("m", "o")]
    nodes = [node(name, "x", amounts={"cpu": "9"}) for name in ("m", "n", "o")]
    pods = [*running, *replicas]
    world = world_of([*nodes, *pods])
    answers = asyncio.run(
        probes.acceptances(world, replace(options, others=()), pods)  # each fits in its own place
    )
    accepted = [answer.nodes | {answer.own} - {""} for answer in answers]
    assert accepted == [{"n"}, {"n"}, {"n"}, {"m"}, {"o"}]
    # Replicas on several nodes are lifted together.
    assert asked == [True, False, True] * 4


@pytest.mark.parametrize("rule", ["none", "spread", "zones apart", "nodes apart", "both"])
@pytest.mark.parametrize("seed", range(4))
def test_replicas_that_share_a_trial_are_accepted_as_if_each_was_tried_alone(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch, rule: str, seed: int
) -> None:
    """Nodes are full, tainted or not, and have different numbers of replicas."""
    chance = random.Random(seed)
    nodes = [node(f"{zone}{at}", zone, amounts={"cpu": "4"}) for zone in "xyz" for at in range(3)]
    for one in nodes:
        if chance.random() < 0.3:
            one["spec"]["taints"] = [{"key": "full", "effect": "NoSchedule"}]
    pods = []
    for at in range(12):
        where = chance.choice(nodes)["metadata"]["name"]
        pods.append(pod(f"p{at}", chance.choice(("1", "2")), nodeName=where, **_rules(rule)))
    world = world_of([*nodes, *pods])

    def facts() -> list[tuple[bool, bool]]:
        found = asyncio.run(probes.acceptances(world, replace(options, others=()), pods))
        return [
            (bool(answer), each["spec"]["nodeName"] in answer)
            for answer, each in zip(found, pods, strict=True)
        ]

    together = facts()
    monkeypatch.setattr(Replicas, "stand_for_each_other", lambda *_: True)
    assert together == facts()


def _rules(rule: str) -> Object:
    selector = {"matchLabels": {"app": "web"}}
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    key = "kubernetes.io/hostname" if rule == "nodes apart" else ZONE
    term = {"topologyKey": key, "labelSelector": selector}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec: Object = {}
    if rule in ("spread", "both"):
        spec["topologySpreadConstraints"] = [{**spread, "labelSelector": selector}]
    if rule in ("zones apart", "nodes apart", "both"):
        spec["affinity"] = apart
    return spec
