"""`pending -w` asks kube-scheduler again only if something changed; one context and several."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.cli.cluster import answers
from kube_scheduler_operator.cli.simulation import waiting
from kube_scheduler_operator.simulate.pending import waiting_groups

from ..conftest import Cluster, Done
from .simulated_world import MINE, World


@pytest.fixture
def world(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(answers, "INTERVAL", 0.01)
    monkeypatch.setattr(answers, "_SHARE", 0.0)
    return World(cluster, tmp_path)


async def test_it_prints_again_and_asks_again_only_when_something_changes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    async def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return await waiting_groups(*arguments, **options)

    monkeypatch.setattr(waiting, "waiting_groups", counted)

    async def polled(times: int) -> None:
        seen = len(world.cluster.api.requests("GET", "/nodes"))
        async with asyncio.timeout(50):
            while len(world.cluster.api.requests("GET", "/nodes")) < seen + times:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    running = asyncio.create_task(world.run("pending", "-w", "--fixes", "0"))
    await polled(4)
    assert asked == 1
    world.pod("waits-too", MINE)
    await polled(4)
    assert asked == 2
    world.cluster.api.fail(403, path="/nodes", times=None)
    done: Done = await running
    assert done.code == 1
    assert done.out.count("without a node:") == 2
    assert "the answer has changed" in done.out


async def test_one_answer_for_each_context(world: World) -> None:
    kubeconfig = world.cluster.kubeconfig
    text = kubeconfig.read_text()
    both = "[{name: c, context: {cluster: c, user: u}}, {name: d, context: {cluster: c, user: u}}]"
    kubeconfig.write_text(text.replace("[{name: c, context: {cluster: c, user: u}}]", both))
    _, one = await world.answer("pending")
    code, several = await world.answer("pending", "--context", "c,d")
    assert (code, several) == (0, {"c": one, "d": one})


@pytest.mark.parametrize("flag", [("-w",), ("--all-contexts",), ("--context", "a,b")])
async def test_files_are_one_cluster_that_does_not_change(
    cluster: Cluster, flag: tuple[str, ...]
) -> None:
    done = await cluster.run("pending", "--from-files", "x.yaml", *flag)
    assert done.code == 2
    assert "--from-files is one cluster that does not change" in done.err
