"""A small Kubernetes API server on loopback, for one kube-scheduler and the world in a store.

It serves what kube-scheduler requests: lists, watches with bookmarks, bindings,
patches of statuses, events, and writes of claims and volumes. Preconditions are checked (names,
UIDs, resourceVersions, that a Pod has no node yet), because kube-scheduler relies on them. Nothing
else is checked or defaulted, because kube-scheduler is the only client. A request that is none of
these is recorded: no decision after it can be relied upon.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson
from aiohttp import web

from ..base.foreign_text import foreign
from ..base.json_text import parse_json
from ..base.limits import DOCUMENT, FOREIGN_LINE
from ..kube.resource import EVENTS_V1, Resource
from .kinds import KINDS, PODS, Object
from .store import WatchEvent, WorldStore, event_line
from .targets import RequestTarget, target_of
from .writes import (
    DecisionListener,
    Reply,
    UnexpectedRequestError,
    Write,
    WriteRequests,
    failure,
    not_found,
)

_JSON: Final = "application/json"
_BOOKMARK_SECONDS: Final = 20.0
_LARGEST_BODY: Final = 64 * 2**20

_SELECTORS: Final = (None, "", "status.phase!=Succeeded,status.phase!=Failed")
"""The fieldSelectors of kube-scheduler, which watches Pods that are not finished; a world has no
others."""

Verb = Callable[[bytes], Awaitable[tuple[int, bytes]]]
"""Responds to a call of an extender: a request in, (status, response) out."""


class WorldServer:
    def __init__(
        self, store: WorldStore, listener: DecisionListener, clock: Callable[[], float]
    ) -> None:
        # where it listens. Its path is a secret: client-go sends no credentials without TLS
        self.url = ""
        self._secret = secrets.token_urlsafe(32)
        self.read: set[Resource] = set()  # kinds that were listed or watched, as requested
        self.problem = ""  # the first request that it cannot answer, as a sentence
        self._store = store
        self._writes = WriteRequests(store, listener, clock)
        self._extenders: dict[tuple[str, str], Verb] = {}
        self.sent_pods = asyncio.Event()  # once their list was sent, which is the longest
        self._closing = asyncio.Event()

    @property
    def unknown(self) -> set[str]:
        """The kinds that were read and that no world has, by name."""
        return {kind.name for kind in self.read if not kind.kind}

    def add_extender(self, name: str, verbs: Iterable[tuple[str, Verb]]) -> str:
        """Serve the verbs of an extender in process; return its urlPrefix."""
        for verb, handler in verbs:
            self._extenders[name, verb] = handler
        return f"{self.url}/extenders/{name}"

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1."""
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_post(f"/{self._secret}/extenders/{{name}}/{{verb}}", self._extend)
        app.router.add_route("*", f"/{self._secret}/{{path:.*}}", self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.2, handle_signals=False
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/{self._secret}"

    async def stop(self) -> None:
        self._closing.set()
        await self._runner.cleanup()

    async def _extend(self, request: web.Request) -> web.Response:
        verb = self._extenders.get((request.match_info["name"], request.match_info["verb"]))
        if verb is None:
            raise web.HTTPNotFound
        status, body = await verb(await request.read())
        return web.Response(body=body, status=status, content_type=_JSON)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        try:
            return await self._respond(request, path.strip("/").split("/"))
        except UnexpectedRequestError as error:
            reason = str(error)
        except (ConnectionError, asyncio.CancelledError):
            raise  # kube-scheduler has closed it, or ends
        except Exception as error:  # whatever a foreign program sent must not be a traceback
            reason = f"{type(error).__name__}: {error}"
        self.problem = self.problem or (
            f"kube-scheduler sent a request that the simulation cannot answer: {request.method} "
            f"/{foreign(path, FOREIGN_LINE)}: {foreign(reason, FOREIGN_LINE)}"
        )
        return _failure(501, "NotImplemented", "the simulation cannot answer this request")

    async def _respond(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        """Answer a request.

        Raises:
            UnexpectedRequestError: it is none of those that kube-scheduler sends.
        """
        if discovery := _discovery(parts):
            return _response(discovery)
        target = target_of(parts)
        if target is None:
            raise UnexpectedRequestError("this path is not simulated")
        if request.method == "GET":
            return await self._read(request, target)
        body = await request.read()
        try:
            obj = parse_json(body, DOCUMENT, orjson.loads) if body else {}
        except ValueError as error:  # the client is a program that users choose
            return _failure(400, "BadRequest", str(error))
        if not isinstance(obj, dict):
            return _failure(400, "BadRequest", "the body is not an object")
        answer = self._writes.apply(Write(request.method, target, request.content_type, obj))
        if answer.obj.get("kind") == target.resource.kind:
            answer = replace(answer, obj=target.in_version(answer.obj))
        return _answer(answer)

    async def _read(self, request: web.Request, target: RequestTarget) -> web.StreamResponse:
        if target.name:
            obj = self._store.get(target.resource, target.key)
            if obj is None:
                return _answer(not_found(target))
            return _response(target.in_version(obj))
        query = request.query
        requested = target.requested
        self.read.add(requested)
        if target.resource in KINDS and (
            query.get("labelSelector") or query.get("fieldSelector") not in _SELECTORS
        ):
            raise UnexpectedRequestError("this selector is not simulated")
        if query.get("watch") in ("true", "1"):
            if query.get("sendInitialEvents") == "true":
                # client-go lists instead, and decodes a list in half the time.
                return _failure(422, "Invalid", "sendInitialEvents is not supported")
            return await self._watch(request, target)
        head = b'"metadata":{"resourceVersion":"%d"},"items":[' % self._store.version
        if requested.kind:
            kind = f'"kind":"{requested.kind}List","apiVersion":"{requested.api_version}",'
            head = kind.encode() + head
        items = b",".join(target.items(self._store.contents(target.resource)))
        response = web.Response(body=b"{%b%b]}" % (head, items), content_type=_JSON)
        if target.resource is PODS:
            await response.prepare(request)
            await response.write_eof()
            self.sent_pods.set()
        return response

    async def _watch(self, request: web.Request, target: RequestTarget) -> web.StreamResponse:
        since = int(request.query.get("resourceVersion") or 0)
        response = web.StreamResponse(headers={"Content-Type": _JSON})
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
        except ConnectionError:
            return response  # kube-scheduler has ended
        pending: list[WatchEvent] = []
        wake = asyncio.Event()

        def take(event: WatchEvent) -> None:
            pending.append(event)
            wake.set()

        self._store.watch(target.resource, since, take)
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            while not self._closing.is_set():
                if pending:
                    batch = b"".join(_line(event, target) for event in pending)
                    pending.clear()
                    wake.clear()
                    await response.write(batch)
                    continue
                waiting = asyncio.ensure_future(wake.wait())
                done, _ = await asyncio.wait(
                    (waiting, closing),
                    timeout=_BOOKMARK_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waiting.cancel()
                if not done and target.resource.kind:
                    await response.write(_bookmark(target.requested, self._store.version))
        except (ConnectionError, asyncio.CancelledError):
            pass  # kube-scheduler has closed it, or ends
        finally:
            closing.cancel()
            self._store.unwatch(target.resource, take)
        return response


def _discovery(parts: list[str]) -> Object | None:
    """Return what the API server offers at a path; None: the path is not one of discovery."""
    match parts:
        case ["version"]:
            return {"major": "1", "minor": "35", "gitVersion": "v1.35.0"}
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["api", "v1"] | ["apis", _, _]:
            return _resources("/".join(parts[1:]))
        case ["api", _] | ["apis"] | ["apis", _]:
            groups = sorted({(kind.group, kind.version) for kind in KINDS if kind.group})
            listed = [_group(*group) for group in (*groups, (EVENTS_V1.group, EVENTS_V1.version))]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
    return None


def _group(name: str, version: str) -> Object:
    preferred = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [preferred], "preferredVersion": preferred}


def _resources(group_version: str) -> Object:
    verbs = ["get", "list", "watch", "update", "patch"]
    kinds = [(kind, verbs) for kind in KINDS if kind.api_version == group_version]
    if group_version == EVENTS_V1.api_version:
        kinds = [(EVENTS_V1, ["create"])]
    resources = [
        {"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced, "verbs": allowed}
        for kind, allowed in kinds
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }


def _line(event: WatchEvent, target: RequestTarget) -> bytes:
    return event_line(event.type, target.content_in_version(event.content))


def _bookmark(resource: Resource, version: int) -> bytes:
    metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return event_line("BOOKMARK", orjson.dumps(obj))


def _answer(answer: Reply) -> web.Response:
    return _response(answer.obj, answer.code)


def _response(obj: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(obj), status=status, content_type=_JSON)


def _failure(code: int, reason: str, message: str) -> web.Response:
    return _answer(failure(code, reason, message))
