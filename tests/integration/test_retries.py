"""Pods that wait are final when a question is answered: kube-scheduler does not try them again.

Pods that it decides about together make each other schedulable, or not. What it has decided is
compared with what it has decided seconds later.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from cluster import binaries
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.world import World

from ..seeds import number, some_in_presubmit
from .test_kinds_against_binary import VERSIONS
from .test_why import ZONE, node, pod

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]

Object = dict[str, Any]

COUNT: Final = number("KSO_RETRIED_WORLDS", 12, soak=100)
LATER: Final = 2.5
"""Seconds after which kube-scheduler would have tried Pods again: its back-off is one."""
APPS: Final = ("a", "b", "c")


def generate(seed: int) -> tuple[list[Object], list[Object]]:
    """Nodes with little room, and Pods of every kind that others may help, or not."""
    chance = random.Random(f"retries {seed}")
    nodes = [node(f"n{at}", chance.choice("xyz"), amounts={"cpu": f"{chance.randint(1, 3)}"})
             for at in range(4)]  # fmt: skip
    pods = []
    for at in range(chance.randint(8, 16)):
        made = pod(f"p{at}", chance.choice(("100m", "600m", "1500m", "5")))
        spec, app = made["spec"], chance.choice(APPS)
        made["metadata"]["labels"] = {"app": app}
        other = {"labelSelector": {"matchLabels": {"app": chance.choice(APPS)}}}
        match chance.randrange(7):
            case 0:
                spec["affinity"] = {"podAffinity": _required({**other, "topologyKey": ZONE})}
            case 1:
                spec["affinity"] = {"podAntiAffinity": _required({**other, "topologyKey": ZONE})}
            case 2 | 3 as hard:
                when = "DoNotSchedule" if hard == 2 else "ScheduleAnyway"
                spread = {**other, "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": when}
                spec["topologySpreadConstraints"] = [spread]
            case 4:
                spec["nodeSelector"] = {ZONE: chance.choice("xyzw")}
            case 5:
                spec["containers"][0]["ports"] = [{"hostPort": 80, "containerPort": 80}]
        pods.append(made)
    return nodes, pods


def _required(term: Object) -> Object:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


@pytest.fixture(scope="module")
def counts() -> Iterator[Counter[str]]:
    counted: Counter[str] = Counter()
    yield counted
    print(f"\nPods: {dict(counted)}")


@pytest.mark.parametrize("seed", some_in_presubmit(list(range(COUNT)), 2))
@pytest.mark.parametrize("version", VERSIONS)
def test_what_waits_when_a_question_is_answered_waits_later(
    version: str, seed: int, counts: Counter[str]
) -> None:
    binary = Path(binaries.provide(["kube-scheduler"], version)["kube-scheduler"])
    nodes, pods = generate(seed)
    asyncio.run(_compare(RunOptions(binary, default_configuration()), nodes, pods, counts))


async def _compare(
    options: RunOptions, nodes: list[Object], pods: list[Object], counts: Counter[str]
) -> None:
    world = World()
    for obj in nodes:
        world.add(obj)
    world.complete()
    async with Run(world, options) as run:
        decisions = await run.schedule(pods)
        answered = {name: decision.node for name, decision in decisions.items()}
        await asyncio.sleep(LATER)
        assert {name: run.decisions[name].node for name in answered} == answered
        counts["placed"] += sum(map(bool, answered.values()))
        counts["wait"] += sum(not node for node in answered.values())
