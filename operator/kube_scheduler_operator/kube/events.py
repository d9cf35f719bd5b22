"""Events in the API, sent in the background: `EventRecorder.event` never blocks or fails.

A repeated event increases the count of one Event, and a token bucket per object limits their rate.
Both follow client-go's correlator, with a faster refill: one rollout sends a dozen events.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from ..base.bounded_cache import Recent
from ..base.foreign_text import visible
from ..base.limits import EVENT_NOTE
from ..base.times import rfc3339
from .api import Api, EventType
from .errors import KubeError, NotFound
from .resource import EVENTS, ObjectRef
from .token_bucket import TokenBucket

_log = logging.getLogger(__name__)


BURST: Final = 25
"""Burst of events of one object (client-go's spam burst)."""

REFILL: Final = 12.0
"""Seconds until an object may have one more event (client-go: 300)."""

WINDOW: Final = 600.0
"""An event within this time after an equal one increases its count, seconds (as client-go)."""

_BACKLOG: Final = 256
_REMEMBERED: Final = 1024
_DRAIN_TIMEOUT: Final = 3.0


@dataclass(frozen=True, slots=True)
class Involved:
    """The object of an event; the Event is created in its namespace."""

    api_version: str  # e.g. "apps/v1"
    kind: str  # e.g. "Deployment"
    name: str
    # None if cluster-scoped; its events are in "default", as the API requires
    namespace: str | None = None
    uid: str = ""  # needed for `kubectl describe` to show the event


@dataclass(frozen=True, slots=True)
class _Entry:
    involved: Involved
    type: EventType
    reason: str
    message: str


@dataclass(slots=True)
class _Posted:
    ref: ObjectRef
    count: int
    at: float


class EventRecorder:
    """Sends events from a task of its own; an async context manager.

    `component` is the name of the program, `instance` that of its Pod; `involved` is the default
    object of events; `observer` receives the type of every event.
    """

    def __init__(
        self,
        api: Api,
        *,
        component: str,
        instance: str,
        involved: Involved,
        observer: Callable[[EventType], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._api = api
        self._component = component
        self._instance = instance
        self._involved = involved
        self._observer = observer
        self._clock = clock
        self._now = now
        self._queue: asyncio.Queue[_Entry] = asyncio.Queue(_BACKLOG)
        self._posted: Recent[_Entry, _Posted] = Recent(_REMEMBERED)
        self._buckets: Recent[Involved, TokenBucket] = Recent(_REMEMBERED)
        self._task: asyncio.Task[None] | None = None
        self.dropped = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="event recorder")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is None:
            return
        try:
            async with asyncio.timeout(_DRAIN_TIMEOUT):
                await self._queue.join()
        except TimeoutError:
            self.dropped += self._queue.qsize()
        self._task.cancel()
        await asyncio.wait([self._task])

    def event(
        self,
        severity: EventType,
        reason: str,
        message: str,
        involved: Involved | None = None,
    ) -> None:
        """Send an event about `involved`. Returns at once and never raises.

        `reason` is CamelCase in past tense, such as "RevisionCreated"; `message` is a sentence for
        users.
        """
        about = involved or self._involved
        level = logging.WARNING if severity == "Warning" else logging.INFO
        _log.log(level, "event for %s %s: %s: %s", about.kind, about.name, reason, message)
        self._observer(severity)
        try:
            self._queue.put_nowait(_Entry(about, severity, reason, visible(message)[:EVENT_NOTE]))
        except asyncio.QueueFull:
            self.dropped += 1

    async def _run(self) -> None:
        while True:
            entry = await self._queue.get()
            try:
                if self._allowed(entry.involved):
                    await self._post(entry)
                else:
                    self.dropped += 1
            except KubeError as error:
                self.dropped += 1
                _log.warning("cannot send event %s: %s", entry.reason, error)
            except Exception:
                self.dropped += 1
                _log.exception("cannot send event %s", entry.reason)
            finally:
                self._queue.task_done()

    def _allowed(self, involved: Involved) -> bool:
        """Take a token from the object's bucket."""
        bucket = self._buckets.get(involved) or TokenBucket(BURST, REFILL, self._clock)
        self._buckets.keep(involved, bucket)
        if bucket.left() < 1:
            return False
        bucket.spend()
        return True

    async def _post(self, entry: _Entry) -> None:
        posted = self._posted.get(entry)
        now = self._clock()
        if posted is not None and now - posted.at <= WINDOW:
            try:
                await self._api.patch(
                    posted.ref, {"count": posted.count + 1, "lastTimestamp": self._stamp()}
                )
            except NotFound:
                pass  # Events expire after an hour
            else:
                posted.count, posted.at = posted.count + 1, now
                self._posted.move_to_end(entry)
                return
        body = self._body(entry)
        await self._api.create(EVENTS, body)
        self._posted.keep(entry, _Posted(EVENTS.ref(body), 1, now))

    def _body(self, entry: _Entry) -> dict[str, Any]:
        about = entry.involved
        namespace = about.namespace or "default"
        involved = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "name": about.name,
            "namespace": about.namespace,
            "uid": about.uid,
        }
        # Named as by client-go: the object's name and the time in nanoseconds.
        suffix = f"{int(self._now().timestamp() * 1e6) * 1000:x}"
        stamp = self._stamp()
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name}.{suffix}", "namespace": namespace},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": entry.type,
            "reason": entry.reason,
            "message": entry.message,
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }

    def _stamp(self) -> str:
        return rfc3339(self._now())
