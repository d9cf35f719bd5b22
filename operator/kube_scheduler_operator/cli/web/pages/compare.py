"""The page "compare": any two revisions, in words and line by line, as `diff`."""

from __future__ import annotations

from typing import Final

from ...answers.comparison import Comparison, compare
from ..page import ConsoleCluster, Page, Parameter, Question
from ..parameters import SCHEDULER

_PATTERN: Final = r"[0-9a-z]{1,64}"
OLD: Final = Parameter(
    "old",
    "the number of a revision, or the hash of a SecondaryScheduler's configuration; without it, "
    "the one that nodes run, or ran, before the other",
    pattern=_PATTERN,
)
NEW: Final = Parameter(
    "new",
    "the number of a revision, or the hash of a configuration; without it, the latest one",
    pattern=_PATTERN,
)


async def read(cluster: ConsoleCluster, question: Question) -> Comparison:
    scheduler, old, new = (question[each.name] or None for each in (SCHEDULER, OLD, NEW))
    return await compare(cluster.api, cluster.platform, scheduler, old, new)


PAGE: Final = Page(
    name="compare",
    title="Two revisions compared",
    summary="What differs between two revisions, in words and as a patch, as `diff`.",
    type=Comparison,
    answer=read,
    template="compare.html.j2",
    parameters=(SCHEDULER, OLD, NEW),
    part_of="rollout",
)
