"""What kopf's watch streams lack: nothing deleted is lost, no fault is fatal, no more is read.

kopf 1.45 forgets to report objects that vanished while it had to list again, stops the whole
operator when one stream fails, and watches every kind in every namespace. All streams go through
one function of it, `infinite_watch`; the shim wraps that one and calls it for one pass at a time:
one list, and the watches that follow it until they cannot be continued.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import inspect
import logging
import random
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from ..resource import Resource, Stream
from .imports import OperatorSettings, WatchingSettings, kopf, watching

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable

    from ..api import Object
    from .settings import Tuning

_log = logging.getLogger(__name__)

TICKET: Final = "ticket"
"""Key in a raw event: what the handler settles when it has handled an event of a list."""


@dataclasses.dataclass(frozen=True, slots=True)
class Watch:
    """A declared watch.

    Attributes:
        resource: the kind.
        namespace: where; None for cluster-scoped kinds, or for everywhere.
        label_selector: only objects with these labels, e.g. "app=installer".
        field_selector: only objects with these fields, e.g. "metadata.name=cluster".
        optional: an API that does not serve the kind is no reason to wait.
    """

    resource: Resource
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    optional: bool = False

    def __post_init__(self) -> None:
        if self.namespace and not self.resource.namespaced:
            raise ValueError(f"{self.resource} is cluster-scoped: watch it without a namespace")

    @property
    def stream(self) -> Stream:
        """The key of the watch."""
        return Stream(self.resource, self.namespace)


class WatchObserver(Protocol):
    """Told of trouble with watches, for metrics and conditions. Called in any thread."""

    def missing(self, resources: tuple[Resource, ...]) -> None:
        """The API does not serve these kinds (yet); empty when it does."""

    def failed(self, stream: Stream | None, error: Exception) -> None:
        """A stream, or (None) watching as a whole, failed; it is tried again."""

    def listed(self, stream: Stream) -> None:
        """A stream was listed, for the first time or again."""


class Ticket:
    """Counts the events of one list that are still on their way to the handler."""

    def __init__(self, settled: Callable[[], None]) -> None:
        self._open = 1  # the list itself
        self._settled = settled

    def issue(self) -> None:
        """One more event is on its way."""
        self._open += 1

    def settle(self) -> None:
        """One event has arrived, or the list is complete."""
        self._open -= 1
        if self._open == 0:
            self._settled()


class Line:
    """The state of one stream; outlives passes and restarts of kopf."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.opened = False
        self.heard_at: float | None = None
        self.known: dict[tuple[str | None, str], Object] = {}

    def heard(self) -> None:
        """The server is talking to us."""
        self.heard_at = time.monotonic()

    def follow(self, event: Object) -> list[Object]:
        """Keep track of `event`; returns what to emit: its forgotten predecessor's end, and it."""
        key, slim = _key(event["object"]), _slim(event["object"])
        held = self.known.get(key)
        other = held is not None and _uid(held) != _uid(slim)
        if event["type"] == "DELETED":
            if not other:
                self.known.pop(key, None)
            return [event]
        self.known[key] = slim
        return [_deleted(held), event] if held is not None and other else [event]

    def vanished(self, seen: set[tuple[str | None, str]]) -> list[Object]:
        """The ends of all known objects that a complete list did not have."""
        return [_deleted(self.known.pop(key)) for key in set(self.known) - seen]


class Shim:
    """Serves kopf's streams from a table of declared watches.

    Args:
        watches: the table; one watch per kind and namespace.
        tuning: pauses.
        listed: called when every event of a list has been handled.
        failed: called with what ended a stream.
    """

    def __init__(
        self,
        watches: Iterable[Watch],
        *,
        tuning: Tuning,
        listed: Callable[[Stream], None],
        failed: Callable[[Stream | None, Exception], None],
    ) -> None:
        self.lines = {watch.stream: Line(watch) for watch in watches}
        self.namespaces = tuple(
            sorted({stream.namespace for stream in self.lines if stream.namespace})
        )
        self._tuning = tuning
        self._listed = listed
        self._failed = failed

    def line(self, group: str, plural: str, namespace: str | None) -> Line | None:
        """The line that answers kopf's request for a kind in a namespace, if it is declared."""
        for stream, line in self.lines.items():
            resource = stream.resource
            if (resource.group, resource.plural) != (group, plural):
                continue
            if stream.namespace == namespace:
                return line
            # kopf asks per namespace; what is declared for all of them is answered once.
            if stream.namespace is None and self.namespaces[:1] == (namespace,):
                return line
        return None

    async def watch(
        self,
        *,
        settings: OperatorSettings,
        resource: Any,
        namespace: str | None,
        operator_paused: Any = None,
        **_: Any,
    ) -> AsyncIterator[watching.Bookmark | Object]:
        """Stands in for kopf's `infinite_watch`."""
        line = self.line(resource.group, resource.plural, namespace)
        if line is None:
            await asyncio.Event().wait()  # undeclared: no request, so no permission is needed
            return
        line.opened = True
        pause, longest = self._tuning.relist
        while True:
            started = time.monotonic()
            source = watching_original(
                settings=_narrowed(settings, line.watch),
                resource=resource,
                namespace=cast("Any", line.watch.namespace),
                operator_paused=operator_paused,
                _iterations=1,
            )
            try:
                async with aclosing(self._pass(line, source)) as events:
                    async for event in events:
                        yield event
            except Exception as error:  # whatever it is, one stream must not stop the operator
                self._failed(line.watch.stream, error)
            if time.monotonic() - started >= self._tuning.stable:
                pause = self._tuning.relist[0]
            await asyncio.sleep(pause * random.uniform(1.0, 1.25))  # noqa: S311 - jitter
            pause = min(2 * pause, longest)

    async def _pass(
        self, line: Line, source: AsyncIterator[Any]
    ) -> AsyncGenerator[watching.Bookmark | Object, None]:
        """One list and its watches, with the ends of vanished objects added."""
        seen: set[tuple[str | None, str]] = set()
        ticket: Ticket | None = Ticket(lambda: self._listed(line.watch.stream))
        async with aclosing(cast("Any", source)) as raw_events:
            async for event in raw_events:
                line.heard()
                if event is watching.Bookmark.LISTED:
                    for end in line.vanished(seen):
                        yield _ticketed(end, ticket)
                    yield event
                    if ticket is not None:
                        ticket.settle()
                    ticket = None
                elif event["type"] == "BOOKMARK":
                    yield event
                else:
                    if event["type"] is None:
                        seen.add(_key(event["object"]))
                    for each in line.follow(event):
                        yield _ticketed(each, ticket)


_current: contextvars.ContextVar[Shim | None] = contextvars.ContextVar("shim", default=None)
watching_original = watching.infinite_watch


def install(shim: Shim) -> None:
    """Have the kopf operators of the current context stream through `shim`.

    Raises:
        RuntimeError: kopf has changed where the shim holds on to it.
    """
    parameters = inspect.signature(watching_original).parameters
    expected = {"settings", "resource", "namespace", "operator_paused", "_iterations"}
    if set(parameters) != expected or [mark.name for mark in watching.Bookmark] != ["LISTED"]:
        raise RuntimeError(
            f"kopf's infinite_watch has changed ({sorted(parameters)}): pin kopf>=1.45.2,<1.46"
        )
    _current.set(shim)
    watching.infinite_watch = _dispatch


def _dispatch(**kwargs: Any) -> AsyncIterator[Any]:
    shim = _current.get()
    return watching_original(**kwargs) if shim is None else shim.watch(**kwargs)


def _narrowed(settings: OperatorSettings, watch: Watch) -> OperatorSettings:
    """`settings` with the selectors of one watch: kopf's own are per kind, not per namespace."""
    narrowed: WatchingSettings = dataclasses.replace(
        settings.watching,
        label_selectors=WatchingSettings().label_selectors,
        field_selectors=WatchingSettings().field_selectors,
    )
    if watch.label_selector:
        narrowed.label_selectors[kopf.EVERYTHING] = watch.label_selector
    if watch.field_selector:
        narrowed.field_selectors[kopf.EVERYTHING] = watch.field_selector
    return dataclasses.replace(settings, watching=narrowed)


def _ticketed(event: Object, ticket: Ticket | None) -> Object:
    if ticket is None:
        return event
    ticket.issue()
    return {**event, TICKET: ticket}


def _key(obj: Object) -> tuple[str | None, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace"), metadata["name"]


def _uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid"))


def _slim(obj: Object) -> Object:
    """As much of an object as its end will need."""
    kept = ("name", "namespace", "uid", "resourceVersion", "labels")
    metadata = {key: obj["metadata"][key] for key in kept if key in obj["metadata"]}
    return {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), "metadata": metadata}


def _deleted(obj: Object) -> Object:
    return {"type": "DELETED", "object": obj}
