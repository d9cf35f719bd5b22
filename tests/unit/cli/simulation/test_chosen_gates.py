"""Feature gates with which kube-scheduler does not start are refused before any answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from kube_scheduler_operator.config.language.schema import DEFAULT_SCHEDULER

from ....imitation import kube_scheduler
from ..conftest import Cluster
from .simulated_world import World
from .test_decided_by import files


@pytest.fixture
def world(cluster: Cluster, tmp_path: Path) -> World:
    made = World(cluster, tmp_path)
    made.group("train", least=2, waiting=1)
    return made


COMMANDS = (
    ("why", "-n", "shop", f"waits-{DEFAULT_SCHEDULER}"),
    ("why", "-n", "shop", "podgroup/train"),
    ("pending",),
    ("simulate", "--replay", "--repeat", "1"),
)
REFUSED = {
    "GenericWorkload": '"GenericWorkload" has no value; write GenericWorkload=true or',
    "apiserver:GenericWorkload=true": 'kube-scheduler has no component "apiserver"; write '
    "GenericWorkload=true",
    "Foo=true": "kube-scheduler 1.35 has no feature gate Foo",
    "GangScheduling=true": "feature gate GangScheduling needs GenericWorkload, which is disabled",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("gates", "message"), REFUSED.items())
async def test_a_gate_that_kube_scheduler_refuses(
    world: World, command: tuple[str, ...], gates: str, message: str
) -> None:
    for source in ((), files(world, kube_scheduler.VERSION)):
        done = await world.run(*command, *source, "--feature-gates", gates)
        assert (done.code, done.out) == (2, "")
        assert "error: --feature-gates: " in done.err
        assert message in done.err


async def test_a_gate_that_kube_scheduler_has(world: World) -> None:
    done = await world.run("pending", "--feature-gates", "kube:GenericWorkload=true")
    assert done.code == 0, done.err
