"""The page "now": problems first, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..page import Cluster, Page, Question


@dataclass(frozen=True, slots=True)
class Now:
    """The state of the scheduler now."""

    platform: str


async def _answer(cluster: Cluster, _question: Question) -> Now:
    return Now(cluster.platform.name)


PAGE: Final = Page(
    name="now",
    title="Now",
    summary="The state of the scheduler, its problems and the next steps.",
    type=Now,
    answer=_answer,
    template="now.html.j2",
    is_live=True,
)
