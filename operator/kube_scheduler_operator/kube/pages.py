"""Reads a list in pages as large as can be decoded, and skips objects that cannot.

A page that is too large is requested again with a quarter of its objects, down to one. An object
that is too large alone is left out: the API server is asked for its metadata only, which names it
and has the token of the next page.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ..base.json_text import TooLargeError, check_size
from ..base.limits import DOCUMENT
from .api import LeftOut, ListResult, Object
from .errors import Gone, TooLarge
from .reading import Loads, decoded
from .resource import Resource

LARGER: Final = 5
"""Factor by which pages grow after a list that outlasted the server's snapshot: all of 100,000 Pods
in one page would need more than a GiB of memory."""

SMALLER: Final = 4
"""Factor by which pages shrink after one that was too large, and grow at most after others."""

FIRST: Final = 200
"""Most objects of a first page, whose content is not known yet; 200 Pods fit."""

ROOM: Final = 0.75
"""The part of the limit that a page may fill, estimated from the page before."""


@dataclass(slots=True)
class PageSize:
    """The objects of the next page."""

    most: int
    limit: int = 0
    # the unread objects of the last page that was too large; one of them is the cause, so pages do
    # not grow until they are read
    suspect: int = 0

    def __post_init__(self) -> None:
        self.limit = self.limit or min(self.most, FIRST)

    def enlarge(self, times: int) -> None:
        """Use fewer, larger pages; a page that is too large is noticed."""
        self.most *= times
        self.limit = min(self.limit * times, self.most)

    def received(self, objects: int, filled: float) -> None:
        """Note a page with that many objects, which filled this part of the limit."""
        fits = int(objects * ROOM / filled) if objects and filled else self.most
        self.suspect = max(self.suspect - objects, 0)
        growth = 1 if self.suspect else SMALLER
        self.limit = max(1, min(self.most, growth * self.limit, fits))

    def exceeded(self) -> bool:
        """Note a page that was too large; return whether there is a smaller one."""
        if self.limit == 1:
            return False
        self.suspect = self.limit
        self.limit = max(1, self.limit // SMALLER)
        return True


class PageSource(Protocol):
    """Requests pages of one list."""

    async def page(self, params: Mapping[str, str]) -> bytes:
        """Return a page as JSON. Raises TooLargeError, or an error of the API such as TooLarge."""

    async def first(self, params: Mapping[str, str], excess: str) -> ListResult:
        """Return a page of one object, which is left out: `limit` is "1"."""


@dataclass(slots=True)
class Pages:
    source: PageSource
    size: PageSize
    loads: Loads = json.loads
    _begun: bool = field(default=False, init=False)  # only then can a token be too old

    async def read(self, selection: Mapping[str, str]) -> AsyncGenerator[ListResult, None]:
        """Yield the pages of one list from its begin."""
        self._begun = False
        token = ""
        while True:
            page = await self.page(selection, token)
            self._begun, token = True, page.more
            yield page
            if not token:
                return

    async def whole(
        self,
        selection: Mapping[str, str],
        resource: Resource,
        keep: Callable[[Object], Object] = lambda obj: obj,
    ) -> ListResult:
        """Return all objects of a list, each as `keep` reduces it."""
        while True:
            items: list[Object] = []
            left_out: tuple[LeftOut, ...] = ()
            version = ""
            try:
                async for page in self.read(selection):
                    for item in page.items:
                        item.setdefault("apiVersion", resource.api_version)
                        item.setdefault("kind", resource.kind)
                        items.append(keep(item))
                    left_out += page.left_out
                    version = page.resource_version
            except Gone:
                self.enlarge()
                continue
            return ListResult(items, version, left_out)

    def enlarge(self) -> None:
        """Take larger pages, which are fewer, after the snapshot of the pages was compacted.

        Raises:
            Gone: no page was read; called while it is handled.
        """
        if not self._begun:
            raise
        self.size.enlarge(LARGER)

    async def page(self, selection: Mapping[str, str], token: str = "") -> ListResult:
        """Return one page; `token` is that of the page before."""
        while True:
            params = {**selection, "limit": str(self.size.limit)}
            if token:
                params["continue"] = token
            try:
                text = await self.source.page(params)
                filled = check_size(text, DOCUMENT)
            except (TooLarge, TooLargeError) as error:
                if self.size.exceeded():
                    continue
                self.size.suspect = 0
                self.size.received(1, 0.0)
                return await self.source.first(params, error.excess)
            page = page_of(await decoded(text, None, self.loads))
            self.size.received(len(page.items), filled)
            return page


def page_of(page: Any) -> ListResult:
    """Return a page as the API server sends it.

    Raises:
        ValueError: this is not a list.
    """
    if not isinstance(page, dict):
        raise ValueError("the API server returned a list that is not an object")
    metadata = page.get("metadata") or {}
    return ListResult(
        page.get("items") or [],
        str(metadata.get("resourceVersion") or ""),
        more=str(metadata.get("continue") or ""),
        kind=str(page.get("kind") or ""),
        api_version=str(page.get("apiVersion") or ""),
    )
