"""Asking over HTTP, with a time-out, a limit, and errors in one sentence."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import orjson

from ..measurement import SourceError

CONNECT_SECONDS: Final = 3.0
"""A node that does not even answer the first packet has gone; others wait for its place."""

SIZE_LIMIT: Final = 4 * 2**20


def session(timeout: float, *, connections: int = 256, per_host: int = 0) -> aiohttp.ClientSession:
    """Connections with limits; to be closed."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=connections, limit_per_host=per_host, ttl_dns_cache=60, force_close=not per_host
        ),
        timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(CONNECT_SECONDS, timeout)),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers={"Accept-Encoding": "identity"},
    )


async def get_json(
    client: aiohttp.ClientSession,
    url: str,
    *,
    data: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | bool = True,
    limit: int = SIZE_LIMIT,
) -> Any:
    """What a URL answers; with `data` it is posted as a form.

    Raises:
        SourceError: no answer, not 200, too long, or not JSON.
    """
    method = "GET" if data is None else "POST"
    try:
        async with client.request(
            method, url, data=data, headers=headers, ssl=tls, allow_redirects=False
        ) as response:
            body = await _read(response, limit)
            if response.status != 200:
                said = " ".join(body[:200].decode("utf-8", "replace").split())
                raise SourceError(f"{url}: {response.status}: {said}")
    except TimeoutError:
        raise SourceError(f"{url}: no answer in time") from None
    except aiohttp.ClientConnectorError as error:
        number = error.os_error.errno  # asyncio's text repeats the address instead of the cause
        why = os.strerror(number) if number else str(error.os_error) or "no connection"
        raise SourceError(f"{url}: {why}") from None
    except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:
        # RuntimeError: the session was closed, because the policy names another source now.
        raise SourceError(f"{url}: {str(error) or type(error).__name__}") from None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise SourceError(f"{url}: the answer is not JSON") from None


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(65536):
        body += chunk
        if len(body) > limit:
            raise SourceError(f"{response.url}: the answer is longer than {limit} bytes")
    return bytes(body)


def at_host(scheme: str, address: str, port: int, path: str) -> str:
    """The URL of something on a node."""
    host = f"[{address}]" if ":" in address else address
    return f"{scheme}://{host}:{port}{path}"
