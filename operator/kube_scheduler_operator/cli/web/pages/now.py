"""The page "now": problems first, and what to do next."""

from __future__ import annotations

from typing import Final

from ...answers.status import Status, read_status
from ..page import ConsoleCluster, Page, Question


async def read(cluster: ConsoleCluster, _question: Question) -> Status:
    return await read_status(cluster.api, cluster.platform)


PAGE: Final = Page(
    name="now",
    title="Now",
    summary="The state of the scheduler, its problems and the next steps, as `status`.",
    type=Status,
    answer=read,
    template="now.html.j2",
    is_live=True,
    fresh=2.0,
)
