"""Reads a list in pages that are small enough to decode, and leaves out objects that are too large.

A page that is too large is requested again with a quarter of its objects, down to one. An object
that is too large alone is left out: the API server is asked for its metadata only, which names it
and has the token of the next page.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from ..base.json_text import TooLargeError, check_size
from ..base.limits import DOCUMENT
from . import protobuf
from .api import LeftOut, ListResult, Object
from .errors import ApiRequest, Gone, TooLarge
from .list_responses import JSON, Client, kind_of, page_of, reading, take_fields, take_first
from .protobuf_list import ACCEPT, ACCEPT_METADATA
from .reading import Loads, decoded, read_body
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

FIRST_PAGE: Final = 50
"""Objects in the first page of fields; the server encodes up to 75 MiB of the largest ones."""

PAGE_BYTES: Final = 16 * 1024 * 1024
"""Target size of a page of fields in bytes; none of them are kept."""

READ_BYTES: Final = 256 * 1024 * 1024
"""Bytes after which a list with a filter is not continued: a Pod may have 1.5 MiB."""


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


@dataclass(slots=True)
class Pages:
    client: Client
    request: ApiRequest
    size: PageSize
    loads: Loads = json.loads
    _begun: bool = field(default=False, init=False)  # only then can a token be too old

    async def read(self, selection: Mapping[str, str]) -> AsyncGenerator[ListResult, None]:
        """Yield the pages of one list from its beginning."""
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
                text = await self.client.take(self.request, params, JSON, read_body)
                filled = check_size(text, DOCUMENT)
            except (TooLarge, TooLargeError) as error:
                if self.size.exceeded():
                    continue
                self.size.suspect = 0
                self.size.received(1, 0.0)
                return await self._first(params, error.excess)
            page = page_of(await decoded(text, None, self.loads))
            self.size.received(len(page.items), filled)
            return page

    async def _first(self, params: Mapping[str, str], excess: str) -> ListResult:
        """Return the metadata of the first object, which may be larger than the limit as well."""
        take = reading(self.request, partial(take_first, kind_of(self.request), excess))
        return await self.client.take(self.request, params, ACCEPT_METADATA, take)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a reader keeps of a list in which others may put what it does not need."""

    keep: Callable[[Object], bool]  # whether an object counts
    most_read: int  # the number of objects to read in total


async def read_fields(
    client: Client,
    request: ApiRequest,
    fields: protobuf.Message,
    selection: Mapping[str, str],
    at_most: int,
    kept: Kept | None = None,
    token: str = "",
) -> ListResult:
    """Return the first objects of a list, `at_most` that many, with some fields of each.

    `selection` has query parameters. `kept` selects the objects that count; with it, the list
    ends with the page that has the last of `at_most`. `token` continues the list from there;
    empty: from its beginning.
    """
    most = at_most if kept is None else kept.most_read
    size = PageSize(at_most, min(FIRST_PAGE, at_most))
    items: list[Object] = []
    left_out: tuple[LeftOut, ...] = ()
    params = {**selection, "continue": token} if token else dict(selection)
    take = reading(request, partial(take_fields, kind_of(request), fields))
    read = length = 0
    while True:
        params["limit"] = str(min(size.limit, most - read))
        page, bytes_ = await client.take(request, params, ACCEPT, take)
        items += page.items if kept is None else filter(kept.keep, page.items)
        left_out += page.left_out
        received = len(page.items) + len(page.left_out)
        size.received(received, bytes_ / PAGE_BYTES)
        read, length = read + received, length + bytes_
        full = len(items) >= at_most or read >= most
        if not page.more or full or (kept is not None and length >= READ_BYTES):
            return replace(page, items=items, left_out=left_out)
        params["continue"] = page.more
