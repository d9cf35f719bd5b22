"""A small Kubernetes API server on loopback, for one kube-scheduler and the world in a store.

It serves what kube-scheduler requests: lists, watch-lists and watches with bookmarks, bindings,
patches of statuses, events, and writes of claims and volumes. Nothing is checked or defaulted,
because kube-scheduler is the only client.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from ..base.json_text import parse_json
from ..base.limits import DOCUMENT
from ..base.times import rfc3339
from ..kube.resource import EVENTS_V1, Resource
from .controllers import Controllers
from .kinds import CLAIMS, KINDS, PODS, VOLUMES, Object
from .store import WorldStore, event_line, merged
from .world import Key

_JSON: Final = "application/json"
_CHUNK: Final = 256 * 1024
"""Bytes of a response that are sent at once."""
_BOOKMARK_SECONDS: Final = 20.0
_LARGEST_BODY: Final = 64 * 2**20

_BY_PATH: Final = {
    (resource.group, resource.version, resource.plural): resource for resource in KINDS
}
_UNUSED_KINDS: Final = {
    "podgroups": "PodGroup",
    "workloads": "Workload",
    "compositepodgroups": "CompositePodGroup",
    "devicetaintrules": "DeviceTaintRule",
    "resourcepoolstatusrequests": "ResourcePoolStatusRequest",
}
"""Kinds that some versions of kube-scheduler watch and that no world has: plural -> kind."""

Verb = Callable[[bytes], Awaitable[tuple[int, bytes]]]
"""Responds to a call of an extender: a request in, (status, response) out."""


class DecisionListener(Protocol):
    """Gets kube-scheduler's decisions as they are written."""

    def bound(self, pod: Object, node: str) -> None: ...

    def unschedulable(self, pod: Object) -> None:
        """Take the status of a pod without a node."""

    def deleted(self, pod: Object) -> None:
        """Take a deleted pod: preemption ends this way."""

    def event(self, event: Object) -> None: ...


@dataclass(frozen=True, slots=True)
class _Target:
    """What a path names: a collection, an object or a subresource of it."""

    resource: Resource
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)


class WorldServer:
    def __init__(
        self, store: WorldStore, listener: DecisionListener, clock: Callable[[], float]
    ) -> None:
        # where it listens. Its path is a secret: client-go sends no credentials without TLS
        self.url = ""
        self._clock = clock
        self._secret = secrets.token_urlsafe(32)
        self.unknown: set[str] = set()  # kinds that were read and that no world has, by name
        self._generated = 0  # names made of generateName
        self._store = store
        self._controllers = Controllers(store)
        self._listener = listener
        self._extenders: dict[tuple[str, str], Verb] = {}
        self._closing = asyncio.Event()

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
        parts = request.match_info["path"].strip("/").split("/")
        if discovery := _discovery(parts):
            return _response(discovery)
        target = self._target(parts)
        if target is None:
            return _failure(404, "NotFound", "this path is not served")
        if request.method == "GET":
            return await self._read(request, target)
        body = await request.read()
        try:
            obj = parse_json(body, DOCUMENT, orjson.loads) if body else {}
        except ValueError as error:  # the client is a program that users choose
            return _failure(400, "BadRequest", str(error))
        return self._write(request.method, target, obj)

    def _target(self, parts: list[str]) -> _Target | None:
        match parts:
            case ["api", version, *rest] if rest:
                group = ""
            case ["apis", group, version, *rest] if rest:
                pass
            case _:
                return None
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (*rest, "", "")[:3]
        known = _BY_PATH.get((group, version, plural))
        if known is None:
            kind = _UNUSED_KINDS.get(plural, "")
            known = Resource(group, version, plural, kind, namespaced=bool(namespace))
        return _Target(known, namespace, name, subresource)

    async def _read(self, request: web.Request, target: _Target) -> web.StreamResponse:
        if target.name:
            obj = self._store.get(target.resource, target.key)
            if obj is None:
                return _failure(404, "NotFound", f"{target.resource.plural} is not in the world")
            return _response(obj)
        query, resource = request.query, target.resource
        if resource not in KINDS:
            self.unknown.add(resource.name)
        if query.get("watch") in ("true", "1"):
            if query.get("sendInitialEvents") == "true" and not resource.kind:
                # Without the name of the kind there is no bookmark; client-go lists instead.
                return _failure(422, "Invalid", "sendInitialEvents is not supported")
            return await self._watch(request, resource)
        head = b'"metadata":{"resourceVersion":"%d"},"items":[' % self._store.version
        if resource.kind:
            kind = f'"kind":"{resource.kind}List","apiVersion":"{resource.api_version}",'
            head = kind.encode() + head
        items = b",".join(self._store.contents(resource))
        return web.Response(body=b"{%b%b]}" % (head, items), content_type=_JSON)

    async def _watch(self, request: web.Request, resource: Resource) -> web.StreamResponse:
        initial = request.query.get("sendInitialEvents") == "true"
        response = web.StreamResponse(headers={"Content-Type": _JSON})
        response.enable_chunked_encoding()
        await response.prepare(request)
        pending: list[bytes] = []
        wake = asyncio.Event()

        def take(event: bytes) -> None:
            pending.append(event)
            wake.set()

        since = None if initial else int(request.query.get("resourceVersion") or 0)
        contents = self._store.contents(resource) if initial else []
        version = self._store.version
        self._store.watch(resource, since, take)
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await self._send_all(response, contents)
            if initial:
                await response.write(_bookmark(resource, version, end_of_list=True))
            while not self._closing.is_set():
                if pending:
                    batch = b"".join(pending)
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
                if not done and resource.kind:
                    await response.write(_bookmark(resource, self._store.version))
        except (ConnectionError, asyncio.CancelledError):
            pass  # kube-scheduler has closed it, or ends
        finally:
            closing.cancel()
            self._store.unwatch(resource, take)
        return response

    async def _send_all(self, response: web.StreamResponse, contents: list[bytes]) -> None:
        batch: list[bytes] = []
        size = 0
        for content in contents:
            line = event_line("ADDED", content)
            batch.append(line)
            size += len(line)
            if size > _CHUNK:
                await response.write(b"".join(batch))
                batch, size = [], 0
        if batch:
            await response.write(b"".join(batch))

    def _write(self, method: str, target: _Target, obj: Object) -> web.Response:
        resource = target.resource
        if resource.plural == "events":
            self._listener.event(obj)
            return _response(obj, 201)
        if method == "POST":
            return self._post(target, obj)
        known = self._store.get(resource, target.key)
        if known is None:
            return _failure(404, "NotFound", f"{resource.plural} {target.name!r} not found")
        if method == "DELETE":
            return self._delete(target)
        changed = _changed(method, target, known, obj)
        sent = (obj.get("metadata") or {}).get("resourceVersion")
        if sent and sent != known["metadata"]["resourceVersion"]:
            return _failure(409, "Conflict", "the object has been modified")
        stored = self._store.put(resource, changed)
        self._report(target, stored)
        return _response(self._store.get(resource, target.key) or stored)

    def _delete(self, target: _Target) -> web.Response:
        gone = self._store.delete(target.resource, target.key)
        if target.resource == PODS and gone is not None:
            self._controllers.pod_deleted(gone)
            self._listener.deleted(gone)
        return _response(gone or {})

    def _report(self, target: _Target, stored: Object) -> None:
        if target.resource == PODS and target.subresource == "status":
            self._listener.unschedulable(stored)
        elif target.resource == CLAIMS:
            self._controllers.claim_changed(stored)
        elif target.resource == VOLUMES:
            self._controllers.volume_changed(stored)

    def _post(self, target: _Target, obj: Object) -> web.Response:
        resource = target.resource
        if resource != PODS or target.subresource != "binding":
            metadata = obj.setdefault("metadata", {})
            metadata.setdefault("namespace", target.namespace)
            if "name" not in metadata:
                # kube-scheduler creates ResourceClaims for extended resources with generateName.
                self._generated += 1
                metadata["name"] = f"{metadata.get('generateName', '')}{self._generated:05}"
            return _response(self._store.put(resource, obj), 201)
        pod = self._store.get(PODS, target.key)
        if pod is None:
            return _failure(404, "NotFound", f'pods "{target.name}" not found')
        node = (obj.get("target") or {}).get("name", "")
        self._listener.bound(pod, node)
        pod["spec"]["nodeName"] = node
        condition = {
            "type": "PodScheduled",
            "status": "True",
            # Extenders estimate the load of pods that were bound after the last measurement.
            "lastTransitionTime": rfc3339(datetime.fromtimestamp(self._clock(), UTC)),
        }
        pod["status"] = merged(pod["status"], {"conditions": [condition]})
        pod["status"].pop("nominatedNodeName", None)
        self._store.put(PODS, pod)
        return _response({"kind": "Status", "apiVersion": "v1", "status": "Success"}, 201)


def _changed(method: str, target: _Target, known: Object, obj: Object) -> Object:
    """Return the object after a PATCH or PUT of `obj`."""
    if method == "PATCH":
        return merged(known, obj)
    if target.subresource == "status":
        return {**known, "status": obj.get("status") or {}}
    return {**obj, "status": known["status"]} if "status" in known else obj


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


def _bookmark(resource: Resource, version: int, *, end_of_list: bool = False) -> bytes:
    metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
    if end_of_list:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return event_line("BOOKMARK", orjson.dumps(obj))


def _response(obj: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(obj), status=status, content_type=_JSON)


def _failure(code: int, reason: str, message: str) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return _response(status, code)
