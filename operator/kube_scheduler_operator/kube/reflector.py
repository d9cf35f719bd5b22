"""A copy of what the API has of one kind, kept up to date: one list, then one watch without end.

For programs that need nothing of kopf: objects are decoded once, straight from the line, and handed
on; of those that change by the thousand only the fields that matter, from protobuf (protobuf.py). A
watch that breaks goes on where it was; only if the server no longer has that version (410)
everything is listed anew, and what is gone meanwhile is told as deleted. While the API is away the
last copy stays, and connecting is tried again with growing pauses.

Changes are read in batches: after each one the connection is left alone for a moment, so that the
kernel collects what arrives and a busy cluster costs fifty wake-ups a second and not a thousand.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..base.klog import kv
from . import protobuf
from .errors import ApiError, Gone, KubeError, Request, TooManyRequests, Unauthorized, from_response

if TYPE_CHECKING:
    import aiohttp

    from .api import Object
    from .client import ApiClient
    from .resource import Resource

log = logging.getLogger(__name__)

PAGE: Final = 500
"""Objects per page of a list: bounds the memory peak on both sides."""

BATCH: Final = 0.02
"""Seconds for which changes are collected after some were read."""

WATCH_SECONDS: Final = (300, 600)
"""How long the server shall keep a watch open, at random: not all clients come at once."""

SILENCE: Final = 150.0
"""Seconds without a byte after which a watch counts as dead; bookmarks come every minute."""

BACKOFF: Final = (0.5, 30.0)
"""First and longest pause after a failure, seconds; each is twice the one before."""


class Receiver(Protocol):
    """Takes what a reflector reads."""

    def set(self, obj: Object) -> None:
        """An object is there, or has changed. Objects are its own to keep."""

    def remove(self, obj: Object) -> None:
        """An object is gone; perhaps only its metadata are known (namespace, name, uid)."""


@dataclass(slots=True)
class State:
    """How it is going.

    Attributes:
        synced: everything was listed once.
        version: the resourceVersion that is known.
        heard: when something was last heard of the API, monotonic seconds.
        events: changes so far.
        lists: how often everything was listed.
        failures: how often listing or watching failed.
        problem: why it cannot go on at the moment; empty if it does.
    """

    synced: bool = False
    version: str = ""
    heard: float = float("-inf")
    events: int = 0
    lists: int = 0
    failures: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind.

    Attributes:
        namespace: None: of all.
        label_selector, field_selector: as in the API.
    """

    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""

    @property
    def params(self) -> dict[str, str]:
        """As query parameters."""
        given = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class Pace:
    """The constants above, for tests and for programs that are in less of a hurry."""

    batch: float = BATCH
    silence: float = SILENCE
    backoff: tuple[float, float] = BACKOFF
    page: int = PAGE


class Reflector:
    """Keeps a receiver informed of one kind for as long as `run` runs.

    Attributes:
        state: how it is going.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        receiver: Receiver,
        selection: Selection | None = None,
        *,
        loads: Callable[[bytes], Any] = json.loads,
        fields: protobuf.Message | None = None,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing happens before `run`.

        Args:
            client: asks the API.
            resource: the kind.
            receiver: is told of every object. What it raises is logged, and the next one follows.
            selection: which objects; by default all.
            loads: decodes JSON; programs that read much bring a faster one.
            fields: all that the receiver looks at in a changed object; then changes come as
                protobuf, where the server has it. Lists are whole.
            pace: pauses and sizes.
            clock: monotonic seconds.
        """
        self.state = State()
        self.resource = resource
        self._client = client
        self._receiver = receiver
        self._selection = selection or Selection()
        self._loads = loads
        self._fields = fields
        self._pace = pace or Pace()
        self._clock = clock
        self._known: dict[tuple[str, str], str] = {}
        self._synced = asyncio.Event()
        self._request = Request(
            "list", resource.path(self._selection.namespace), resource, self._selection.namespace
        )

    async def synced(self) -> None:
        """Return once everything was listed."""
        await self._synced.wait()

    def forget(self) -> None:
        """Have the receiver let go of everything; for when `run` was cancelled."""
        for key, uid in self._known.items():
            self._remove(_tombstone(key, uid))
        self._known = {}
        self.state = State()

    async def run(self) -> None:
        """Follow the API until cancelled; nothing that it does ends this."""
        pause = 0.0
        while True:
            try:
                if not self.state.version:
                    await self._list()
                    pause = 0.0
                if await self._watch():
                    pause = 0.0
                    continue
                why = "the watch ended as soon as it had begun"
            except Gone:
                self.state.version = ""  # what is known stays until the new list is complete
                if not pause:
                    pause = self._pace.backoff[0] / 2
                    continue
                why = "the version was gone again at once"
            except Unauthorized as error:
                self._client.credentials.invalidate()
                why = str(error)
            except TooManyRequests as error:
                pause, why = max(pause, error.retry_after), str(error)
            except (KubeError, OSError, ValueError) as error:
                why = str(error) or type(error).__name__
            pause = await self._rest(pause, why)

    async def _rest(self, pause: float, why: str) -> float:
        """Pause after a failure; how long it was."""
        self.state.failures += 1
        if why != self.state.problem:
            log.warning("Cannot follow the API", extra=kv(resource=str(self.resource), err=why))
        self.state.problem = why
        first, longest = self._pace.backoff
        pause = min(max(2 * pause, first), longest)
        await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311 - jitter
        return pause

    def _lives(self) -> None:
        self.state.heard = self._clock()
        if self.state.problem:
            log.info("Following the API again", extra=kv(resource=str(self.resource)))
            self.state.problem = ""

    # --- list -----------------------------------------------------------------------------------

    async def _list(self) -> None:
        seen: dict[tuple[str, str], str] = {}
        params = {**self._selection.params, "limit": str(self._pace.page)}
        kind = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        while True:
            try:
                page = await self._page(params)
            except Gone:
                if params.pop("continue", None) is None:
                    raise
                # The pages' snapshot was compacted away: read all at once from a new one.
                params.pop("limit", None)
                continue
            for item in page.get("items") or ():
                key = _key(item)
                seen[key] = _uid(item)
                if self._known.get(key, seen[key]) != seen[key]:  # another one of the same name
                    self._remove(_tombstone(key, self._known[key]))
                self._set({**kind, **item})
            metadata = page.get("metadata") or {}
            version, more = str(metadata.get("resourceVersion") or ""), metadata.get("continue")
            if not more:
                break
            params["continue"] = str(more)
            await asyncio.sleep(0)  # a large list must not keep requests waiting
        for key, uid in self._known.items():
            if key not in seen:
                self._remove(_tombstone(key, uid))
        self._known = seen
        self.state.version = version
        self.state.lists += 1
        self.state.synced = True
        self._lives()
        self._synced.set()

    async def _page(self, params: Mapping[str, str]) -> dict[str, Any]:
        page = self._loads(await self._client.get_bytes(self._request, params))
        if not isinstance(page, dict):
            raise ValueError("the API server answered a list with something else")
        return page

    # --- watch ----------------------------------------------------------------------------------

    async def _watch(self) -> bool:
        """Watch until the server ends it; whether that was worth it."""
        params = {
            **self._selection.params,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.state.version,
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),  # noqa: S311 - jitter
        }
        began, events = self._clock(), self.state.events
        request = Request("watch", self._request.path, self.resource, self._selection.namespace)
        accept = protobuf.ACCEPT if self._fields else "application/json"
        async with self._client.stream(
            request, params, silence=self._pace.silence, accept=accept
        ) as response:
            self._lives()
            try:
                await self._follow(response)
            except protobuf.UnreadableError:
                self._fields = None  # JSON from now on: slower, and better than nothing
                raise
        return self.state.events > events or self._clock() - began > self._pace.backoff[0]

    async def _follow(self, response: aiohttp.ClientResponse) -> None:
        content = response.content
        changes: protobuf.Changes | _Lines = _Lines(self._loads)
        if self._fields is not None and response.content_type == protobuf.MEDIA_TYPE:
            changes = protobuf.Changes(self._fields)
        while True:
            data = await content.readany()
            if not data:
                return
            self._lives()
            for change in changes.feed(data):
                self._change(change)
            transport = response.connection.transport if response.connection else None
            if self._pace.batch and transport is not None and not content.at_eof():
                transport.pause_reading()
                try:
                    await asyncio.sleep(self._pace.batch)
                finally:
                    if not transport.is_closing():
                        transport.resume_reading()

    def _change(self, change: Any) -> None:
        try:
            kind, obj = change["type"], change["object"]
        except (TypeError, KeyError) as error:
            raise ValueError("the API server sent something that is no change") from error
        if kind == "ERROR":
            raise _error(self._request, obj)
        version = obj["metadata"].get("resourceVersion")
        if kind in ("ADDED", "MODIFIED"):
            self._known[_key(obj)] = _uid(obj)
            self._set(obj)
            self.state.events += 1
        elif kind == "DELETED":
            self._known.pop(_key(obj), None)
            self._remove(obj)
            self.state.events += 1
        if version:
            self.state.version = version

    def _set(self, obj: Object) -> None:
        try:
            self._receiver.set(obj)
        except Exception:
            log.exception("An object was passed over", extra=kv(object=obj))

    def _remove(self, obj: Object) -> None:
        try:
            self._receiver.remove(obj)
        except Exception:
            log.exception("A deletion was passed over", extra=kv(object=obj))


class _Lines:
    """Reads a watch: a change of JSON in each line."""

    def __init__(self, loads: Callable[[bytes], Any]) -> None:
        self._loads = loads
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Any]:
        """The changes that are complete now.

        Raises:
            ValueError: These are no changes.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line:
                yield self._loads(line)
        if len(self._rest) > protobuf.CHANGE_LIMIT:
            raise ValueError(f"a change of more than {protobuf.CHANGE_LIMIT} bytes")


def _key(obj: Mapping[str, Any]) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _tombstone(key: tuple[str, str], uid: str) -> Object:
    return {"metadata": {"namespace": key[0], "name": key[1], "uid": uid}}


def _uid(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"].get("uid") or "")


def _error(request: Request, status: Any) -> ApiError:
    code = status.get("code") if isinstance(status, dict) else None
    body: Mapping[str, Any] | str = status if isinstance(status, dict) else str(status)
    return from_response(request, code if isinstance(code, int) else 500, body)
