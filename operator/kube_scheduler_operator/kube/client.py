"""The API client: dicts in, dicts out, one error class per decision, no write repeated blindly.

It exists because typed clients cost 10 to 15 times the CPU for decoding and none of them has the
semantics that an operator needs: preconditions, back-off by server's wish, reloaded tokens.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

import aiohttp

from . import protobuf
from .api import Body, ListResult, Object, PatchType, Propagation
from .errors import (
    ApiError,
    Gone,
    Request,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    from_response,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from types import TracebackType

    from .credentials import Access, Credentials
    from .resource import ObjectRef, Resource

T = TypeVar("T")

BACKOFFS: Final = (0.2, 0.5, 1.0, 2.0)
"""Pauses before repeating what is safe to repeat, seconds; up to a quarter is added at random."""

RETRY_AFTER_LIMIT: Final = 10.0
"""A server that asks for a longer pause is reported instead of obeyed in place, seconds."""

PAGE: Final = 500
"""Objects per page of a list: bounds the memory peak on both sides."""

NO_ANSWER: Final = "<error>"
"""The code of a request without an answer, as client-go's metrics have it."""


class RequestObserver(Protocol):
    """Told of every request, for `rest_client_requests_total` and its duration."""

    def __call__(self, *, method: str, host: str, code: str, seconds: float) -> None:
        """A request of HTTP `method` ended with the status `code` (or NO_ANSWER)."""


class ApiClient:
    """Talks to one API server; an async context manager. Implements `api.Api`.

    Args:
        credentials: who we are and where the server is; reloaded when they change or expire.
        field_manager: recorded by the server as the author of our fields.
        user_agent: shows up in the server's audit log.
        timeout: for one attempt of one request, seconds.
        dry_run: have the server check every write and do none of them.
        observer: told of every request.
        backoffs: pauses before repeating, seconds; their number is the number of repetitions.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        field_manager: str,
        user_agent: str | None = None,
        timeout: float = 30.0,
        dry_run: bool = False,
        observer: RequestObserver | None = None,
        backoffs: Sequence[float] = BACKOFFS,
    ) -> None:
        self.credentials = credentials
        self.dry_run = dry_run
        self._field_manager = field_manager
        self._user_agent = user_agent or field_manager
        self._timeout = timeout
        self._observer = observer
        self._backoffs = tuple(backoffs)
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[Access, ssl.SSLContext | bool] | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=10.0),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, ref: ObjectRef) -> Object:
        """One object. Raises NotFound if there is none."""
        return await self._ask("GET", _request("get", ref))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> ListResult:
        """All objects of a kind, in one namespace or (None) in all; read page by page."""
        request = Request("list", resource.path(namespace), resource, namespace)
        selectors = {
            name: value
            for name, value in (
                ("labelSelector", label_selector),
                ("fieldSelector", field_selector),
            )
            if value
        }
        params: dict[str, str] = {"limit": str(PAGE)}
        items: list[Object] = []
        while True:
            try:
                page = await self._ask("GET", request, {**selectors, **params})
            except Gone:
                if "continue" not in params:
                    raise
                # The pages' snapshot was compacted away: read all at once from a new one.
                items, params = [], {}
                continue
            for item in page.get("items") or ():
                item.setdefault("apiVersion", resource.api_version)
                item.setdefault("kind", resource.kind)
                items.append(item)
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return ListResult(items, str(metadata.get("resourceVersion") or ""))
            params = {"limit": str(PAGE), "continue": metadata["continue"]}

    async def create(
        self, resource: Resource, obj: Body, *, field_manager: str | None = None
    ) -> Object:
        """Create `obj` (`metadata.generateName` is welcome). Raises AlreadyExists."""
        namespace = obj["metadata"].get("namespace") if resource.namespaced else None
        if resource.namespaced and not namespace:
            raise ValueError(f"{resource.kind} to create needs metadata.namespace")
        request = Request("create", resource.path(namespace), resource, namespace)
        return await self._ask("POST", request, self._write_params(field_manager), obj)

    async def replace(
        self,
        resource: Resource,
        obj: Body,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> Object:
        """PUT `obj`. With `metadata.resourceVersion` set, raises Conflict if it has moved on."""
        request = _request("update", resource.ref(obj), subresource)
        return await self._ask("PUT", request, self._write_params(field_manager), obj)

    async def patch(
        self,
        ref: ObjectRef,
        patch: Body | Sequence[Body],
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
        force: bool = False,
        field_manager: str | None = None,
    ) -> Object:
        """Patch one object; `force` takes fields over from other managers (APPLY only)."""
        params = self._write_params(field_manager)
        if patch_type is PatchType.APPLY:
            params["force"] = "true" if force else "false"
        request = _request("patch", ref, subresource)
        return await self._ask("PATCH", request, params, patch, content_type=patch_type.value)

    async def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete one object, if it is still the one with `uid` and `resource_version`."""
        options: Object = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation.value,
        }
        preconditions = {
            name: value
            for name, value in (("uid", uid), ("resourceVersion", resource_version))
            if value
        }
        if preconditions:
            options["preconditions"] = preconditions
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        if self.dry_run:
            options["dryRun"] = ["All"]
        await self._ask("DELETE", _request("delete", ref), None, options)

    async def create_in(self, ref: ObjectRef, subresource: str, obj: Body) -> Object:
        """POST `obj` to a subresource of an object, e.g. "token" of a ServiceAccount."""
        request = _request("create", ref, subresource)
        return await self._ask("POST", request, self._write_params(None), obj)

    async def get_text(self, ref: ObjectRef, subresource: str, **params: str) -> str:
        """GET a subresource that is plain text: "log" of a Pod."""
        request = _request("get", ref, subresource)
        return await self._repeat("GET", request, params, None, {}, _as_text)

    async def get_bytes(self, request: Request, params: Mapping[str, str]) -> bytes:
        """The undecoded answer to a GET, for those who decode it themselves."""
        return await self._repeat("GET", request, params, None, {}, lambda _r, _s, text: text)

    @contextlib.asynccontextmanager
    async def stream(
        self,
        request: Request,
        params: Mapping[str, str],
        *,
        silence: float,
        accept: str = "application/json",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that is read while it is sent: a watch. Nothing is repeated.

        Args:
            request: what is asked.
            params: of the query.
            silence: seconds after which a connection that says nothing counts as broken.
            accept: media types, the best one first.

        Raises:
            ApiError: the server refused, or the connection broke, also while it is read.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence)
        headers = {"Accept": accept}
        async with self._asked("GET", request, params, None, headers, timeout) as response:
            yield response

    async def get_path(self, path: str) -> Object:
        """GET anything that answers with JSON, e.g. discovery or "/version"."""
        return await self._ask("GET", Request("get", path))

    def _write_params(self, field_manager: str | None) -> dict[str, str]:
        params = {"fieldManager": field_manager or self._field_manager}
        if self.dry_run:
            params["dryRun"] = "All"
        return params

    async def _ask(
        self,
        method: str,
        request: Request,
        params: Mapping[str, str] | None = None,
        body: Body | Sequence[Body] | None = None,
        *,
        content_type: str = "application/json",
    ) -> Object:
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {} if data is None else {"Content-Type": content_type}
        return await self._repeat(method, request, params, data, headers, _as_object)

    async def _repeat(
        self,
        method: str,
        request: Request,
        params: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
        read: Callable[[Request, int, bytes], T],
    ) -> T:
        backoffs = iter(self._backoffs)
        reloaded = False
        while True:
            try:
                status, text = await self._once(method, request, params, data, headers)
                return read(request, status, text)
            except Unauthorized:
                if reloaded:
                    raise
                reloaded = True
                self.credentials.invalidate()
                continue
            except TooManyRequests as error:
                pause = next(backoffs, None)
                if pause is None or error.retry_after > RETRY_AFTER_LIMIT:
                    raise
                pause = max(pause, error.retry_after)
            except Unavailable as error:
                pause = next(backoffs, None)
                # A write that may have been done must be looked at by whoever wanted it.
                if pause is None or (method != "GET" and error.delivered):
                    raise
            await asyncio.sleep(pause * random.uniform(1.0, 1.25))  # noqa: S311 - jitter

    async def _once(
        self,
        method: str,
        request: Request,
        params: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
    ) -> tuple[int, bytes]:
        """Status and body of one attempt that succeeded."""
        async with self._asked(method, request, params, data, headers, None) as response:
            return response.status, await response.read()

    @contextlib.asynccontextmanager
    async def _asked(
        self,
        method: str,
        request: Request,
        params: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
        patience: aiohttp.ClientTimeout | None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One attempt that succeeded, its body not yet read; `patience` None: the session's."""
        if self._session is None:
            raise RuntimeError("use ApiClient as an async context manager")
        access = await self.credentials.access()
        if access.authorization:
            headers = {**headers, "Authorization": access.authorization}
        more: dict[str, Any] = {} if patience is None else {"timeout": patience}
        code, started = NO_ANSWER, time.perf_counter()
        try:
            async with self._session.request(
                method,
                access.server + request.path,
                params=params,
                data=data,
                headers=headers,
                ssl=self._tls_of(access),
                server_hostname=access.tls_server_name,
                proxy=access.proxy,
                allow_redirects=False,
                **more,
            ) as response:
                code = str(response.status)
                try:
                    if response.status >= 300:
                        text = _refusal(response.content_type, await response.read())
                        again = response.headers.get("Retry-After")
                        raise from_response(request, response.status, text, again)
                    yield response
                finally:
                    _break_off(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer(request, access.server, error, self._timeout) from error
        finally:
            if self._observer and patience is None:  # how long a watch lasts says nothing
                self._observer(
                    method=method,
                    host=access.host,
                    code=code,
                    seconds=time.perf_counter() - started,
                )

    def _tls_of(self, access: Access) -> ssl.SSLContext | bool:
        transport = access.transport
        if self._tls is None or self._tls[0] != transport:
            # Idle connections made with the old context are never picked again and time out.
            self._tls = (transport, access.ssl_context() or True)
        return self._tls[1]


def _request(verb: str, ref: ObjectRef, subresource: str | None = None) -> Request:
    path = ref.resource.path(ref.namespace, ref.name, subresource)
    return Request(verb, path, ref.resource, ref.namespace, ref.name, subresource)


def _break_off(response: aiohttp.ClientResponse) -> None:
    """Close the connection of an answer that was not read to its end, as a watch never is.

    To say goodbye over TLS would wait for the server to say it too, for up to 30 s and beyond the
    end of the event loop; a server that hangs never does.
    """
    if (connection := response.connection) and connection.transport:
        connection.transport.abort()


def _as_object(request: Request, status: int, text: bytes) -> Object:
    answer = _decode(text)
    if isinstance(answer, str):
        why = "the answer is not JSON; is this really an API server?"
        raise Unavailable(request, status=status, message=why)
    return answer


def _refusal(content_type: str, body: bytes) -> Object | str:
    if content_type == protobuf.MEDIA_TYPE:  # who asks for it gets it also when refused
        with contextlib.suppress(protobuf.UnreadableError):
            return protobuf.status(body)
    return _decode(body)


def _as_text(_request: Request, _status: int, text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _decode(text: bytes) -> Object | str:
    try:
        answer = json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace")
    return answer if isinstance(answer, dict) else str(answer)


def _no_answer(request: Request, server: str, error: Exception, timeout: float) -> ApiError:
    """An exception of the transport, as an error that says what to look at."""
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError)):
        text = f"no trusted connection to {server}: {error}; does the CA belong to this server?"
        return Unavailable(request, status=0, delivered=False, message=text)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        text = f"no connection to {server} in time; is the address right, a firewall in between?"
        return Unavailable(request, status=0, delivered=False, message=text)
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno  # asyncio's text repeats the address instead of the cause
        why = os.strerror(number) if number else str(error.os_error)
        text = f"no connection to {server}: {why}; is the API server running?"
        return Unavailable(request, status=0, delivered=False, message=text)
    if isinstance(error, TimeoutError):
        return Unavailable(request, status=0, message=f"{server} did not answer in {timeout:g} s")
    text = f"connection to {server} broke: {error or type(error).__name__}"
    return Unavailable(request, status=0, message=text)
