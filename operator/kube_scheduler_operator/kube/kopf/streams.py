"""kopf's watch streams, limited to declared watches, with every deletion reported.

All streams of kopf go through one private function, `infinite_watch`. `install` replaces it with
`Streams.watch`, which calls the original for one round at a time: one list, and the watches that
continue it. What kopf lacks here is described in the package.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any, Final, cast

from ...base.bounded_cache import Recent
from ...base.objects import uid_of, version_of
from ..api import Object
from ..oversized import LEFT_OUT
from ..resource import Stream, WatchSpec
from .decoding import event_within_limits, install_decoder
from .imports import check_private_names, infinite_watch, kopf, watching
from .merging import Selected, merged, quiet_ends
from .settings import Tuning

_log = logging.getLogger(__name__)

_REMEMBERED: Final = 1024
"""Number of remembered deletions of one stream."""

TICKET: Final = "ticket"
"""Key in a raw event of a list: the Ticket that `Session.deliver` settles."""


class Ticket:
    """Counts the events of one list that the handler has not received yet."""

    def __init__(self, settled: Callable[[], None]) -> None:
        self._open = 1  # the list itself
        self._settled = settled

    def issue(self) -> None:
        """Note one more event that was sent."""
        self._open += 1

    def settle(self) -> None:
        """Note an event that was received, or the end of the list."""
        self._open -= 1
        if self._open == 0:
            self._settled()


class StreamState:
    """The state of one stream; survives new lists and restarts of kopf."""

    def __init__(self, spec: WatchSpec) -> None:
        self.spec = spec
        self.opened = False
        self.received_at: float | None = None
        self.known: dict[tuple[str | None, str], Object] = {}
        self._deleted: Recent[str, int] = Recent(_REMEMBERED)  # uid -> version of the deletion

    def received(self) -> None:
        """Note an event or a bookmark of the server."""
        self.received_at = time.monotonic()

    def contradiction(self, listed: Object) -> str:
        """Return why an object of a list proves that etcd was restored; empty if it does not.

        The list was read after all that this stream has delivered.
        """
        known, version = self.known.get(_key(listed)), version_of(listed)
        before = self._deleted.get(uid_of(listed), 0) if known is None else version_of(known)
        if version >= before:
            return ""
        if LEFT_OUT in listed:
            return ""  # the version is not known
        name = listed["metadata"]["name"]
        return f"{self.spec.stream}: {name} has resourceVersion {version} after {before}"

    def follow(self, event: Object) -> list[Object]:
        """Track `event`; return the events to emit: it, after the end of a replaced object."""
        key, slim = _key(event["object"]), _slim(event["object"])
        before = self.known.get(key)
        if LEFT_OUT in event["object"]:  # it exists; only a list without it is its deletion
            self.known[key] = slim
            return [_deleted(event["object"])]
        other = before is not None and uid_of(before) != uid_of(slim)
        if event["type"] == "DELETED":
            if not other:
                self.known.pop(key, None)
            self._deleted.keep(uid_of(slim), version_of(slim))
            return [event]
        self.known[key] = slim
        return [_deleted(before), event] if before is not None and other else [event]

    def vanished(self, seen: set[tuple[str | None, str]]) -> list[Object]:
        """Make DELETED events for all known objects that are not in a complete list."""
        return [_deleted(self.known.pop(key)) for key in set(self.known) - seen]


class Streams:
    """The streams of declared watches, one per kind and namespace, as replacements of kopf's.

    `listed` is called when every event of a list was received, `failed` with the error that ended a
    stream, `rewound` with the evidence that etcd was restored from a backup.
    """

    def __init__(
        self,
        watches: Iterable[WatchSpec],
        *,
        tuning: Tuning,
        listed: Callable[[Stream], None],
        failed: Callable[[Stream | None, Exception], None],
        rewound: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.states = {spec.stream: StreamState(spec) for spec in watches}
        self.namespaces = tuple(
            sorted({stream.namespace for stream in self.states if stream.namespace})
        )
        self._tuning = tuning
        self._listed = listed
        self._failed = failed
        self._rewound = rewound

    def find(self, group: str, plural: str, namespace: str | None) -> StreamState | None:
        """Find the declared stream that serves kopf's request for a kind in a namespace, if any."""
        for stream, state in self.states.items():
            resource = stream.resource
            if (resource.group, resource.plural) != (group, plural):
                continue
            if stream.namespace == namespace:
                return state
            # kopf requests each namespace; a stream of all namespaces serves the first request.
            if stream.namespace is None and self.namespaces[:1] == (namespace,):
                return state
        return None

    async def watch(
        self,
        *,
        settings: kopf.OperatorSettings,
        resource: Any,
        namespace: str | None,
        operator_paused: Any = None,
        **_: Any,
    ) -> AsyncIterator[watching.Bookmark | Object]:
        """Replaces kopf's `infinite_watch`."""
        state = self.find(resource.group, resource.plural, namespace)
        if state is None:
            await asyncio.Event().wait()  # undeclared: no request, so no permission is needed
            return
        state.opened = True
        delay, closed = 0.0, False
        while True:
            started = time.monotonic()
            sources = [
                quiet_ends(
                    infinite_watch(
                        settings=_narrowed(settings, state.spec, selector),
                        resource=resource,
                        namespace=cast("Any", state.spec.namespace),
                        operator_paused=operator_paused,
                        _iterations=1,
                    ),
                    self._tuning.quiet,
                )
                for selector in (state.spec.label_selector, *state.spec.or_label_selectors)
            ]
            try:
                async with aclosing(self._round(state, merged(sources))) as events:
                    async for event in events:
                        try:
                            yield event
                        except GeneratorExit:
                            closed = True
                            raise
            except Exception as error:  # one stream must not stop the operator
                if closed:
                    # kopf does not close streams. The loop closes those that are garbage, and the
                    # generators that they read from, side by side; one of them comes second.
                    return
                self._failed(state.spec.stream, error)
            if time.monotonic() - started >= self._tuning.stable:
                delay = 0.0
            delay = self._tuning.relist.after(delay)
            await asyncio.sleep(delay * random.uniform(1.0, 1.25))  # noqa: S311 - jitter

    async def _round(
        self, state: StreamState, source: AsyncGenerator[tuple[int, Any], None]
    ) -> AsyncGenerator[watching.Bookmark | Object, None]:
        """Yield a list and its watches, with DELETED events for objects that vanished before it."""
        seen: set[tuple[str | None, str]] = set()
        selected = Selected()
        ticket: Ticket | None = Ticket(lambda: self._listed(state.spec.stream))
        async with aclosing(source) as raw_events:
            async for index, event in raw_events:
                state.received()
                if event is watching.Bookmark.LISTED:
                    for deleted in state.vanished(seen):
                        yield _ticketed(deleted, ticket)
                    yield event
                    if ticket is not None:
                        ticket.settle()
                    ticket = None
                elif event["type"] == "BOOKMARK":
                    yield event
                elif not selected.remains(index, event):
                    event = event_within_limits(event)
                    if event["type"] is None:
                        seen.add(_key(event["object"]))
                        if evidence := state.contradiction(event["object"]):
                            self._rewound(evidence)
                    for emitted in state.follow(event):
                        yield _ticketed(emitted, ticket)


_current: contextvars.ContextVar[Streams | None] = contextvars.ContextVar("streams", default=None)


def install(streams: Streams) -> None:
    """Replace the streams of the kopf operator in the current context.

    Raises:
        RuntimeError: this kopf is not supported.
    """
    check_private_names()
    install_decoder()
    _current.set(streams)
    watching.infinite_watch = _dispatch


def _dispatch(**kwargs: Any) -> AsyncIterator[Any]:
    streams = _current.get()
    return infinite_watch(**kwargs) if streams is None else streams.watch(**kwargs)


def _narrowed(
    settings: kopf.OperatorSettings, spec: WatchSpec, label_selector: str | None
) -> kopf.OperatorSettings:
    """Set the selectors of one watch; kopf has one selector for all namespaces."""
    unselected = kopf.OperatorSettings().watching
    narrowed = dataclasses.replace(
        settings.watching,
        label_selectors=unselected.label_selectors,
        field_selectors=unselected.field_selectors,
    )
    if label_selector:
        narrowed.label_selectors[kopf.EVERYTHING] = label_selector
    if spec.field_selector:
        narrowed.field_selectors[kopf.EVERYTHING] = spec.field_selector
    return dataclasses.replace(settings, watching=narrowed)


def _ticketed(event: Object, ticket: Ticket | None) -> Object:
    if ticket is None:
        return event
    ticket.issue()
    return {**event, TICKET: ticket}


def _key(obj: Object) -> tuple[str | None, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace"), metadata["name"]


def _slim(obj: Object) -> Object:
    """Return the part of an object that its DELETED event needs."""
    fields = ("name", "namespace", "uid", "resourceVersion", "labels")
    metadata = {key: obj["metadata"][key] for key in fields if key in obj["metadata"]}
    return {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), "metadata": metadata}


def _deleted(obj: Object) -> Object:
    return {"type": "DELETED", "object": obj}
