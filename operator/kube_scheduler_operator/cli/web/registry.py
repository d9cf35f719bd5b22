"""The pages of the console, in the order of its navigation."""

from __future__ import annotations

from typing import Final

from .page import Page
from .pages import now

PAGES: Final[tuple[Page, ...]] = (now.PAGE,)

BY_NAME: Final = {page.name: page for page in PAGES}
