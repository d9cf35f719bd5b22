"""The API client: plain dicts, one error class per decision, and retries of safe requests only.

Typed clients take 10 to 15 times the CPU for decoding, and none of them supports preconditions,
Retry-After and rotated tokens together.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, Self, TypeVar

import aiohttp

from ..base.backoff import Backoff
from ..base.json_text import TooLargeError
from ..base.limits import DOCUMENT, REFUSAL, TEXT, Size
from ..base.progress import Step, step
from . import protobuf
from .api import Body, ListResult, Object, Propagation
from .credentials import Access, Credentials
from .errors import (
    ApiError,
    ApiRequest,
    Invalid,
    NotLeadingError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    from_response,
)
from .oversized import Notices
from .pages import Kept, Pages, PageSize, read_fields, selected
from .reading import Loads, Take, abort, decoded, read_body
from .resource import ObjectRef, Resource
from .server_clock import ServerClock

T = TypeVar("T")

BACKOFF: Final = Backoff((0.2, 0.5, 1.0, 2.0))
"""Before each retry of a request that is safe to repeat; up to a quarter is added at random."""

RETRY_AFTER_LIMIT: Final = 10.0
"""A longer Retry-After, in seconds, raises an error instead of a wait."""

PAGE: Final = 500
"""Objects per page of a list; limits peak memory of client and server."""

_MERGE_PATCH: Final = "application/merge-patch+json"  # RFC 7386
_APPLY_PATCH: Final = "application/apply-patch+yaml"

NO_ANSWER: Final = "<error>"
"""The code of a request without a response, as in client-go's metrics."""


class RequestObserver(Protocol):
    """Receives every request, for `rest_client_requests_total` and its duration."""

    def __call__(self, *, method: str, host: str, code: str, seconds: float) -> None:
        """Note a request of HTTP `method` that ended with the status `code` (or NO_ANSWER)."""


@dataclass(frozen=True, slots=True)
class Patience:
    timeout: float = 30.0  # for one attempt of one request, seconds
    backoff: Backoff = BACKOFF  # delays before retries, one for each retry


PATIENCE: Final = Patience()


@dataclass(frozen=True, slots=True)
class Writes:
    # checked right before each attempt to write, even after a pause
    permitted: Callable[[], bool] = lambda: True
    dry_run: bool = False  # let the server validate every write without persisting it


WRITES: Final = Writes()
DRY_RUN: Final = Writes(dry_run=True)


@dataclass(frozen=True, slots=True)
class _Call:
    """One HTTP request, which may be sent several times."""

    method: str
    request: ApiRequest
    params: Mapping[str, str] | None = None  # of the query
    data: bytes | None = None  # the body
    headers: Mapping[str, str] = field(default_factory=dict)  # without those of the credentials

    @property
    def writes(self) -> bool:
        return self.method != "GET"


class ApiClient:
    """A client of one API server; an async context manager. Implements `api.Api`.

    `field_manager` owns written fields in `managedFields`, `user_agent` appears in the audit log of
    the server, and the Date header of responses sets `clock`.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        field_manager: str,
        user_agent: str | None = None,
        patience: Patience = PATIENCE,
        writes: Writes = WRITES,
        observer: RequestObserver | None = None,
        clock: ServerClock | None = None,
    ) -> None:
        self.credentials = credentials
        self.dry_run = writes.dry_run
        self._field_manager = field_manager
        self._user_agent = user_agent or field_manager
        self._timeout = patience.timeout
        self._observer = observer
        self._backoff = patience.backoff
        self.clock = clock or ServerClock()
        self._may_write = writes.permitted
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[Access, ssl.SSLContext | bool] | None = None
        self._notices = Notices()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=10.0),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, ref: ObjectRef) -> Object:
        return await self._request_object("GET", _request_to("get", ref))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        keep: Callable[[Object], Object] = lambda obj: obj,
    ) -> ListResult:
        """List a kind in pages, in one namespace or (None) in all.

        `keep` reduces each object, so that of a large list only one page is in memory as a whole.
        An object that is too large to be decoded is left out and logged.
        """
        pages = self.pages(resource, namespace, PageSize(PAGE))
        listed = await pages.whole(selected(label_selector, field_selector), resource, keep)
        self._notices.report(listed.left_out)
        return listed

    def pages(
        self,
        resource: Resource,
        namespace: str | None,
        size: PageSize,
        loads: Loads = json.loads,
    ) -> Pages:
        """Return the pages of a list, for callers that keep none of it."""
        request = ApiRequest("list", resource.path(namespace), resource, namespace)
        return Pages(self, request, size, loads)

    async def select(
        self,
        resource: Resource,
        fields: protobuf.Message,
        *,
        field_selector: str | None = None,
        at_most: int,
        kept: Kept | None = None,
        token: str = "",
    ) -> ListResult:
        """Read some fields of the first objects of a kind in all namespaces, as in JSON.

        `at_most`, `kept` and `token` are those of `pages.read_fields`.

        They come as protobuf and are read while they arrive, so that memory does not depend on what
        the objects contain. Without protobuf (a CRD, an aggregated API) the objects are complete.
        """
        request = ApiRequest("list", resource.path(), resource)
        selection = selected(None, field_selector)
        listed = await read_fields(self, request, fields, selection, at_most, kept, token)
        self._notices.report(listed.left_out)
        return listed

    async def create(self, resource: Resource, obj: Body) -> Object:
        namespace = obj["metadata"].get("namespace") if resource.namespaced else None
        if resource.namespaced and not namespace:
            raise ValueError(f"{resource.kind} needs metadata.namespace")
        request = ApiRequest("create", resource.path(namespace), resource, namespace)
        return await self._request_object("POST", request, self._write_params, obj)

    async def replace(
        self, resource: Resource, obj: Body, *, subresource: str | None = None
    ) -> Object:
        request = _request_to("update", resource.ref(obj), subresource)
        return await self._request_object("PUT", request, self._write_params, obj)

    async def patch(self, ref: ObjectRef, patch: Body) -> Object:
        request = _request_to("patch", ref)
        return await self._request_object(
            "PATCH", request, self._write_params, patch, content_type=_MERGE_PATCH
        )

    async def apply(self, ref: ObjectRef, obj: Body) -> Object:
        """Create or change an object by server-side apply, also fields of other managers."""
        params = {**self._write_params, "force": "true"}
        request = _request_to("patch", ref)
        return await self._request_object("PATCH", request, params, obj, content_type=_APPLY_PATCH)

    async def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        options: Object = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation.value,
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        if self.dry_run:
            options["dryRun"] = ["All"]
        await self._request_object("DELETE", _request_to("delete", ref), None, options)

    async def create_in(self, ref: ObjectRef, subresource: str, obj: Body) -> Object:
        """POST `obj` to a subresource of an object, e.g. "token" of a ServiceAccount."""
        request = _request_to("create", ref, subresource)
        return await self._request_object("POST", request, self._write_params, obj)

    async def get_text(self, ref: ObjectRef, subresource: str, **params: str) -> str:
        """GET a subresource in plain text: "log" of a Pod."""
        request = _request_to("get", ref, subresource)
        return await self.take(request, params, "application/json", _take_text)

    async def take(
        self, request: ApiRequest, params: Mapping[str, str], accept: str, take: Take[T]
    ) -> T:
        """GET what `take` reads of the response; each attempt calls it again."""
        return await self._retry(_Call("GET", request, params, headers={"Accept": accept}), take)

    @contextlib.asynccontextmanager
    async def stream(
        self,
        request: ApiRequest,
        params: Mapping[str, str],
        *,
        silence: float,
        accept: str = "application/json",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Return a response that the caller reads while the server sends it: a watch. No retries.

        `silence` is the time in seconds without data after which the connection counts as broken;
        `accept` lists media types, the preferred one first.

        Raises:
            ApiError: the server refused the request, or the connection broke, also while reading.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence)
        call = _Call("GET", request, params, headers={"Accept": accept})
        async with self._send(call, timeout) as response:
            yield response

    async def get_path(
        self, path: str, *, aggregated: bool = False, limit: Size = DOCUMENT
    ) -> Object:
        """GET any path that returns JSON, e.g. discovery or "/version".

        `aggregated`: another server answers, by its own clock, through the API server.
        """
        request = ApiRequest("get", path, aggregated=aggregated)
        return await self._request_object("GET", request, limit=limit)

    @property
    def _write_params(self) -> dict[str, str]:
        dry_run = {"dryRun": "All"} if self.dry_run else {}
        return {"fieldManager": self._field_manager, **dry_run}

    async def _request_object(
        self,
        method: str,
        request: ApiRequest,
        params: Mapping[str, str] | None = None,
        body: Body | None = None,
        *,
        content_type: str = "application/json",
        limit: Size = DOCUMENT,
    ) -> Object:
        data = None if body is None else _encode(request, body)
        headers = {} if data is None else {"Content-Type": content_type}
        call = _Call(method, request, params, data, headers)
        return await self._retry(call, partial(_take_object, limit, request))

    async def _retry(self, call: _Call, take: Take[T]) -> T:
        what = f"waiting for the API server: {call.request}"
        with step(what, inner=False) as waiting:
            return await self._attempts(call, take, waiting)

    async def _attempts(self, call: _Call, take: Take[T], waiting: Step) -> T:
        delays = iter(self._backoff.delays)
        reloaded = False
        while True:
            try:
                async with self._send(call, None) as response:
                    return await take(response)
            except TooLargeError as error:
                raise TooLarge(call.request, error.excess) from error
            except Unauthorized:
                if reloaded:
                    raise
                reloaded = True
                self.credentials.invalidate()
                continue
            except TooManyRequests as error:
                delay, why = next(delays, None), str(error)
                if delay is None or error.retry_after > RETRY_AFTER_LIMIT:
                    raise
                delay = max(delay, error.retry_after)
            except Unavailable as error:
                delay, why = next(delays, None), str(error)
                # The server may have performed the write: the caller must check.
                if delay is None or (call.writes and error.delivered):
                    raise
            waiting.what = f"waiting for the API server, again after {why}"
            await asyncio.sleep(delay * random.uniform(1.0, 1.25))  # noqa: S311 - jitter

    @contextlib.asynccontextmanager
    async def _send(
        self, call: _Call, limits: aiohttp.ClientTimeout | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Return one successful attempt with unread body; `limits` None: the session's timeout."""
        if self._session is None:
            raise RuntimeError("use ApiClient as an async context manager")
        request, access = call.request, await self.credentials.access()
        more: dict[str, Any] = {} if limits is None else {"timeout": limits}
        if call.writes and not self._may_write():
            raise NotLeadingError(f"{request} was not sent: this process does not lead any more")
        code, started = NO_ANSWER, time.perf_counter()
        try:
            async with self._session.request(
                call.method,
                access.server + request.path,
                params=call.params,
                data=call.data,
                headers=_sent_headers(call, access),
                ssl=self._tls_of(access),
                server_hostname=access.tls_server_name,
                proxy=access.proxy,
                allow_redirects=False,
                **more,
            ) as response:
                code = str(response.status)
                if not request.aggregated:
                    elapsed = time.perf_counter() - started
                    self.clock.responded(response.headers.get("Date"), elapsed)
                try:
                    if response.status >= 300:
                        text = await _refusal(response)
                        again = response.headers.get("Retry-After")
                        raise from_response(request, response.status, text, again)
                    yield response
                finally:
                    abort(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer(request, access.server, error, self._timeout) from error
        finally:
            if self._observer and limits is None:  # the duration of a watch has no meaning
                self._observer(
                    method=call.method,
                    host=access.host,
                    code=code,
                    seconds=time.perf_counter() - started,
                )

    def _tls_of(self, access: Access) -> ssl.SSLContext | bool:
        transport = access.transport
        if self._tls is None or self._tls[0] != transport:
            # Idle connections with the old context are never reused, and time out.
            self._tls = (transport, access.ssl_context() or True)
        return self._tls[1]


def _request_to(verb: str, ref: ObjectRef, subresource: str | None = None) -> ApiRequest:
    path = ref.resource.path(ref.namespace, ref.name, subresource)
    return ApiRequest(verb, path, ref.resource, ref.namespace, ref.name, subresource)


def _sent_headers(call: _Call, access: Access) -> Any:
    """Return a request's headers, with those of its credentials; some of these occur repeatedly."""
    headers = dict(call.headers)
    if access.authorization:
        headers["Authorization"] = access.authorization
    return (*headers.items(), *access.impersonation) if access.impersonation else headers


def _encode(request: ApiRequest, body: Body) -> bytes:
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the object cannot be written as JSON: {error}"
        raise Invalid(request, status=0, message=message) from error


async def _take_object(
    limit: Size, request: ApiRequest, response: aiohttp.ClientResponse
) -> Object:
    answer = await _decode(await read_body(response, limit), limit)
    if isinstance(answer, str):
        message = "the response is not JSON; check that the URL is that of an API server"
        raise Unavailable(request, status=response.status, message=message)
    return answer


async def _take_text(response: aiohttp.ClientResponse) -> str:
    return (await read_body(response, TEXT)).decode("utf-8", "replace")


async def _refusal(response: aiohttp.ClientResponse) -> Object | str:
    try:
        text = await read_body(response, REFUSAL)
        if response.content_type == protobuf.MEDIA_TYPE:  # errors have the requested media type
            with contextlib.suppress(protobuf.UnreadableError):
                return protobuf.status(text)
        return await _decode(text, REFUSAL)
    except TooLargeError as error:
        return str(error)


async def _decode(text: bytes, limit: Size) -> Object | str:
    try:
        answer = await decoded(text, limit)
    except TooLargeError:
        raise
    except ValueError:
        return text.decode("utf-8", "replace")
    return answer if isinstance(answer, dict) else str(answer)


def _no_answer(request: ApiRequest, server: str, error: Exception, timeout: float) -> ApiError:
    """Return an exception of the transport as an error with advice."""
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError)):
        text = f"no trusted connection to {server}: {error}; check that the CA is the server's"
        return Unavailable(request, status=0, delivered=False, message=text)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        text = f"connection to {server} timed out; check the address and the firewalls"
        return Unavailable(request, status=0, delivered=False, message=text)
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno  # asyncio's message repeats the address instead of the cause
        why = os.strerror(number) if number else str(error.os_error)
        text = f"no connection to {server}: {why}; check that the API server is running"
        return Unavailable(request, status=0, delivered=False, message=text)
    if isinstance(error, TimeoutError):
        return Unavailable(
            request, status=0, message=f"no response from {server} within {timeout:g} s"
        )
    text = f"connection to {server} failed: {error or type(error).__name__}"
    return Unavailable(request, status=0, message=text)
