"""Where the pages of a list come from: complete objects, or some fields of each.

Fields come as protobuf and are decoded while they arrive, so that memory does not depend on what
the objects contain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol, TypeVar

import aiohttp

from ..base.json_text import TooLargeError
from ..base.limits import THREAD_BYTES
from . import protobuf
from .api import LeftOut, ListResult, Object
from .errors import ApiRequest, Unavailable
from .oversized import first_of_list
from .pages import PageSize, page_of
from .protobuf_list import ACCEPT, ACCEPT_METADATA, ListReader, decode
from .reading import Take, decoded, read_body

T = TypeVar("T")

JSON: Final = "application/json"
"""Accept header of complete objects."""

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
) -> tuple[ListResult, int]:
    """Return a page with some fields of each object, and its bytes.

    Raises:
        TooLargeError: it is JSON, and too large.
        ValueError: it is neither valid JSON nor valid protobuf.
    """
    if response.content_type != protobuf.MEDIA_TYPE:
        text = await read_body(response)
        return page_of(await decoded(text)), len(text)
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
    page = page_of({"metadata": reader.metadata})
    return replace(page, items=items, left_out=tuple(left_out)), reader.size


async def take_first(kind: str, excess: str, response: aiohttp.ClientResponse) -> ListResult:
    """Return the page of one object that is left out, as PartialObjectMetadataList.

    Raises:
        ValueError: see take_fields.
    """
    if response.content_type != protobuf.MEDIA_TYPE:
        return first_of_list(kind, await read_body(response), excess)
    page, _ = await take_fields(kind, _METADATA, response)
    named = [replace(left_out, excess=excess) for left_out in page.left_out]
    for item in page.items:
        metadata = item.get("metadata") or {}
        namespace, uid = metadata.get("namespace") or "", metadata.get("uid") or ""
        named.append(LeftOut(kind, str(namespace), str(metadata.get("name")), str(uid), excess))
    return replace(page, items=[], left_out=tuple(named))


class JsonSource:
    """The pages of one list; implements `pages.PageSource`."""

    def __init__(self, client: Client, request: ApiRequest) -> None:
        self._client = client
        self._request = request

    async def page(self, params: Mapping[str, str]) -> bytes:
        return await self._client.take(self._request, params, JSON, read_body)

    async def first(self, params: Mapping[str, str], excess: str) -> ListResult:
        """Return the metadata of the first object, which may be larger than the limit as well."""
        take = _reading(self._request, partial(take_first, _kind(self._request), excess))
        return await self._client.take(self._request, params, ACCEPT_METADATA, take)


class FieldSource:
    """Pages of one list with some fields of each object."""

    def __init__(self, client: Client, request: ApiRequest, fields: protobuf.Message) -> None:
        self._client = client
        self._request = request
        self._take = _reading(request, partial(take_fields, _kind(request), fields))

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
            params["limit"] = str(min(size.limit, most - read))
            page, bytes_ = await self._client.take(self._request, params, ACCEPT, self._take)
            items += page.items if kept is None else filter(kept.keep, page.items)
            left_out += page.left_out
            received = len(page.items) + len(page.left_out)
            size.received(received, bytes_ / PAGE_BYTES)
            read, length = read + received, length + bytes_
            full = len(items) >= at_most or read >= most
            if not page.more or full or (kept is not None and length >= READ_BYTES):
                return replace(page, items=items, left_out=left_out)
            params["continue"] = page.more


def _kind(request: ApiRequest) -> str:
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
            message = f"the list cannot be read: {error}"
            raise Unavailable(request, status=response.status, message=message) from error

    return readable
