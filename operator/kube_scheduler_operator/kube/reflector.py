"""Follows one kind: one list, then watches without end, like client-go's reflector.

For programs without kopf. Each object is decoded once and passed on; of kinds with thousands of
changes only the needed fields, from protobuf. A broken watch continues at its resourceVersion. A
new list replaces it if the server no longer has that version (410), and where etcd may have been
restored from a backup, because a version that was taken back stays silent: after an outage, and
after a silence. Objects that are missing from the list are reported as removed. During an outage
the last state stays.

Changes are read in batches: after each one the connection rests for a moment while the kernel
buffers data, so that a busy cluster causes fifty wake-ups a second instead of a thousand.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import aiohttp

from ..base.backoff import Backoff
from ..base.klog import kv
from ..base.objects import uid_of
from . import protobuf
from .api import ListResult, Object
from .client import PAGE, ApiClient
from .errors import (
    ApiError,
    ApiRequest,
    Gone,
    KubeError,
    TooManyRequests,
    Unauthorized,
    from_response,
)
from .oversized import Notices
from .pages import PageSize, selected
from .reading import Lines, Loads
from .resource import Resource

log = logging.getLogger(__name__)

BATCH: Final = 0.02
"""Time for which changes are buffered after each read, seconds."""

WATCH_SECONDS: Final = (300, 600)
"""Random duration of one watch, seconds, so that clients do not reconnect at the same time."""

_BACKOFF: Final = Backoff.exponential(0.5, 30.0)


class Receiver(Protocol):
    """Receives the objects of a reflector."""

    def set(self, obj: Object) -> object:
        """Take an object that exists or has changed. The receiver may keep it."""

    def remove(self, obj: Object) -> object:
        """Take an object that was deleted; it may have only metadata (namespace, name, uid)."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """A receiver of two functions."""

    set: Callable[[Object], object]
    remove: Callable[[Object], object]


@dataclass(slots=True)
class ReflectorState:
    synced: bool = False  # whether a list has completed
    version: str = ""  # the last resourceVersion
    # time of the last data from the API server, monotonic seconds
    received_at: float = float("-inf")
    events: int = 0
    lists: int = 0
    failures: int = 0
    rewinds: int = 0  # number of lists that were older than what had been received
    problem: str = ""  # the error that is being retried; empty if healthy


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of a kind to follow."""

    namespace: str | None = None  # None: all namespaces
    label_selector: str = ""  # as in the API
    field_selector: str = ""

    @property
    def params(self) -> dict[str, str]:
        return selected(self.label_selector, self.field_selector)


@dataclass(frozen=True, slots=True)
class ReflectorTuning:
    """What tests, and programs with other needs, change; in seconds."""

    batch: float = BATCH
    silence: float = 150.0  # without a byte, a watch counts as dead; bookmarks come every minute
    outage: float = 5.0  # without a connection for this long, everything is listed again
    backoff: Backoff = _BACKOFF  # after failures
    page: int = PAGE  # objects of a page of a list


@dataclass(frozen=True, slots=True)
class Decoding:
    loads: Loads = json.loads  # decodes JSON; programs that read a lot pass a faster decoder
    # the fields of a changed object that the receiver reads; changes then come as protobuf, if the
    # server supports it. Lists are complete.
    fields: protobuf.Message | None = None


DECODING: Final = Decoding()


class Reflector:
    """Passes the objects of one kind to a receiver while `run` runs."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        receiver: Receiver,
        selection: Selection | None = None,
        *,
        decoding: Decoding = DECODING,
        tuning: ReflectorTuning | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `run` sends the first request.

        Exceptions of `receiver` are logged and otherwise ignored; `clock` is in monotonic seconds.
        """
        self.state = ReflectorState()
        self.resource = resource
        self._client = client
        self._receiver = receiver
        self._selection = selection or Selection()
        self._loads = decoding.loads
        self._fields = decoding.fields
        self._tuning = tuning or ReflectorTuning()
        self._clock = clock
        self._known: dict[tuple[str, str], str] = {}
        self._notices = Notices()
        self._newest = 0  # resourceVersion
        self._synced = asyncio.Event()
        self._request = ApiRequest(
            "list", resource.path(self._selection.namespace), resource, self._selection.namespace
        )

    @property
    def age(self) -> float:
        """Seconds since data was last received; infinite before."""
        return self._clock() - self.state.received_at

    async def synced(self) -> None:
        """Wait for the first complete list."""
        await self._synced.wait()

    def forget(self) -> None:
        """Remove all objects from the receiver, after `run` was cancelled."""
        for key, uid in self._known.items():
            self._remove(_tombstone(key, uid))
        self._known = {}
        self.state = ReflectorState()

    async def run(self) -> None:
        """Follow the kind until cancelled, through all errors of the API."""
        delay = 0.0
        lost_at: float | None = None
        while True:
            began = self._clock()
            try:
                if lost_at is not None and self._clock() - lost_at > self._tuning.outage:
                    self.state.version = ""
                if not self.state.version:
                    await self._list()
                    delay, lost_at = 0.0, None
                if await self._watch():
                    delay, lost_at = 0.0, None
                    continue
                problem = "the watch ended right after its start"
            except Gone:
                # The receiver's objects stay until the new list is complete.
                self.state.version = ""
                if not delay:
                    delay = self._tuning.backoff.delay(0) / 2
                    continue
                problem = "the resourceVersion of a new list is already too old"
            except (KubeError, OSError, ValueError) as error:
                problem = self._answer(error)
                if isinstance(error, TooManyRequests):
                    delay = max(delay, error.retry_after)
            if lost_at is None:
                lost_at = max(self.state.received_at, began)
            delay = await self._back_off(delay, problem)

    def _answer(self, error: Exception) -> str:
        """Prepare the next attempt after an error; return the problem."""
        if isinstance(error, Unauthorized):
            self._client.credentials.invalidate()
        elif not isinstance(error, TooManyRequests) and self._is_silent():
            self.state.version = ""
        return str(error) or type(error).__name__

    async def _back_off(self, delay: float, problem: str) -> float:
        """Wait after a failure; return the next delay."""
        self.state.failures += 1
        if problem != self.state.problem:
            values = kv(resource=str(self.resource), err=problem)
            log.warning("Cannot list or watch, will retry", extra=values)
        self.state.problem = problem
        delay = self._tuning.backoff.after(delay)
        await asyncio.sleep(delay * random.uniform(0.75, 1.25))  # noqa: S311 - jitter
        return delay

    def _is_silent(self) -> bool:
        return self._clock() - self.state.received_at >= self._tuning.silence

    def _healthy(self) -> None:
        self.state.received_at = self._clock()
        if self.state.problem:
            log.info("Watching again", extra=kv(resource=str(self.resource)))
            self.state.problem = ""

    # --- list -----------------------------------------------------------------------------------

    async def _list(self) -> None:
        seen: dict[tuple[str, str], str] = {}
        pages = self._client.pages(
            self.resource, self._selection.namespace, PageSize(self._tuning.page), self._loads
        )
        version = ""
        while True:
            try:
                async for page in pages.read(self._selection.params):
                    self._take(page, seen)
                    version = page.resource_version
                    await asyncio.sleep(0)  # a large list must not block requests
            except Gone:
                pages.enlarge()
                # What was deleted meanwhile is removed in the end.
                self._known |= seen
                seen = {}
                continue
            break
        for key, uid in self._known.items():
            if key not in seen:
                self._remove(_tombstone(key, uid))
        if _number(version) < self._newest:
            self.state.rewinds += 1
            values = kv(resource=str(self.resource), version=version, before=self._newest)
            log.warning(
                "The API server has an older state than before: etcd was restored", extra=values
            )
        self._known = seen
        self.state.version, self._newest = version, _number(version)
        self.state.lists += 1
        self.state.synced = True
        self._healthy()
        self._synced.set()

    def _take(self, page: ListResult, seen: dict[tuple[str, str], str]) -> None:
        kind = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        for item in page.items:
            key = _key(item)
            seen[key] = uid_of(item)
            if self._known.get(key, seen[key]) != seen[key]:  # a new object of the same name
                self._remove(_tombstone(key, self._known[key]))
            self._set({**kind, **item})
        self._notices.report(page.left_out)

    # --- watch ----------------------------------------------------------------------------------

    async def _watch(self) -> bool:
        """Watch until the server ends the watch; return whether it had events or lasted a while."""
        params = {
            **self._selection.params,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.state.version,
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),  # noqa: S311 - jitter
        }
        began, events = self._clock(), self.state.events
        request = ApiRequest("watch", self._request.path, self.resource, self._selection.namespace)
        accept = protobuf.ACCEPT if self._fields else "application/json"
        async with self._client.stream(
            request, params, silence=self._tuning.silence, accept=accept
        ) as response:
            self._healthy()
            try:
                await self._follow(response)
            except protobuf.UnreadableError:
                self._fields = None  # continue with JSON, which is slower
                raise
        return self.state.events > events or self._clock() - began > self._tuning.backoff.delay(0)

    async def _follow(self, response: aiohttp.ClientResponse) -> None:
        content = response.content
        changes = self._changes_in_json()
        if self._fields is not None and response.content_type == protobuf.MEDIA_TYPE:
            changes = protobuf.ChangeDecoder(self._fields).feed
        while True:
            data = await content.readany()
            if not data:
                return
            self._healthy()
            for change in changes(data):
                self._change(change)
            transport = response.connection.transport if response.connection else None
            if self._tuning.batch and transport is not None and not content.at_eof():
                transport.pause_reading()
                try:
                    await asyncio.sleep(self._tuning.batch)
                finally:
                    if not transport.is_closing():
                        transport.resume_reading()

    def _changes_in_json(self) -> Callable[[bytes], Iterator[Any]]:
        """Return a decoder of one event per line; of an object that is too large, its deletion."""
        lines = Lines()
        return lambda data: (self._notices.event(line, self._loads) for line in lines.feed(data))

    def _change(self, change: Any) -> None:
        try:
            kind, obj = change["type"], change["object"]
        except (TypeError, KeyError) as error:
            raise ValueError("the API server sent an invalid watch event") from error
        if kind == "ERROR":
            raise _error(self._request, obj)
        version = obj["metadata"].get("resourceVersion")
        if kind in ("ADDED", "MODIFIED"):
            self._known[_key(obj)] = uid_of(obj)
            self._set(obj)
            self.state.events += 1
        elif kind == "DELETED":
            self._known.pop(_key(obj), None)
            self._remove(obj)
            self.state.events += 1
        if version:
            self.state.version = version
            self._newest = max(self._newest, _number(version))

    def _set(self, obj: Object) -> None:
        try:
            self._receiver.set(obj)
        except Exception:
            log.exception("Cannot process an object", extra=kv(object=obj))

    def _remove(self, obj: Object) -> None:
        try:
            self._receiver.remove(obj)
        except Exception:
            log.exception("Cannot process a deletion", extra=kv(object=obj))


def _key(obj: Mapping[str, Any]) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _tombstone(key: tuple[str, str], uid: str) -> Object:
    return {"metadata": {"namespace": key[0], "name": key[1], "uid": uid}}


def _number(version: str) -> int:
    """Return 0 for a version that is not a number."""
    return int(version) if version.isdecimal() else 0


def _error(request: ApiRequest, status: Any) -> ApiError:
    code = status.get("code") if isinstance(status, dict) else None
    body: Mapping[str, Any] | str = status if isinstance(status, dict) else str(status)
    return from_response(request, code if isinstance(code, int) else 500, body)
