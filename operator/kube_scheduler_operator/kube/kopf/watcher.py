"""Watches with kopf in a thread and an event loop of its own, for as long as the process lives.

kopf's handlers are the methods of `Session`, registered for the watched kinds. They hand every
event to the caller in the caller's loop, in order, and write nothing to the API: no finalizers, no
annotations.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Self, TypeAlias

from ...base.backoff import NO_RETRIES
from ..api import Object
from ..client import ApiClient, Patience
from ..credentials import Credentials
from ..errors import KubeError, NotFound
from ..resource import Resource, Stream, WatchSpec
from .decoding import abort_connections
from .imports import kopf
from .settings import Login, Tuning, configure, quiet
from .streams import TICKET, Streams, install

_log = logging.getLogger(__name__)

OnEvent: TypeAlias = Callable[[Resource, str, Object], None]
"""Takes a kind, "ADDED", "MODIFIED" or "DELETED", and an object, complete unless it is deleted."""

OnListed: TypeAlias = Callable[[Stream], None]
"""Takes a stream whose existing objects have all been delivered."""


class Watcher:
    """Delivers the events of the declared watches.

    Args:
        watches: one per kind and namespace.
        on_event: called for every change. A listed object is "ADDED", also when it is listed
            again. A deleted one may consist of metadata only.
        on_listed: called when a stream was listed, after all its objects were delivered.
        on_rewound: called with the evidence that etcd was restored from a backup.

    Raises:
        ValueError: two watches overlap.
    """

    def __init__(
        self,
        watches: Iterable[WatchSpec],
        *,
        on_event: OnEvent,
        on_listed: OnListed,
        on_rewound: Callable[[str], None] = lambda _: None,
        tuning: Tuning | None = None,
    ) -> None:
        self._watches = tuple(watches)
        _refuse_overlaps(self._watches)
        self._on_event = on_event
        self._on_listed = on_listed
        self._on_rewound = on_rewound
        self.tuning = tuning or Tuning()
        self._life = 0  # counts calls of `start_over`
        self._streams = self._new_streams()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reported: dict[Stream | None, str] = {}
        self._reason = ""  # to start kopf again
        self.missing: tuple[Resource, ...] = ()  # kinds that the API server does not serve

    def start_over(self, reason: str) -> None:
        """List everything again, as a new process would; what is under way is dropped."""
        self._life += 1
        self._streams = self._new_streams()
        self._reason = reason

    def _new_streams(self) -> Streams:
        life = self._life
        return Streams(
            self._watches,
            tuning=self.tuning,
            listed=lambda stream: self._post_listed(stream, life),
            failed=self._failed,
            rewound=lambda evidence: self._post(life, self._on_rewound, evidence),
        )

    @property
    def kinds(self) -> frozenset[Resource]:
        return frozenset(spec.resource for spec in self._watches)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The keys of all watches, except optional ones of kinds that the API does not serve."""
        return tuple(
            stream
            for stream, state in self._streams.states.items()
            if not (state.spec.optional and stream.resource in self.missing)
        )

    def ages(self) -> Mapping[Stream, float]:
        """Return the seconds since each stream's last event or bookmark; infinite without one."""
        now = time.monotonic()
        received = {stream: self._streams.states[stream].received_at for stream in self.streams}
        return {stream: float("inf") if at is None else now - at for stream, at in received.items()}

    async def run(self, credentials: Credentials, stop: asyncio.Event) -> None:
        """Watch until `stop` is set; wait for missing kinds and retry after every error."""
        self._loop = asyncio.get_running_loop()
        quiet()
        patience = Patience(backoff=NO_RETRIES)
        async with ApiClient(credentials, field_manager="watch", patience=patience) as client:
            await self._run(client, stop)

    async def _run(self, client: ApiClient, stop: asyncio.Event) -> None:
        delay = 0.0
        while await self._kinds_served(client, stop):
            started, life = time.monotonic(), self._life
            thread = _Thread(
                lambda flag: self._operate(client.credentials, flag), self.tuning.check
            )
            appearing = asyncio.create_task(self._await_optional(client))
            try:
                await thread.run(stop, self._stuck)
            finally:
                appearing.cancel()
                await asyncio.gather(appearing, return_exceptions=True)
            if stop.is_set():
                return
            if self._life == life:
                if self._reason and thread.error is None:
                    continue
                self._failed(None, thread.error or RuntimeError(thread.reason))
            if time.monotonic() - started >= self.tuning.stable:
                delay = 0.0
                if self._life != life:
                    continue  # at once; not after a short run: members of etcd may disagree
            delay = self.tuning.restart.after(delay)
            await _pause(stop, delay)

    async def _operate(self, credentials: Credentials, flag: asyncio.Event) -> None:
        """Run kopf once, in its own loop."""
        install(self._streams)
        # kopf reads the user's name; nothing uses it, and a container's user may have none.
        os.environ.setdefault("LOGNAME", "kopf")
        session = Session(self, credentials, flag)
        await kopf.operator(
            registry=session.registry(),
            memo=session,
            standalone=True,
            namespaces=self._streams.namespaces,
            clusterwide=not self._streams.namespaces,
            stop_flag=flag,
        )

    def _deliver(self, resource: Resource, kind: str, obj: Object) -> None:
        try:
            self._on_event(resource, kind, obj)
        except Exception:
            name = obj.get("metadata", {}).get("name")
            _log.exception("%s event of %s %s was lost", kind, resource, name)

    def _post_listed(self, stream: Stream, life: int) -> None:
        self._reported.pop(stream, None)
        self._post(life, self._on_listed, stream)

    def _post(self, life: int, function: Callable[..., None], *arguments: object) -> None:
        """Call in the caller's loop, after all earlier calls, unless `start_over` comes first."""

        def call() -> None:
            if life == self._life:
                function(*arguments)

        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def _failed(self, stream: Stream | None, error: Exception) -> None:
        # kopf's errors have the whole Status as a second argument; the first is its message.
        text = str(error.args[0] if error.args else "") or type(error).__name__
        if self._reported.get(stream) != text:
            _log.warning(
                "watch of %s failed and will be retried: %s", stream or "the cluster", text
            )
            self._reported[stream] = text

    def _stuck(self, running: float) -> str:
        """Return why kopf must restart after `running` seconds; empty if it is healthy."""
        if self._reason:
            return self._reason
        if running < min(self.tuning.start, self.tuning.silence):
            return ""
        for stream in self.streams:
            if not self._streams.states[stream].opened and running > self.tuning.start:
                return f"kopf has not opened {stream}"
            silent = min(self.ages()[stream], running)
            if silent > self.tuning.silence:
                return f"{stream} has delivered nothing for {silent:.0f} s"
        return ""

    async def _kinds_served(self, client: ApiClient, stop: asyncio.Event) -> bool:
        """Wait until the API serves every required kind; False if stopped first.

        kopf lists the kinds of the API server only when it starts.
        """
        while not stop.is_set():
            try:
                missing = await _missing(client, self.kinds)
            except KubeError as error:
                self._failed(None, error)
            else:
                self._report_missing(missing)
                if self._optional.issuperset(missing):
                    self._reason = ""
                    return True
            await _pause(stop, self.tuning.discovery)
        return False

    async def _await_optional(self, client: ApiClient) -> None:
        """Return when the API server serves an optional kind that was missing."""
        while self.missing:
            await asyncio.sleep(self.tuning.appearing)
            with contextlib.suppress(KubeError):
                served = set(self.missing) - set(await _missing(client, self.missing))
                if served:
                    names = ", ".join(sorted(resource.name for resource in served))
                    self._reason = f"the API server now serves {names}"
                    _log.info("%s", self._reason)
                    return

    @property
    def _optional(self) -> frozenset[Resource]:
        """Kinds whose watches are all optional."""
        needed = {spec.resource for spec in self._watches if not spec.optional}
        return self.kinds - needed

    def _report_missing(self, missing: tuple[Resource, ...]) -> None:
        if missing == self.missing:
            return
        self.missing = missing
        names = ", ".join(resource.name for resource in missing)
        if missing and self._optional.issuperset(missing):
            _log.warning(
                "optional kinds are not served; to use them, install their CRDs: %s", names
            )
        elif missing:
            _log.warning("waiting for required kinds; install their CRDs: %s", names)
        else:
            _log.info("the API server serves all kinds")


class Session:
    """One run of kopf: its handlers, and its memo, which kopf copies for every object."""

    def __init__(self, watcher: Watcher, credentials: Credentials, stop: asyncio.Event) -> None:
        self._watcher = watcher
        self._life = watcher._life
        self._login = Login(credentials, failed=lambda error: watcher._failed(None, error))
        self._stop = stop
        self._kinds = {(kind.group, kind.plural): kind for kind in watcher.kinds}

    def __copy__(self) -> Self:
        return self

    def registry(self) -> kopf.OperatorRegistry:
        """Register the handlers, the last one for every watched kind."""
        registry = kopf.OperatorRegistry()
        kopf.on.startup(registry=registry)(self.configure)
        kopf.on.login(registry=registry)(self.log_in)
        kopf.on.cleanup(registry=registry)(self.finish)
        for kind in self._kinds.values():
            kopf.on.event(kind.api_version, kind.plural, registry=registry)(self.deliver)
        return registry

    async def configure(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        """Make kopf watch and never write."""
        configure(settings, self._watcher.tuning)

    async def log_in(self, **_: Any) -> kopf.ConnectionInfo:
        """Use the client's own credentials."""
        return await self._login.connection()

    async def finish(self, **_: Any) -> None:
        """End kopf's wait for its stop flag, which takes five seconds."""
        self._stop.set()

    async def deliver(self, event: Any, resource: kopf.Resource, **_: Any) -> None:
        """Pass the event to `Watcher.on_event` in the caller's loop."""
        kind = self._kinds[resource.group, resource.plural]
        try:
            self._watcher._post(
                self._life, self._watcher._deliver, kind, event["type"] or "ADDED", event["object"]
            )
        finally:
            if (ticket := event.get(TICKET)) is not None:
                ticket.settle()


class _Thread:
    """A coroutine in a loop and thread of its own, with a flag to stop it."""

    def __init__(self, main: Callable[[asyncio.Event], Awaitable[None]], check: float) -> None:
        self._main = main
        self._check = check
        self._stopping = False
        self._stopper: Callable[[], object] | None = None
        self.error: Exception | None = None
        self.reason = "kopf ended"

    async def run(self, stop: asyncio.Event, stuck: Callable[[float], str]) -> None:
        """Run until the coroutine ends, `stop` is set, or `stuck` returns a reason."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def body() -> None:
            try:
                asyncio.run(self._guarded())
            except Exception as error:  # the caller reports it
                self.error = error
            finally:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(ended.set)

        thread = threading.Thread(target=body, name="kopf", daemon=True)
        started = time.monotonic()
        thread.start()
        stopped = asyncio.create_task(stop.wait())
        over = asyncio.create_task(ended.wait())
        try:
            while not (stopped.done() or over.done()):
                await asyncio.wait(
                    (stopped, over), timeout=self._check, return_when=asyncio.FIRST_COMPLETED
                )
                if reason := stuck(time.monotonic() - started):
                    self.reason = reason
                    break
        finally:
            stopped.cancel()
            self._stopping = True
            if self._stopper is not None:
                with contextlib.suppress(RuntimeError):  # its loop is closed already
                    self._stopper()
            await over

    async def _guarded(self) -> None:
        loop, flag = asyncio.get_running_loop(), asyncio.Event()
        self._stopper = lambda: loop.call_soon_threadsafe(flag.set)
        if not self._stopping:
            try:
                await self._main(flag)
            finally:
                abort_connections()


async def _missing(client: ApiClient, resources: Iterable[Resource]) -> tuple[Resource, ...]:
    by_group: dict[str, list[Resource]] = {}
    for resource in resources:
        path = resource.path().rpartition("/")[0]
        by_group.setdefault(path, []).append(resource)
    missing: list[Resource] = []
    for path, required in by_group.items():
        try:
            served = {item["name"] for item in (await client.get_path(path))["resources"]}
        except NotFound:
            served = set()
        missing.extend(resource for resource in required if resource.plural not in served)
    return tuple(sorted(missing, key=lambda resource: resource.name))


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


def _refuse_overlaps(watches: tuple[WatchSpec, ...]) -> None:
    if not watches:
        raise ValueError("no watches: declare at least one")
    for spec, other in itertools.combinations(watches, 2):
        namespaces = {spec.namespace, other.namespace}
        if spec.resource == other.resource and (len(namespaces) == 1 or None in namespaces):
            raise ValueError(f"{spec.stream} is watched twice: merge the two watches")
