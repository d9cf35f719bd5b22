"""The page "what decides": the configuration that runs, with the origin of every setting."""

from __future__ import annotations

from typing import Final

from ...answers.effective import Effective, effective_of, read_running
from ..page import Cluster, Page, Question
from ..parameters import SCHEDULER


async def read(cluster: Cluster, question: Question) -> Effective:
    scheduler = question[SCHEDULER.name] or None
    return effective_of(await read_running(cluster.api, cluster.platform, scheduler))


PAGE: Final = Page(
    name="decides",
    title="What decides",
    summary="The configuration that runs: plugins by extension point, settings and flags, with "
    "their origins.",
    type=Effective,
    answer=read,
    template="decides.html.j2",
    parameters=(SCHEDULER,),
)
