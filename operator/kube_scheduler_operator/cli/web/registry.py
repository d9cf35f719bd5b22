"""The pages of the console, in the order of its navigation."""

from __future__ import annotations

from typing import Final

from .page import Page
from .pages import compare, decides, extenders, nodes, now, rollout, waiting, what_if, why

PAGES: Final[tuple[Page, ...]] = (
    now.PAGE,
    rollout.PAGE,
    compare.PAGE,
    decides.PAGE,
    nodes.PAGE,
    waiting.PAGE_SHOWN,
    waiting.PAGE_CAUSES,
    why.PAGE,
    what_if.PAGE,
    extenders.PAGE,
)
