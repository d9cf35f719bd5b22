"""Reads a list in pages that are small enough to decode, and leaves out objects that are too large.

A page that is too large is requested again with a quarter of its objects, down to one. An object
that is too large alone is left out: the API server is asked for its metadata only, which names it
and has the token of the next page.

Some fields come as protobuf and are decoded while they arrive, so that memory does not depend on
what the objects contain.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import aiohttp

from ..base.json_text import TooLargeError, check_size
from ..base.limits import DOCUMENT, THREAD_BYTES
from ..base.progress import step
from . import protobuf
from .api import LeftOut, ListResult, Object
from .errors import ApiRequest, Gone, TooLarge, Unavailable
from .oversized import first_of_list
from .protobuf_list import ACCEPT, ACCEPT_METADATA, ListReader, decode
from .reading import Loads, Take, decoded, read_body
from .resource import Resource

T = TypeVar("T")

JSON: Final = "application/json"
"""Accept header of complete objects."""

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


_MOST_COUNTED: Final = 10**9
"""A larger remainingItemCount is not one."""

_METADATA: Final = protobuf.Message(
    protobuf.part(1, "metadata", protobuf.Message(*protobuf.METADATA))
)


class Client(Protocol):
    """Sends requests."""

    async def take(
        self, request: ApiRequest, params: Mapping[str, str], accept: str, take: Take[T]
    ) -> T:
        """GET what `take` reads of the response; it is called again for each attempt.

        Raises:
            TooLarge, TooLargeError: the response exceeds its limit (ApiClient, kopf).
        """


def selected(label_selector: str | None, field_selector: str | None) -> dict[str, str]:
    """Return the query parameters of a selection."""
    selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in selectors.items() if value}


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
                async for page in self._shown(selection, resource):
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

    async def _shown(
        self, selection: Mapping[str, str], resource: Resource
    ) -> AsyncGenerator[ListResult, None]:
        """Yield the pages of `read`, and show how far they are."""
        with step(f"reading {resource.plural}") as reading:
            async for page in self.read(selection):
                reading.done += len(page.items) + len(page.left_out)
                reading.total, reading.about = 0, bool(page.remaining)
                if page.remaining:
                    reading.total = reading.done + page.remaining
                yield page

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
            try:
                page = _page_of(await decoded(text, None, self.loads))
            except ValueError as error:
                raise _unreadable(self.request, 200, error) from error
            self.size.received(len(page.items), filled)
            return page

    async def _first(self, params: Mapping[str, str], excess: str) -> ListResult:
        """Return the metadata of the first object, which may be larger than the limit as well."""
        take = _reading(self.request, partial(_take_first, _kind_of(self.request), excess))
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
    take = _reading(request, partial(_take_fields, _kind_of(request), fields))
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


# --- the response with a page -----------------------------------------------------------------


def _page_of(page: Any) -> ListResult:
    """Return a page as the API server sends it.

    Raises:
        ValueError: this is not a list.
    """
    if not isinstance(page, dict):
        raise ValueError("the API server returned a list that is not an object")
    metadata, items = page.get("metadata") or {}, page.get("items") or []
    if not isinstance(metadata, dict):
        raise ValueError("its metadata is not an object")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("its items are not objects")
    return ListResult(
        items,
        str(metadata.get("resourceVersion") or ""),
        more=str(metadata.get("continue") or ""),
        remaining=_count(metadata.get("remainingItemCount")),
        kind=str(page.get("kind") or ""),
        api_version=str(page.get("apiVersion") or ""),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < _MOST_COUNTED else 0


async def _take_fields(
    kind: str, fields: protobuf.Message, response: aiohttp.ClientResponse
) -> tuple[ListResult, int]:
    """Return a page with some fields of each object, and its bytes.

    Raises:
        TooLargeError: it is JSON, and too large.
        ValueError: it is neither valid JSON nor valid protobuf.
    """
    if response.content_type != protobuf.MEDIA_TYPE:
        text = await read_body(response)
        return _page_of(await decoded(text)), len(text)
    reader = ListReader(kind, response.content)
    items: list[Object] = []
    left_out: list[LeftOut] = []
    async for element in reader.objects():
        if isinstance(element, LeftOut):
            left_out.append(element)
        elif len(element) < THREAD_BYTES:
            items.append(decode(fields, element))
        else:
            items.append(await asyncio.to_thread(decode, fields, element))
    page = _page_of({"metadata": reader.metadata})
    return replace(page, items=items, left_out=tuple(left_out)), reader.size


async def _take_first(kind: str, excess: str, response: aiohttp.ClientResponse) -> ListResult:
    """Return the page of one object that is left out, as PartialObjectMetadataList.

    Raises:
        ValueError: see _take_fields.
    """
    if response.content_type != protobuf.MEDIA_TYPE:
        return first_of_list(kind, await read_body(response), excess)
    page, _ = await _take_fields(kind, _METADATA, response)
    named = [replace(left_out, excess=excess) for left_out in page.left_out]
    for item in page.items:
        metadata = item.get("metadata") or {}
        namespace, uid = metadata.get("namespace") or "", metadata.get("uid") or ""
        named.append(LeftOut(kind, str(namespace), str(metadata.get("name")), str(uid), excess))
    return replace(page, items=[], left_out=tuple(named))


def _kind_of(request: ApiRequest) -> str:
    """Return the kind, or its name in URLs if it is not known."""
    return request.resource.kind if request.resource else request.path.rpartition("/")[2]


def _reading(request: ApiRequest, take: Take[T]) -> Take[T]:
    """Return `take`, for which a list that cannot be read is an error of the API."""

    async def readable(response: aiohttp.ClientResponse) -> T:
        try:
            return await take(response)
        except TooLargeError:
            raise
        except ValueError as error:
            raise _unreadable(request, response.status, error) from error

    return readable


def _unreadable(request: ApiRequest, status: int, error: ValueError) -> Unavailable:
    message = f"the list cannot be read: {error}; check that the URL is that of an API server"
    return Unavailable(request, status=status, message=message)
