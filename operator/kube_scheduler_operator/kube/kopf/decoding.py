"""Makes kopf read lists and watches so that no object can hide the others.

kopf decodes with Python's own decoder, which raises RecursionError for about 1,000 nested levels:
an API server serves ten times as many, and one such object would end every list and watch of its
kind. kopf also reads responses of any size: here, smaller pages are requested until they can be
decoded, and an object that cannot be decoded even alone is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode
from weakref import WeakKeyDictionary, WeakSet

import aiohttp

from ...base.json_text import bounded
from ..api import Object
from ..errors import ApiRequest
from ..oversized import Notices, identity
from ..pages import JSON, Pages, PageSize
from ..reading import Lines, Take, abort, decoded, read_body
from .imports import client_api

T = TypeVar("T")

_notices: Final = Notices()

_sizes: Final[dict[str, PageSize]] = {}
"""The size of pages by the path of a list: kopf requests each page separately."""


_request: Final = client_api.request

_connections: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[asyncio.Transport]]] = (
    WeakKeyDictionary()
)


def install_decoder() -> None:
    """Make kopf read responses and watch events within limits."""
    decoder = SimpleNamespace(loads=_notices.event)
    replaced = {"json": decoder, "get": _get, "iter_jsonlines": _lines, "request": _recorded}
    vars(client_api).update(replaced)


def abort_connections() -> None:
    """Abort all connections of the running event loop.

    kopf closes watches gracefully, which may take longer than the loop runs: see `abort`.
    """
    for transport in _connections.pop(asyncio.get_running_loop(), ()):
        transport.abort()


async def _recorded(**arguments: Any) -> aiohttp.ClientResponse:
    """Replaces kopf's `request`, and records the connection."""
    response = await _request(**arguments)
    if (connection := response.connection) and connection.transport:
        loop = asyncio.get_running_loop()
        _connections.setdefault(loop, WeakSet()).add(connection.transport)
    return response


async def _get(url: str, **arguments: Any) -> Any:
    """Replaces kopf's `get`, which reads and decodes all of a response."""
    path, _, query = url.partition("?")
    client, request = _KopfClient(arguments), ApiRequest("list", path)
    params = dict(parse_qsl(query, keep_blank_values=True))
    if "limit" not in params:
        return await decoded(await client.take(request, params, JSON, read_body))
    size = _sizes.setdefault(path, PageSize(int(params["limit"])))
    page = await Pages(client, request, size).page(params)
    _notices.report(page.left_out)
    return {
        "kind": page.kind,
        "apiVersion": page.api_version,
        "metadata": {"resourceVersion": page.resource_version, "continue": page.more},
        "items": [*page.items, *map(identity, page.left_out)],
    }


class _KopfClient:
    """Sends requests with kopf's session; implements `pages.Client`."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = arguments

    async def take(
        self, request: ApiRequest, params: Mapping[str, str], accept: str, take: Take[T]
    ) -> T:
        url = f"{request.path}?{urlencode(params)}" if params else request.path
        response = await client_api.request(
            method="get", url=url, headers={"Accept": accept}, **self._arguments
        )
        async with response:
            try:
                return await take(response)
            finally:
                abort(response)


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
