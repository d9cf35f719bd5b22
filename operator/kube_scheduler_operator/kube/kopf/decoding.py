"""Makes kopf read lists and watches so that no object can hide the others.

kopf decodes with Python's own decoder, which raises RecursionError for about 1,000 nested levels:
an API server serves ten times as many, and one such object would end every list and watch of its
kind. kopf also reads responses of any size: here, smaller pages are requested until they can be
decoded, and an object that cannot be decoded even alone is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import aiohttp

from ...base.json_text import bounded
from ..api import Object
from ..list_sources import take_first
from ..oversized import Notices
from ..pages import Page, Pages, PageSize
from ..protobuf_list import ACCEPT_METADATA
from ..reading import Lines, abort, decoded, read_body
from .imports import client_api

_notices: Final = Notices()

_sizes: Final[dict[str, PageSize]] = {}
"""The size of pages by the path of a list: kopf requests each page separately."""


def install_decoder() -> None:
    """Make kopf read responses and watch events within limits."""
    decoder = SimpleNamespace(loads=_notices.event)
    vars(client_api).update(json=decoder, get=_get, iter_jsonlines=_lines)


async def _get(url: str, **arguments: Any) -> Any:
    """Replaces kopf's `get`, which reads and decodes all of a response."""
    path, _, query = url.partition("?")
    params = dict(parse_qsl(query, keep_blank_values=True))
    if "limit" not in params:
        return await decoded(await _read(url, arguments))
    size = _sizes.setdefault(path, PageSize(int(params["limit"])))
    page = await Pages(_Source(path, arguments), size).page(params)
    _notices.report(page.left_out)
    return {
        "kind": page.kind,
        "apiVersion": page.api_version,
        "metadata": {"resourceVersion": page.version, "continue": page.more},
        "items": page.items,
    }


async def _read(url: str, arguments: Mapping[str, Any]) -> bytes:
    async with _requested(url, arguments) as response:
        return await read_body(response)


@asynccontextmanager
async def _requested(
    url: str, arguments: Mapping[str, Any]
) -> AsyncIterator[aiohttp.ClientResponse]:
    response = await client_api.request(method="get", url=url, **arguments)
    async with response:
        try:
            yield response
        finally:
            abort(response)


class _Source:
    """The pages of a list of kopf; implements `pages.PageSource`."""

    def __init__(self, path: str, arguments: Mapping[str, Any]) -> None:
        self._path = path
        self._arguments = arguments

    async def page(self, params: Mapping[str, str]) -> bytes:
        """Return a page as JSON."""
        return await _read(f"{self._path}?{urlencode(params)}", self._arguments)

    async def first(self, params: Mapping[str, str], excess: str) -> Page:
        """Return the metadata of the first object."""
        arguments = {**self._arguments, "headers": {"Accept": ACCEPT_METADATA}}
        async with _requested(f"{self._path}?{urlencode(params)}", arguments) as response:
            return await take_first(self._path.rpartition("/")[2], excess, response)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Replaces kopf's `iter_jsonlines`, whose lines have any length."""
    lines = Lines()
    async for data in content.iter_any():
        for line in lines.feed(data):
            yield line
    for line in lines.close():
        yield line


def event_within_limits(event: Object) -> Object:
    """Return an event whose object is not nested too deep to be processed.

    Only custom resources have fields without a schema.
    """
    obj = event["object"]
    if "." not in str(obj.get("apiVersion", "")).partition("/")[0]:
        return event
    kept = bounded(obj)
    return event if kept is obj else {**event, "object": kept}
