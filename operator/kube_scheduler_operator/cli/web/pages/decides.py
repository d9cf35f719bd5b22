"""The page "what decides": the configuration that runs, with the origin of every setting."""

from __future__ import annotations

from typing import Final

from ...answers.effective import EffectiveConfiguration, effective_of, read_running
from ..page import ConsoleCluster, Page, Question
from ..parameters import SCHEDULER


async def read(cluster: ConsoleCluster, question: Question) -> EffectiveConfiguration:
    scheduler = question[SCHEDULER.name] or None
    return effective_of(await read_running(cluster.api, cluster.platform, scheduler))


PAGE: Final = Page(
    name="decides",
    title="What decides",
    summary="The configuration that runs: plugins by extension point, settings and flags, with "
    "their origins.",
    type=EffectiveConfiguration,
    answer=read,
    template="decides.html.j2",
    parameters=(SCHEDULER,),
)
