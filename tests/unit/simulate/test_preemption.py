"""What `why` reports of preemption, by kube-scheduler's message and by what the world has."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.decisions import UNSCHEDULABLE, PodDecision
from kube_scheduler_operator.simulate.leaving import LeavingPod
from kube_scheduler_operator.simulate.preemption import (
    nomination,
    sentences,
    unblocking,
    victims_on,
)
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]
V37, V38 = Version(1, 37, 2), Version(1, 38)
CPU = "0/3 nodes are available: 3 Insufficient cpu. preemption: "


def _pod(name: str = "p", priority: int = 100, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "app", **metadata},
        "spec": {"priority": priority, "containers": []},
        "status": {"phase": "Pending"},
    }


def _printed(message: str, pod: Object | None = None, world: World | None = None) -> list[str]:
    decision = PodDecision("app/p", reason=UNSCHEDULABLE, message=message)
    return list(sentences(world or World(), pod or _pod(), decision, []))


@pytest.mark.parametrize(
    ("message", "printed"),
    [
        (
            "0/3 nodes are available: 3 No preemption victims found for incoming pod.",
            "Preemption does not help: no pod with a lower priority would make room for it; its "
            "priority is 100.",
        ),
        (
            "0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            "Preemption does not help: without other pods, the same would exclude the nodes.",
        ),
        (
            "0/3 nodes are available: 1 Insufficient cpu, 2 No preemption victims found for "
            "incoming pod.",
            "Preemption does not help: on 2 nodes, no pod has a lower priority; on 1 node, it "
            "would not fit even without all pods of a lower priority (Insufficient cpu).",
        ),
        (
            "not eligible due to preemptionPolicy=Never.",
            "Preemption is not tried: its preemptionPolicy is Never (PriorityClass quiet).",
        ),
    ],
)
def test_the_reason_is_the_one_of_kube_scheduler(message: str, printed: str) -> None:
    pod = _pod()
    pod["spec"]["priorityClassName"] = "quiet"
    assert _printed(CPU + message, pod) == [printed]


def test_nothing_is_printed_without_a_word_of_kube_scheduler() -> None:
    assert _printed("0/3 nodes are available: 3 Insufficient cpu.") == []


def test_a_nominated_pod_names_its_node_and_whom_it_waits_for() -> None:
    world = World()
    gone = {"deletionTimestamp": "2026-03-01T08:05:00Z", "finalizers": ["example.com/cleanup"]}
    for name, priority, metadata in (
        ("old", 0, gone),
        ("as-high", 100, gone),
        ("stays", 0, {}),
    ):
        other = _pod(name, priority, **metadata)
        other["spec"]["nodeName"] = "n"
        world.add(other)
    pod = _pod()
    assert nomination(world, pod) == ""
    pod["status"]["nominatedNodeName"] = "n"
    waits = (
        "is nominated to node n and waits for a pod with a lower priority there: app/old "
        "terminates since 2026-03-01T08:05:00Z and stays until its finalizer "
        "example.com/cleanup is removed"
    )
    assert nomination(world, pod) == waits
    decision = PodDecision("app/p", reason=UNSCHEDULABLE, message="", nominated="n")
    victims = victims_on(world, "n", pod)
    assert list(sentences(world, pod, decision, victims)) == [f"It {waits}."]
    assert list(sentences(world, _pod(), decision, victims)) == [
        f"It {waits.replace('is nominated', 'would be nominated')}."
    ]
    assert list(sentences(world, pod, PodDecision("app/p"), [])) == [
        "It is nominated to node n: kube-scheduler keeps room for it there."
    ]


@pytest.mark.parametrize(
    ("spec", "status", "version", "broken"),
    [
        ({"selector": {"matchLabels": {"app": "web"}}}, {"disruptionsAllowed": 1}, V37, True),
        ({"selector": {"matchLabels": {"app": "web"}}}, {"disruptionsAllowed": 2}, V37, False),
        ({"selector": {"matchLabels": {"app": "db"}}}, {}, V37, False),
        ({"selector": {"matchLabels": {}}}, {"disruptionsAllowed": 1}, V37, False),
        ({"selector": {"matchLabels": {}}}, {"disruptionsAllowed": 1}, V38, True),
        ({}, {"disruptionsAllowed": 1}, V38, False),
        (
            {"selector": {"matchLabels": {"app": "web"}}},
            {"disruptionsAllowed": 1, "disruptedPods": {"a": "2026-03-01T08:05:00Z"}},
            V37,
            False,
        ),
    ],
)
def test_a_budget_that_a_preemption_breaks_is_named(
    spec: Object, status: Object, version: Version, broken: bool
) -> None:
    world = World()
    for name in ("a", "b"):
        other = _pod(name, 0, labels={"app": "web"})
        other["spec"]["nodeName"] = "n"
        world.add(other)
    metadata = {"name": "keep", "namespace": "app"}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    world.add({**kind, "metadata": metadata, "spec": spec, "status": status})
    decision = PodDecision("app/p", node="n", preempted=["app/a", "app/b"])
    printed = list(sentences(world, _pod(), decision, [], version))
    assert printed[0] == (
        "kube-scheduler would preempt 2 pods with a lower priority on n: app/a, app/b."
    )
    assert (
        printed[1:]
        == [
            "That breaks PodDisruptionBudget app/keep: it covers 2 of them and allows 1 disruption."
        ]
        * broken
    )


def test_how_a_pod_that_hangs_ends() -> None:
    held = LeavingPod("app/old", "n", terminates=True, finalizers=("a.io/x", "b.io/y"))
    assert unblocking(held) == (
        "let the controller of finalizers a.io/x, b.io/y finish, or remove the finalizers of Pod "
        "app/old"
    )
    lost = LeavingPod("app/old", "n", terminates=True, node_is_ready=False)
    assert unblocking(lost) == "repair node n, or delete it if it is gone: Pod app/old then ends"
