"""HTTP requests for JSON with a time-out, a size limit, and errors in one sentence."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp
import orjson

from ....base.hosts import url_host
from ....base.json_text import TooLargeError, parse_json
from ....base.limits import METRICS, Size
from ...load.policy import SourceSpec
from ..measurement import MeasurementError
from ..nodes import AnnotatedNode

CONNECT_SECONDS: Final = 3.0
"""Short: a node that does not even accept a connection is down, and others wait for its slot."""

SIZE_LIMIT: Final = 4 * 2**20


def session(timeout: float, *, connections: int = 256, per_host: int = 0) -> aiohttp.ClientSession:
    """Return a session with limits; the caller closes it."""
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
    """GET the JSON of a URL, or POST `data` as a form.

    Raises:
        MeasurementError: no response, a status other than 200, too large, or not JSON; the message
            has nothing of the response but its status code.
    """
    method = "GET" if data is None else "POST"
    try:
        async with client.request(
            method, url, data=data, headers=headers, ssl=tls, allow_redirects=False
        ) as response:
            body = await _read(response, limit)
            if response.status != 200:
                # Never its body: the URL may lead anywhere, and the message is shown in a status.
                raise MeasurementError(f"{url}: the response has status {response.status}")
    except TimeoutError:
        raise MeasurementError(f"{url}: request timed out") from None
    except (aiohttp.ClientSSLError, ssl.SSLError) as error:
        raise MeasurementError(f"{url}: {_tls_error(error)}") from None
    except aiohttp.ClientConnectorError as error:
        number = error.os_error.errno  # asyncio's message has the address instead of the cause
        why = os.strerror(number) if number else str(error.os_error) or "no connection"
        raise MeasurementError(f"{url}: {why}") from None
    except RuntimeError:  # the policy has switched to another source
        raise MeasurementError(f"{url}: the session is closed") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # The text of these errors may quote the response.
        raise MeasurementError(f"{url}: {_connection_error(error)}") from None
    try:
        return parse_json(body, Size(limit, METRICS.values), orjson.loads)
    except TooLargeError as error:
        raise MeasurementError(f"{url}: the response has {error.excess}") from None
    except ValueError:
        raise MeasurementError(f"{url}: the response is not JSON") from None


def _tls_error(error: Exception) -> str:
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    why = getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or "TLS failed"
    return str(why)


def _connection_error(error: Exception) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError):
        return "the connection was closed before the end of the response"
    if isinstance(error, aiohttp.ClientResponseError):
        return "the response is not HTTP"
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else type(error).__name__


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(65536):
        body += chunk
        if len(body) > limit:
            raise MeasurementError(f"{response.url}: the response is larger than {limit} bytes")
    return bytes(body)


class NodeSource:
    """A source that is polled on every node; `now` is the API server's time."""

    warning = ""
    per_node = True

    def __init__(self, source: SourceSpec, now: Callable[[], float]) -> None:
        self._source, self._now = source, now
        self._client = session(source.timeout)

    def url(self, scheme: str, node: AnnotatedNode, path: str) -> str:
        """Return the URL of the source on a node. Raises MeasurementError."""
        if not node.address:
            raise MeasurementError("the node has no address")
        host = url_host(node.address)
        if not host:
            raise MeasurementError("the node's address is neither an IP address nor a DNS name")
        return f"{scheme}://{host}:{self._source.port}{path}"

    async def close(self) -> None:
        await self._client.close()
