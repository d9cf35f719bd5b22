"""Several label selectors of one watch: an object belongs to it while any of them selects it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import kopf
import pytest
from kopf._cogs.clients import watching
from kopf._cogs.structs.references import Resource as KopfResource

from kube_scheduler_operator.base.backoff import Backoff
from kube_scheduler_operator.kube.kopf import settings, streams
from kube_scheduler_operator.kube.resource import NODES, WatchSpec

KOPF_NODES = KopfResource(group="", version="v1", plural="nodes", namespaced=False)
LISTED = watching.Bookmark.LISTED
FIRST, SECOND = "first", "second"


def node(kind: str | None, version: int, uid: str = "u1") -> dict[str, Any]:
    metadata = {"name": "a", "uid": uid, "resourceVersion": str(version)}
    return {"type": kind, "object": {"metadata": metadata}}


class Server:
    """Serves each selector: what is in its queue, to the watch that has it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queues: dict[str, asyncio.Queue[Any]] = {
            FIRST: asyncio.Queue(),
            SECOND: asyncio.Queue(),
        }
        self.opened: list[str] = []
        monkeypatch.setattr(streams, "infinite_watch", self._watch)
        self.rewound: list[str] = []
        self.failures: list[str] = []
        self.failed = asyncio.Event()

    def fail(self, _: Any, error: Exception) -> None:
        self.failures.append(str(error))
        self.failed.set()

    async def _watch(self, *, settings: kopf.OperatorSettings, **_: Any) -> AsyncIterator[Any]:
        (selector,) = settings.watching.label_selectors.collect(KOPF_NODES)
        self.opened.append(selector)
        while True:
            event = await self.queues[selector].get()
            if event is None:
                return
            if isinstance(event, Exception):
                raise event
            yield event

    def send(self, selector: str, *events: Any) -> None:
        for event in events:
            self.queues[selector].put_nowait(event)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


async def received(
    server: Server,
    count: int,
    *,
    quiet: float = 5.0,
    until: Callable[[], bool] = lambda: False,
) -> list[Any]:
    """The first events of the merged stream: type and version, and LISTED."""
    made = streams.Streams(
        [WatchSpec(NODES, label_selector=FIRST, or_label_selectors=(SECOND,))],
        tuning=settings.Tuning(relist=Backoff((0.001,)), quiet=quiet),
        listed=lambda _: None,
        failed=server.fail,
        rewound=server.rewound.append,
    )
    stream: Any = made.watch(settings=kopf.OperatorSettings(), resource=KOPF_NODES, namespace=None)
    found: list[Any] = []
    async with aclosing(stream) as events, asyncio.timeout(5):
        async for event in events:
            if event is LISTED:
                found.append(event)
            else:
                metadata = event["object"]["metadata"]
                found.append((event["type"], int(metadata["resourceVersion"])))
            if len(found) == count or until():
                return found
    return found


async def test_objects_of_all_selectors_come_before_the_one_mark(server: Server) -> None:
    server.send(FIRST, node(None, 5), LISTED)
    server.send(SECOND, node(None, 6, "u2"), LISTED, node("MODIFIED", 7, "u2"))
    found = await received(server, 5)
    assert found == [(None, 5), ("DELETED", 5), (None, 6), LISTED, ("MODIFIED", 7)]


async def test_object_that_loses_one_of_two_labels_is_not_deleted(server: Server) -> None:
    server.send(FIRST, node(None, 5), LISTED, node("MODIFIED", 6))
    server.send(SECOND, node(None, 5), LISTED, node("DELETED", 6), node("BOOKMARK", 9))
    found = await received(server, 5)
    assert ("DELETED", 6) not in found
    assert set(found) == {(None, 5), LISTED, ("MODIFIED", 6), ("BOOKMARK", 9)}


async def test_object_that_loses_both_labels_is_deleted_once(server: Server) -> None:
    server.send(FIRST, node(None, 5), LISTED, node("DELETED", 6), node("BOOKMARK", 9))
    server.send(SECOND, node(None, 5), LISTED, node("DELETED", 6), node("BOOKMARK", 9))
    found = await received(server, 6)
    assert found.count(("DELETED", 6)) == 1


async def test_label_that_comes_back_brings_the_object_back(server: Server) -> None:
    server.send(FIRST, node(None, 5), LISTED, node("DELETED", 6), node("ADDED", 7))
    server.send(SECOND, LISTED)
    assert await received(server, 4) == [(None, 5), LISTED, ("DELETED", 6), ("ADDED", 7)]


async def test_successor_is_not_hidden_by_the_late_deletion_of_the_object_it_replaced(
    server: Server,
) -> None:
    server.send(FIRST, node(None, 5), LISTED, node("DELETED", 6), node("ADDED", 7, "u2"))
    server.send(SECOND, node(None, 5), LISTED)
    found = await received(server, 5)
    assert found[-2:] == [("DELETED", 5), ("ADDED", 7)]
    assert (None, 5) in found


async def test_no_list_is_older_than_an_event_before_it(server: Server) -> None:
    """A list that began before another one looks like a restore of etcd from a backup."""
    server.send(FIRST, node(None, 8), LISTED, node("MODIFIED", 9))
    found = asyncio.create_task(received(server, 4))
    await asyncio.sleep(0.05)
    assert server.opened == [FIRST, SECOND]
    server.send(SECOND, node(None, 8), LISTED)
    assert await found == [(None, 8), (None, 8), LISTED, ("MODIFIED", 9)]
    assert server.rewound == []


@pytest.mark.parametrize("selector", [FIRST, SECOND])
async def test_all_are_listed_again_when_one_watch_fails(server: Server, selector: Any) -> None:
    server.send(FIRST, node(None, 5), LISTED)
    server.send(SECOND, LISTED)
    server.send(selector, OSError("broken"))

    async def recover() -> None:
        await server.failed.wait()
        server.send(FIRST, LISTED)
        server.send(SECOND, LISTED)

    recovering = asyncio.create_task(recover())
    assert await received(server, 4) == [(None, 5), LISTED, ("DELETED", 5), LISTED]
    await recovering
    assert server.failures == ["broken"]
    assert server.opened == [FIRST, SECOND] * 2


async def test_one_silent_watch_is_listed_again_although_the_other_one_has_events(
    server: Server,
) -> None:
    server.send(FIRST, node(None, 5), LISTED)
    server.send(SECOND, LISTED)

    async def talk() -> None:
        for version in itertools.count(6):
            server.send(FIRST, node("MODIFIED", version))
            await asyncio.sleep(0.02)

    talking = asyncio.create_task(talk())
    await received(server, 10**6, quiet=0.2, until=lambda: bool(server.failures))
    talking.cancel()
    assert server.failures == ["no event and no bookmark within 0.2 s"]
