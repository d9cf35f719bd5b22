"""A small API server with faults on demand, and event loops that run on virtual time."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from kube_scheduler_operator.kube.credentials import Access, Credentials
from kube_scheduler_operator.kube.protobuf import MEDIA_TYPE
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SCHEDULERS,
    Resource,
)

from . import encoding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kube_scheduler_operator.kube.api import Object

Key = tuple[str | None, str]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Fault:
    """Answers matching requests instead of the server, `times` times (None: always)."""

    matches: Callable[[web.Request], bool]
    answer: Callable[[web.Request], web.StreamResponse | None]
    times: int | None

    def __call__(self, request: web.Request) -> bool:
        if self.times == 0 or not self.matches(request):
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass(eq=False)
class OpenWatch:
    """A watch that a client has open."""

    resource: Resource
    queue: asyncio.Queue[tuple[str, Any]]
    request: web.Request
    since: int = 0


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


def _place(resource: Resource, path: str) -> tuple[str | None, list[str]] | None:
    """(namespace, the parts of a path that follow a resource); None: it is of another one."""
    base, _, plural = resource.path().rpartition("/")
    if not path.startswith(base + "/"):
        return None
    namespace, rest = None, path.removeprefix(base + "/").split("/")
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    return (namespace, rest[1:]) if rest[0] == plural else None


@dataclass
class FakeApi:
    """Enough of an API server for one client: versions, watches with history, selectors, faults."""

    url: str = ""
    version: int = 100
    oldest: int = 0  # watches from before this version get 410
    protobuf: bool = False  # for lists and watches of pods that accept it, and for metadata
    served: set[Resource] = field(default_factory=set)
    objects: dict[Resource, dict[Key, Object]] = field(default_factory=dict)
    history: list[tuple[int, Resource, str, Object]] = field(default_factory=list)
    watches: list[OpenWatch] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    tokens: set[str] = field(default_factory=lambda: {"good"})
    routes: dict[str, Handler] = field(default_factory=dict)  # end of a path -> handler
    port: int = 0
    runner: web.AppRunner | None = None
    site: web.TCPSite | None = None

    # --- for tests ----------------------------------------------------------------------------

    def fail(
        self,
        status: int,
        *,
        path: str = "",
        method: str | None = None,
        times: int | None = 1,
        reason: str = "",
        message: str = "injected",
        headers: dict[str, str] | None = None,
    ) -> Fault:
        """Answer with a Status of `status`; method "WATCH" is a GET that watches."""

        def matches(request: web.Request) -> bool:
            methods = {request.method, "WATCH"} if "watch" in request.query else {request.method}
            return path in request.path and (method is None or method in methods)

        def answer(_: web.Request) -> web.StreamResponse:
            return status_answer(status, reason or f"Injected{status}", message, headers=headers)

        fault = Fault(matches, answer, times)
        self.faults.append(fault)
        return fault

    def drop_connection(self, *, method: str, path: str = "", times: int = 1) -> None:
        """Close the connection instead of answering, after the request was read."""

        def answer(request: web.Request) -> None:
            assert request.transport is not None
            request.transport.abort()

        self.faults.append(Fault(lambda r: r.method == method and path in r.path, answer, times))

    def put(
        self, resource: Resource, name: str, namespace: str | None = None, **rest: Any
    ) -> Object:
        """Create or update an object behind the client's back."""
        held = self.objects.get(resource, {}).get((namespace, name))
        obj: dict[str, Any] = (
            copy.deepcopy(held)
            if held
            else {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": name, "uid": f"uid-{self.version + 1}"},
            }
        )
        if namespace:
            obj["metadata"]["namespace"] = namespace
        labels = rest.pop("labels", None)
        if labels is not None:
            obj["metadata"]["labels"] = labels
        obj.update(rest)
        return self.store(resource, obj, "MODIFIED" if held else "ADDED")

    def remove(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        """Delete an object behind the client's back."""
        self.store(resource, self.objects[resource][namespace, name], "DELETED")

    def lose_history(self) -> None:
        """Compact: watches from now or before cannot be continued."""
        self.version += 1
        self.oldest = self.version

    def back_up(self) -> tuple[Any, ...]:
        """What a backup of etcd has."""
        return copy.deepcopy((self.objects, self.version, self.history))

    def restore(self, backup: tuple[Any, ...]) -> None:
        """Versions after the backup do not exist any more; watches from there stay silent."""
        self.objects, self.version, self.history = copy.deepcopy(backup)

    async def end_watches(self, resource: Resource) -> None:
        """End open watches the way a server does that is about to restart."""
        await self._send(resource, "END", None)

    async def reset_watches(self, resource: Resource) -> None:
        """Break the connections of open watches."""
        await self._send(resource, "RESET", None)

    async def send_error(self, resource: Resource, code: int) -> None:
        """Send an ERROR event into open watches, and end them."""
        status = {"kind": "Status", "code": code, "message": f"injected {code}", "reason": "X"}
        await self._send(resource, "ERROR", status)

    async def send_raw(self, resource: Resource, line: bytes) -> None:
        """Send bytes into open watches, and end them."""
        await self._send(resource, "RAW", line)

    async def until_watched(self, resource: Resource, count: int = 1) -> None:
        """Wait until a client has `count` open watches of a kind."""
        async with asyncio.timeout(20):
            while sum(watch.resource == resource for watch in self.watches) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.002)

    def requests(self, method: str, part: str = "") -> list[Seen]:
        """Requests so far."""
        return [seen for seen in self.seen if seen.method == method and part in seen.path]

    async def stop(self) -> None:
        """Refuse connections from now on, and break the open ones."""
        assert self.runner is not None
        await self.runner.cleanup()
        self.runner = None

    async def start(self) -> None:
        """Serve (again), on the same port."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self.runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self.runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"

    def credentials(self) -> Credentials:
        """An identity that this server accepts."""
        return Credentials(lambda: Access(server=self.url, authorization="Bearer good"))

    # --- the server ---------------------------------------------------------------------------

    def store(self, resource: Resource, obj: Object, change: str) -> Object:
        self.version += 1
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(self.version)
        key = (obj["metadata"].get("namespace"), obj["metadata"]["name"])
        if change == "DELETED":
            del self.objects[resource][key]
        else:
            self.objects.setdefault(resource, {})[key] = obj
        self.history.append((self.version, resource, change, obj))
        for watch in self.watches:
            # As the watch cache does; a watch from the future stays silent until then.
            if watch.resource == resource and self.version > watch.since:
                watch.queue.put_nowait((change, obj))
        return copy.deepcopy(obj)

    async def _send(self, resource: Resource, kind: str, payload: Any) -> None:
        for watch in list(self.watches):
            if watch.resource == resource:
                watch.queue.put_nowait((kind, payload))
        await asyncio.sleep(0)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append(
            Seen(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                json.loads(body) if body else None,
            )
        )
        for fault in self.faults:
            if fault(request):
                return fault.answer(request) or web.Response()
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            return status_answer(401, "Unauthorized")
        for end, handler in self.routes.items():
            if request.path.endswith(end):
                return await handler(request)
        if (found := self._discovery(request.path)) is not None:
            return web.json_response(found)
        for resource in self.served:
            if (place := _place(resource, request.path)) is not None:
                return await self._serve(request, resource, *place)
        return status_answer(404, "NotFound", "the server could not find the requested resource")

    def _discovery(self, path: str) -> Any:
        groups = sorted({(r.group, r.version) for r in self.served if r.group})
        if path == "/api":
            return {"versions": ["v1"]}
        if path == "/apis":
            return {
                "groups": [
                    {
                        "name": group,
                        "versions": [{"groupVersion": f"{group}/{v}", "version": v}],
                        "preferredVersion": {"version": v},
                    }
                    for group, v in groups
                ]
            }
        here = [r for r in self.served if r.path().rpartition("/")[0] == path]
        if not here:
            return None
        return {
            "resources": [
                {
                    "name": r.plural,
                    "kind": r.kind,
                    "singularName": r.kind.lower(),
                    "namespaced": r.namespaced,
                    "verbs": ["get", "list", "watch", "patch"],
                }
                for r in here
            ]
        }

    async def _serve(
        self, request: web.Request, resource: Resource, namespace: str | None, rest: list[str]
    ) -> web.StreamResponse:
        held = self.objects.setdefault(resource, {})
        body = self.seen[-1].body
        if not rest and request.method == "GET":
            if "watch" in request.query:
                return await self._watch(request, resource, namespace)
            items = [obj for obj in held.values() if selected(obj, namespace, request.query)]
            return self._page(request, resource, items)
        if not rest and request.method == "POST":
            body["metadata"].setdefault("uid", f"uid-{self.version + 1}")
            if (namespace, body["metadata"]["name"]) in held:
                return status_answer(409, "AlreadyExists")
            return web.json_response(self.store(resource, body, "ADDED"), status=201)
        obj = held.get((namespace, rest[0])) if rest else None
        if obj is None:
            return status_answer(
                404, "NotFound", f'{resource.plural} "{rest and rest[0]}" not found'
            )
        if request.method == "GET":
            return web.json_response(obj)
        return self._change(request.method, resource, obj, body)

    def _change(self, method: str, resource: Resource, obj: Object, body: Any) -> web.Response:
        """Delete, replace or patch an object."""
        if method == "DELETE":
            wanted = (body or {}).get("preconditions", {})
            if wanted.get("uid") not in (None, obj["metadata"]["uid"]):
                return status_answer(409, "Conflict")
            self.store(resource, obj, "DELETED")
            return web.json_response({"kind": "Status", "status": "Success"})
        if method == "PUT":
            if body["metadata"].get("resourceVersion") not in (
                None,
                obj["metadata"]["resourceVersion"],
            ):
                return status_answer(409, "Conflict", "the object has been modified")
            return web.json_response(self.store(resource, body, "MODIFIED"))
        return web.json_response(self.store(resource, merged(obj, body), "MODIFIED"))

    def _page(self, request: web.Request, resource: Resource, items: list[Object]) -> web.Response:
        metadata = {"resourceVersion": str(self.version)}
        limit = int(request.query.get("limit", 0))
        start = int(request.query.get("continue", 0))
        remaining: dict[str, int] = {}
        if limit and start + limit < len(items):
            metadata["continue"] = str(start + limit)
            remaining = {"remainingItemCount": len(items) - start - limit}
        page = items[start : start + limit] if limit else items
        accepted = request.headers.get("Accept", "")
        if "as=PartialObjectMetadataList" in accepted:
            page = [{"metadata": obj["metadata"]} for obj in page]
        elif resource != PODS:
            accepted = ""
        if self.protobuf and accepted.startswith(MEDIA_TYPE):
            return web.Response(
                body=encoding.listed(page, metadata), headers={"Content-Type": MEDIA_TYPE}
            )
        slim = [{k: v for k, v in o.items() if k not in ("apiVersion", "kind")} for o in page]
        return web.json_response(
            {
                "kind": f"{resource.kind}List",
                "apiVersion": resource.api_version,
                "metadata": {**metadata, **remaining},
                "items": slim,
            }
        )

    async def _watch(
        self, request: web.Request, resource: Resource, namespace: str | None
    ) -> web.StreamResponse:
        accepted = request.headers.get("Accept", "").split(";")[0]
        binary = self.protobuf and resource == PODS and accepted == MEDIA_TYPE
        sent_as = f"{MEDIA_TYPE};stream=watch" if binary else "application/json"
        response = web.StreamResponse(headers={"Content-Type": sent_as})
        response.enable_chunked_encoding()
        await response.prepare(request)
        since = int(request.query["resourceVersion"])
        watch = OpenWatch(resource, asyncio.Queue(), request)
        if since < self.oldest:
            gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
            watch.queue.put_nowait(("ERROR", gone))
        watch.since = since
        for version, changed, change, obj in self.history:
            if version > since and changed == resource:
                watch.queue.put_nowait((change, obj))
        self.watches.append(watch)
        try:
            while True:
                change, obj = await watch.queue.get()
                if change == "RESET":
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                if change == "RAW":
                    await response.write(obj)
                if change in ("END", "RAW"):
                    return response
                if change == "ERROR" or selected(obj, namespace, request.query):
                    line = json.dumps({"type": change, "object": obj}).encode() + b"\n"
                    await response.write(encoding.change(change, obj) if binary else line)
                if change == "ERROR":
                    return response
        finally:
            self.watches.remove(watch)


def selected(obj: Object, namespace: str | None, query: Any) -> bool:
    """Whether namespace and selectors (`a=b` and, for labels, `a` and `!a`) choose an object."""
    metadata = obj["metadata"]
    parts = [part for part in query.get("labelSelector", "").split(",") if part]
    labels = [part.partition("=") for part in parts if not part.startswith("!")]
    absent = [part.removeprefix("!") for part in parts if part.startswith("!")]
    fields = [part.partition("=") for part in query.get("fieldSelector", "").split(",") if part]
    return (
        namespace in (None, metadata.get("namespace"))
        and all(
            key in metadata.get("labels", {}) and (not equals or metadata["labels"][key] == value)
            for key, equals, value in labels
        )
        and not any(key in metadata.get("labels", {}) for key in absent)
        and all(
            (_field(obj, key.removesuffix("!")) == value) is not key.endswith("!")
            for key, _, value in fields
        )
    )


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for key in path.split("."):
        value = (value or {}).get(key)
    return str(value or "")


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def status_answer(
    code: int, reason: str, message: str = "injected", headers: dict[str, str] | None = None
) -> web.Response:
    """A Status, as the API server answers with when it refuses."""
    return web.json_response(
        {"kind": "Status", "code": code, "reason": reason, "message": message},
        status=code,
        headers=headers,
    )


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    """A running server with the usual kinds and no objects."""
    server = FakeApi()
    server.served = {
        CONFIG_MAPS,
        PODS,
        NODES,
        NAMESPACES,
        EVENTS,
        LEASES,
        SCHEDULERS,
        CUSTOM_RESOURCE_DEFINITIONS,
    }
    await server.start()
    yield server
    if server.runner is not None:
        await server.stop()
