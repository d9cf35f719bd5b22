"""The page "nodes": how full nodes are, by requests and by measured load, and what still fits."""

from __future__ import annotations

import asyncio
from typing import Final

from ....simulate.node_answer import NodesAnswer
from ....simulate.node_room import nodes_answer
from ....simulate.read_cluster import read_nodes
from ...cluster.connection import client
from ..page import ConsoleCluster, Page, Question
from ..simulations import apart


async def _answer(cluster: ConsoleCluster, _question: Question) -> NodesAnswer:
    async def read() -> NodesAnswer:
        async with client(cluster.api.credentials) as api:
            world = await read_nodes(api, None)
            now = api.clock.now()
        return await asyncio.to_thread(nodes_answer, world, now)

    return await apart(read)


PAGE: Final = Page(
    name="nodes",
    title="Nodes",
    summary="What nodes have free, by requests and by measured load, and how fragmented it is.",
    type=NodesAnswer,
    answer=_answer,
    template="nodes.html.j2",
    fresh=15.0,
    limit=60.0,
)
