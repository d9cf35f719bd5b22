"""Where the pages of a list come from: complete objects, or some fields of each.

Fields come as protobuf and are decoded while they arrive, so that memory does not depend on what
the objects contain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

import aiohttp

from ..base.json_text import TooLargeError
from ..base.limits import DOCUMENT, THREAD_BYTES
from . import protobuf
from .api import LeftOut, ListResult, Object
from .errors import ApiRequest, TooLarge, Unavailable
from .oversized import first_of_list
from .pages import Page, PageSize, page_of
from .protobuf_list import ACCEPT, ACCEPT_METADATA, ListDecoder, Oversized
from .reading import Take, decoded, read_body

T = TypeVar("T")

FIRST_PAGE: Final = 50
"""Objects in the first page of fields; the server encodes up to 75 MiB of the largest ones."""

PAGE_BYTES: Final = 16 * 1024 * 1024
"""Target size of a page of fields in bytes; none of them are kept."""

READ_BYTES: Final = 256 * 1024 * 1024
"""Bytes after which a list with a filter is not continued: a Pod may have 1.5 MiB."""

_METADATA: Final = protobuf.Message(
    protobuf.part(1, "metadata", protobuf.Message(*protobuf.METADATA))
)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a reader keeps of a list in which others may put what it does not need."""

    keep: Callable[[Object], bool]  # whether an object counts
    most_read: int  # the number of objects to read in total


class Client(Protocol):
    """Sends requests."""

    async def take(
        self, request: ApiRequest, params: Mapping[str, str], accept: str, take: Take[T]
    ) -> T:
        """GET what `take` reads of the response; it is called again for each attempt."""


def selected(label_selector: str | None, field_selector: str | None) -> dict[str, str]:
    """Return the query parameters of a selection."""
    selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in selectors.items() if value}


async def take_fields(
    kind: str, fields: protobuf.Message, response: aiohttp.ClientResponse
) -> tuple[Page, int]:
    """Return a page with some fields of each object, and its bytes.

    Raises:
        TooLargeError: it is JSON, and too large.
        ValueError: it is neither valid JSON nor valid protobuf.
    """
    if response.content_type != protobuf.MEDIA_TYPE:
        text = await read_body(response, DOCUMENT)
        return page_of(await decoded(text, DOCUMENT)), len(text)
    objects, size = ListDecoder(), 0
    items: list[Object] = []
    left_out: list[LeftOut] = []
    async for chunk in response.content.iter_any():
        size += len(chunk)
        for element in objects.feed(chunk):
            if isinstance(element, Oversized):
                excess = f"{element.size} bytes"
                left_out.append(LeftOut(kind, element.namespace, element.name, element.uid, excess))
            else:
                items.append(await _object(fields, element))
    objects.close()
    return replace(
        page_of({"metadata": objects.metadata}), items=items, left_out=(*left_out,)
    ), size


async def _object(fields: protobuf.Message, data: bytes) -> Object:
    try:
        if len(data) < THREAD_BYTES:
            return fields.read(data, 0, len(data))
        return await asyncio.to_thread(fields.read, data, 0, len(data))
    except IndexError as error:
        raise protobuf.UnreadableError("an object ends within a field") from error


async def take_first(kind: str, excess: str, response: aiohttp.ClientResponse) -> Page:
    """Return the page of one object that is left out, as PartialObjectMetadataList.

    Raises:
        ValueError: see take_fields.
    """
    if response.content_type != protobuf.MEDIA_TYPE:
        return first_of_list(kind, await read_body(response, DOCUMENT), excess)
    page, _ = await take_fields(kind, _METADATA, response)
    named = [replace(left_out, excess=excess) for left_out in page.left_out]
    for item in page.items:
        metadata = item.get("metadata") or {}
        namespace, uid = metadata.get("namespace") or "", metadata.get("uid") or ""
        named.append(LeftOut(kind, str(namespace), str(metadata.get("name")), str(uid), excess))
    return replace(page, items=(), left_out=tuple(named))


class JsonSource:
    """The pages of one list; implements `pages.PageSource`."""

    def __init__(self, client: Client, request: ApiRequest) -> None:
        self._client = client
        self._request = request
        self._kind = request.resource.kind if request.resource else ""

    async def page(self, params: Mapping[str, str]) -> bytes:
        """Return a page as JSON."""

        async def take(_: ApiRequest, response: aiohttp.ClientResponse) -> bytes:
            return await read_body(response, DOCUMENT)

        return await self._client.take(self._request, params, "application/json", take)

    async def first(self, params: Mapping[str, str], excess: str) -> Page:
        """Return the metadata of the first object, which may be larger than the limit as well."""

        async def take(request: ApiRequest, response: aiohttp.ClientResponse) -> Page:
            return await _readable(request, response, take_first(self._kind, excess, response))

        return await self._client.take(self._request, params, ACCEPT_METADATA, take)


class FieldSource:
    """Pages of one list with some fields of each object."""

    def __init__(self, client: Client, request: ApiRequest, fields: protobuf.Message) -> None:
        self._client = client
        self._request = request
        self._kind = request.resource.kind if request.resource else ""
        self._fields = fields

    async def read(
        self, selection: Mapping[str, str], at_most: int, kept: Kept | None = None, token: str = ""
    ) -> ListResult:
        """Return the first objects, `at_most` that many.

        `selection` has query parameters. `kept` selects the objects that count; with it, the list
        ends with the page that has the last of `at_most`. `token` continues the list from there;
        empty: from its begin.
        """
        most = at_most if kept is None else kept.most_read
        size = PageSize(at_most, min(FIRST_PAGE, at_most))
        items: list[Object] = []
        left_out: tuple[LeftOut, ...] = ()
        params = {**selection, "continue": token} if token else dict(selection)
        read = length = 0
        while True:
            limit = str(min(size.limit, most - read))
            page, bytes_ = await self._page({**params, "limit": limit})
            items += page.items if kept is None else filter(kept.keep, page.items)
            left_out += page.left_out
            received = len(page.items) + len(page.left_out)
            size.received(received, bytes_ / PAGE_BYTES)
            read, length = read + received, length + bytes_
            full = len(items) >= at_most or read >= most
            if not page.more or full or (kept is not None and length >= READ_BYTES):
                return ListResult(items, page.version, left_out, page.more)
            params["continue"] = page.more

    async def _page(self, params: Mapping[str, str]) -> tuple[Page, int]:
        async def take(request: ApiRequest, response: aiohttp.ClientResponse) -> tuple[Page, int]:
            reading = take_fields(self._kind, self._fields, response)
            return await _readable(request, response, reading)

        return await self._client.take(self._request, params, ACCEPT, take)


async def _readable(
    request: ApiRequest, response: aiohttp.ClientResponse, reading: Awaitable[T]
) -> T:
    try:
        return await reading
    except TooLargeError as error:
        raise TooLarge(request, error.excess) from error
    except ValueError as error:
        message = f"the list cannot be read: {error}"
        raise Unavailable(request, status=response.status, message=message) from error
