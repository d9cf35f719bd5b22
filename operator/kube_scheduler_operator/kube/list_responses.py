"""Reads the response with a page of a list: complete objects, some fields of each, or names.

Fields come as protobuf and are decoded while they arrive, so that memory does not depend on what
the objects contain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

import aiohttp

from ..base.json_text import TooLargeError
from ..base.limits import THREAD_BYTES
from . import protobuf
from .api import LeftOut, ListResult, Object
from .errors import ApiRequest, Unavailable
from .oversized import first_of_list
from .protobuf_list import ListReader, decode
from .reading import Take, decoded, read_body

T = TypeVar("T")

JSON: Final = "application/json"
"""Accept header of complete objects."""

_METADATA: Final = protobuf.Message(
    protobuf.part(1, "metadata", protobuf.Message(*protobuf.METADATA))
)


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


def kind_of(request: ApiRequest) -> str:
    """Return the kind, or its name in URLs if it is not known."""
    return request.resource.kind if request.resource else request.path.rpartition("/")[2]


def reading(request: ApiRequest, take: Take[T]) -> Take[T]:
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
