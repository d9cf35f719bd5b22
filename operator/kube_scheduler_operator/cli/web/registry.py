"""The pages of the console, in the order of its navigation."""

from __future__ import annotations

from typing import Final

from .page import Page
from .pages import compare, decides, extenders, now, rollout

PAGES: Final[tuple[Page, ...]] = (
    now.PAGE,
    rollout.PAGE,
    compare.PAGE,
    decides.PAGE,
    extenders.PAGE,
)
