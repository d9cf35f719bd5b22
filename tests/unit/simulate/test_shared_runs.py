"""A run is used again only as if it was new."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from kube_scheduler_operator.simulate import shared_runs
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.decisions import PodDecision
from kube_scheduler_operator.simulate.kinds import NODES, PODS
from kube_scheduler_operator.simulate.probes import _read_by_filters
from kube_scheduler_operator.simulate.questions import NO_BINARY
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.shared_runs import SharedRuns
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]
OPTIONS = RunOptions(NO_BINARY, default_configuration())


def pod(name: str, node: str = "", **status: Any) -> Object:
    spec = {"containers": [{"name": "c"}], **({"nodeName": node} if node else {})}
    metadata = {"name": name, "namespace": "n", "uid": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending", **status},
    }


def world_of(*pods: Object) -> World:
    world = World()
    world.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {}})
    for one in pods:
        world.add(one)
    return world


class Unstarted(Run):
    """A run whose kube-scheduler never starts."""

    async def _start(self, options: RunOptions) -> None:
        pass


@pytest.fixture(autouse=True)
def unstarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_runs, "Run", Unstarted)
    monkeypatch.setattr("kube_scheduler_operator.simulate.run.has_unknown_plugins", lambda _: False)


async def are_the_same(
    between: Callable[[Run], Any] = lambda _: None,
    then: World | None = None,
    options: RunOptions = OPTIONS,
) -> bool:
    waiting = pod("waiting")
    async with SharedRuns([waiting]) as runs:
        async with runs.run(world_of(waiting), OPTIONS, [waiting]) as first:
            between(first)
        async with runs.run(then or world_of(waiting), options, [waiting]) as second:
            return first is second


async def test_a_run_without_effects_is_used_again() -> None:
    def try_a_probe(run: Run) -> None:
        probe = pod("probe")
        run.put(PODS, probe)
        run.forget([probe])
        run.put(NODES, {"metadata": {"name": "b"}})
        run.remove(NODES, "b")

    assert await are_the_same(try_a_probe)
    assert await are_the_same(then=world_of()), "other waiting pods are not seen"


async def test_numbers_of_probes_go_on() -> None:
    numbers = []
    async with SharedRuns([]) as runs:
        for _ in range(2):
            async with runs.run(world_of(), OPTIONS, []) as run:
                numbers.append(run.next_number())
    assert numbers == [1, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.bound(pod("p"), "a"),
        lambda run: run.deleted(pod("victim", "a")),
        lambda run: run.put(NODES, {"metadata": {"name": "b"}}),
        lambda run: run.remove(NODES, "a"),
        lambda run: run.put(PODS, pod("left")),
    ],
)
async def test_after_an_effect_another_one_begins(change: Callable[[Run], Any]) -> None:
    assert not await are_the_same(change)


async def test_another_world_and_other_options_have_another_run() -> None:
    assert not await are_the_same(then=world_of(pod("p", "a")))
    assert not await are_the_same(then=world_of(pod("p", nominatedNodeName="a")))
    assert not await are_the_same(options=RunOptions(NO_BINARY, default_configuration(), ("--v",)))


async def test_a_run_in_which_a_question_failed_is_not_used_again() -> None:
    async with SharedRuns([]) as runs:
        with pytest.raises(ValueError, match="failed"):
            async with runs.run(world_of(), OPTIONS, []) as first:
                raise ValueError("failed")
        async with runs.run(world_of(), OPTIONS, []) as second:
            assert first is not second


@pytest.mark.parametrize(
    ("spec", "alike"),
    [
        ({}, True),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, True),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, False),
        ({"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}, False),
        ({"schedulingGroup": {"podGroupName": "g"}}, False),
        ({"workloadRef": {"name": "w"}}, False),
    ],
)
def test_replicas_are_alike_unless_claims_or_groups_are_their_own(
    spec: Object, *, alike: bool
) -> None:
    one, other = pod("one"), pod("other")
    for each in (one, other):
        each["spec"] |= spec
    assert (_read_by_filters(one) == _read_by_filters(other)) is alike
    other["metadata"]["labels"] = {"app": "x"}
    assert _read_by_filters(one) != _read_by_filters(other)


async def test_the_order_in_which_kube_scheduler_names_nodes_is_not_part_of_an_answer() -> None:
    """It begins with another node each time."""
    options = replace(OPTIONS, probes=frozenset({"asked"}))
    run = Unstarted(world_of(), options)
    run.decisions["n/p"] = PodDecision("n/p")
    metadata = {"name": "p", "namespace": "n"}
    asked = {"pod": {"metadata": metadata, "spec": {"schedulerName": "asked"}}}
    await run._spy(orjson.dumps({**asked, "nodenames": ["c", "a", "b"]}))
    assert run.decisions["n/p"].candidates == ["a", "b", "c"]


async def test_a_pod_is_tried_again_after_a_claim_has_changed_meanwhile() -> None:
    """kube-scheduler tries it after a back-off, in which its queue is empty."""
    text = 'running PreBind plugin "DynamicResources": claim n/c got deallocated elsewhere in the '
    run, decision = Unstarted(world_of(), OPTIONS), PodDecision("n/p")
    decision.reason, decision.message = "SchedulerError", f"{text}meantime"
    run.decisions["n/p"] = decision

    async def bind() -> None:
        await asyncio.sleep(0.1)
        decision.node = "a"

    binding = asyncio.create_task(bind())
    await run.settle()
    assert decision.node == "a"
    await binding
