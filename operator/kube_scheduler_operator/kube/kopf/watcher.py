"""Watching the cluster: a table of watches in, events out, for as long as the process lives.

kopf does the watching, in a thread and an event loop of its own. It believes that it owns its loop:
it replaces signal handlers, and at its end cancels every task that was started after it. Over there
it can do no harm, and should it ever end it is simply started again. Events and marks reach the
caller in its own loop, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ..api import Object
from ..client import ApiClient
from ..errors import KubeError, NotFound
from ..resource import Resource, Stream
from .imports import kopf
from .settings import Login, Tuning, quiet, settings
from .streams import TICKET, Shim, Watch, WatchObserver, install

if TYPE_CHECKING:
    from ..credentials import Credentials

__all__ = ["OnEvent", "OnListed", "Tuning", "Watch", "WatchObserver", "Watcher"]

_log = logging.getLogger(__name__)

OnEvent: TypeAlias = Callable[[Resource, str, Object], None]
"""Takes a kind, "ADDED", "MODIFIED" or "DELETED", and an object, whole unless it was deleted."""

OnListed: TypeAlias = Callable[[Stream], None]
"""Takes a stream of which everything there is has been delivered."""


class Watcher:
    """Delivers what happens to the declared objects.

    Args:
        watches: what to watch; one watch per kind and namespace.
        on_event: called for every change. An object that is listed is "ADDED", also when it is
            listed again. A deleted one may be reduced to its metadata.
        on_listed: called when a stream was listed, after all its objects were delivered.
        observer: told of trouble.
        tuning: pauses.

    Raises:
        ValueError: two watches overlap.
    """

    def __init__(
        self,
        watches: Iterable[Watch],
        *,
        on_event: OnEvent,
        on_listed: OnListed,
        observer: WatchObserver | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self._watches = tuple(watches)
        _refuse_overlaps(self._watches)
        self._on_event = on_event
        self._on_listed = on_listed
        self._observer = observer
        self._tuning = tuning or Tuning()
        self._shim = Shim(
            self._watches, tuning=self._tuning, listed=self._post_listed, failed=self._trouble
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._said: dict[Stream | None, str] = {}
        self._appeared = ""
        self.missing: tuple[Resource, ...] = ()

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The keys of all watches, but for optional ones of kinds that the API does not serve."""
        return tuple(
            stream
            for stream, line in self._shim.lines.items()
            if not (line.watch.optional and stream.resource in self.missing)
        )

    def ages(self) -> Mapping[Stream, float]:
        """Seconds since each stream was heard, bookmarks included; infinite if never."""
        now = time.monotonic()
        heard = {stream: self._shim.lines[stream].heard_at for stream in self.streams}
        return {stream: float("inf") if at is None else now - at for stream, at in heard.items()}

    async def run(self, credentials: Credentials, stop: asyncio.Event) -> None:
        """Watch until `stop` is set. Waits for missing kinds, and outlives every fault."""
        self._loop = asyncio.get_running_loop()
        quiet()
        pause, longest = self._tuning.restart
        while not stop.is_set():
            if not await self._kinds_served(credentials, stop):
                return
            started = time.monotonic()
            thread = _Thread(lambda flag: self._operate(credentials, flag), self._tuning.check)
            looking = asyncio.create_task(self._look_for_missing(credentials))
            try:
                await thread.run(stop, self._stuck)
            finally:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)
            if stop.is_set():
                return
            if self._appeared and thread.error is None:
                continue
            self._trouble(None, thread.error or RuntimeError(thread.verdict))
            if time.monotonic() - started >= self._tuning.stable:
                pause = self._tuning.restart[0]
            await _pause(stop, pause)
            pause = min(2 * pause, longest)

    async def _operate(self, credentials: Credentials, flag: asyncio.Event) -> None:
        """One life of kopf, in its own loop."""
        registry = kopf.OperatorRegistry()
        login = Login(credentials, failed=lambda error: self._trouble(None, error))
        kopf.on.login(id="login", registry=registry)(login.identify)

        # At its end kopf waits five seconds for the task that waits for this flag.
        @kopf.on.cleanup(id="wave", registry=registry)
        async def wave(**_: Any) -> None:
            flag.set()

        for resource in {stream.resource for stream in self.streams}:
            kopf.on.event(
                group=resource.group,
                version=resource.version,
                plural=resource.plural,
                id=f"forward-{resource}",
                registry=registry,
            )(self._forwarder(resource))
        install(self._shim)
        # kopf asks for the user's name; nothing uses it, and a container's user may have none.
        os.environ.setdefault("LOGNAME", "kopf")
        await kopf.operator(
            registry=registry,
            settings=settings(self._tuning),
            standalone=True,
            namespaces=self._shim.namespaces,
            clusterwide=not self._shim.namespaces,
            stop_flag=flag,
        )

    def _forwarder(self, resource: Resource) -> Callable[..., Awaitable[None]]:
        async def forward(event: Any, **_: Any) -> None:
            ticket = event.get(TICKET)
            try:
                self._post(self._deliver, resource, event["type"] or "ADDED", event["object"])
            finally:
                if ticket is not None:
                    ticket.settle()

        return forward

    def _deliver(self, resource: Resource, kind: str, obj: Object) -> None:
        try:
            self._on_event(resource, kind, obj)
        except Exception:
            name = obj.get("metadata", {}).get("name")
            _log.exception("%s of %s %s was not taken in", kind, resource, name)

    def _post_listed(self, stream: Stream) -> None:
        self._said.pop(stream, None)
        if self._observer:
            self._observer.listed(stream)
        self._post(self._on_listed, stream)

    def _post(self, function: Callable[..., None], *arguments: object) -> None:
        """Call in the caller's loop, after everything that was posted before."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def _trouble(self, stream: Stream | None, error: Exception) -> None:
        # kopf's errors have the whole Status as a second argument; the first says it.
        text = str(error.args[0] if error.args else "") or type(error).__name__
        if self._said.get(stream) != text:
            _log.warning("watching %s failed, trying again: %s", stream or "the cluster", text)
            self._said[stream] = text
        if self._observer:
            self._observer.failed(stream, error)

    def _stuck(self, running: float) -> str:
        """Why kopf should be started again after `running` seconds; empty if it should not."""
        if self._appeared:
            return self._appeared
        if running < min(self._tuning.start, self._tuning.silence):
            return ""
        for stream in self.streams:
            if not self._shim.lines[stream].opened and running > self._tuning.start:
                return f"kopf has not opened {stream}"
            silent = min(self.ages()[stream], running)
            if silent > self._tuning.silence:
                return f"nothing heard from {stream} for {silent:.0f} s"
        return ""

    async def _kinds_served(self, credentials: Credentials, stop: asyncio.Event) -> bool:
        """Wait until the API serves every kind: kopf never looks again. False if stopped first."""
        async with ApiClient(credentials, field_manager="watch", backoffs=()) as client:
            while not stop.is_set():
                try:
                    missing = await _missing(client, {watch.resource for watch in self._watches})
                except KubeError as error:
                    self._trouble(None, error)
                else:
                    self._report_missing(missing)
                    if self._dispensable.issuperset(missing):
                        self._appeared = ""
                        return True
                await _pause(stop, self._tuning.discovery)
        return False

    async def _look_for_missing(self, credentials: Credentials) -> None:
        """Ask now and then for the kinds that nobody waits for; return when one is served."""
        if not self.missing:
            return
        async with ApiClient(credentials, field_manager="watch", backoffs=()) as client:
            while True:
                await asyncio.sleep(self._tuning.appearing)
                with contextlib.suppress(KubeError):
                    served = set(self.missing) - set(await _missing(client, self.missing))
                    if served:
                        names = ", ".join(sorted(resource.name for resource in served))
                        self._appeared = f"the API serves {names} now"
                        _log.info("%s", self._appeared)
                        return

    @property
    def _dispensable(self) -> frozenset[Resource]:
        """Kinds without which there is something to do."""
        needed = {watch.resource for watch in self._watches if not watch.optional}
        return frozenset(watch.resource for watch in self._watches) - needed

    def _report_missing(self, missing: tuple[Resource, ...]) -> None:
        if missing == self.missing:
            return
        self.missing = missing
        names = ", ".join(resource.name for resource in missing)
        if missing and self._dispensable.issuperset(missing):
            _log.warning("going on without kinds that the API does not serve; CRD: %s", names)
        elif missing:
            _log.warning("waiting for kinds that the API does not serve; install CRD: %s", names)
        else:
            _log.info("all kinds are served now")
        if self._observer:
            self._observer.missing(missing)


class _Thread:
    """A coroutine in a loop and thread of its own, with a flag to stop it."""

    def __init__(self, main: Callable[[asyncio.Event], Awaitable[None]], check: float) -> None:
        self._main = main
        self._check = check
        self._stopping = False
        self._stopper: Callable[[], object] | None = None
        self.error: Exception | None = None
        self.verdict = "kopf ended"

    async def run(self, stop: asyncio.Event, stuck: Callable[[float], str]) -> None:
        """Run until it ends, `stop` is set, or `stuck` gives a reason to end it."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def body() -> None:
            try:
                asyncio.run(self._guarded())
            except Exception as error:  # reported by the caller, whatever it is
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
                    self.verdict = reason
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
            await self._main(flag)


async def _missing(client: ApiClient, resources: Iterable[Resource]) -> tuple[Resource, ...]:
    by_group: dict[str, list[Resource]] = {}
    for resource in resources:
        path = resource.path().rpartition("/")[0]
        by_group.setdefault(path, []).append(resource)
    missing: list[Resource] = []
    for path, wanted in by_group.items():
        try:
            served = {item["name"] for item in (await client.get_path(path))["resources"]}
        except NotFound:
            served = set()
        missing.extend(resource for resource in wanted if resource.plural not in served)
    return tuple(sorted(missing, key=lambda resource: resource.name))


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass


def _refuse_overlaps(watches: tuple[Watch, ...]) -> None:
    if not watches:
        raise ValueError("nothing to watch")
    for index, watch in enumerate(watches):
        for other in watches[index + 1 :]:
            if watch.resource == other.resource and (
                watch.namespace == other.namespace or None in (watch.namespace, other.namespace)
            ):
                raise ValueError(f"{watch.stream} is watched twice: merge the two watches")
