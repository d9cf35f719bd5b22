"""Several lists and watches of one kind as one stream: selectors have no OR between labels.

An object is part of the stream while any of the selectors selects it. Each source is one list and
the watches that continue it. Lists run one after the other, and watches begin after all lists, so
no event is older than its predecessor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, cast

from ..api import Object
from .imports import watching

Key = tuple[str | None, str]
_Queue = asyncio.Queue[tuple[int, Any]]


async def quiet_ends(source: AsyncIterator[Any], seconds: float) -> AsyncGenerator[Any, None]:
    """Yield the events of `source`.

    Raises:
        TimeoutError: no event came for that long. kopf continues a silent watch at its version,
            which may be one that a restore of etcd has taken back: then nothing comes before it is
            reached again. A list ends that.
    """
    async with aclosing(cast("Any", source)) as events:
        while True:
            try:
                async with asyncio.timeout(seconds):
                    event = await anext(events, None)
            except TimeoutError as error:
                text = f"no event and no bookmark within {seconds:g} s"
                raise TimeoutError(text) from error
            if event is None:
                return
            yield event


async def merged(sources: Sequence[AsyncIterator[Any]]) -> AsyncGenerator[tuple[int, Any], None]:
    """Yield the events of all sources, with the index of their source, until one of them ends.

    There is one Bookmark.LISTED, after all lists.
    """
    queue: _Queue = asyncio.Queue(1)
    listed = [asyncio.Event() for _ in sources]
    # A source uses timeouts of its task, so each stays in one task.
    tasks = [
        asyncio.create_task(_read(index, source, listed, queue))
        for index, source in enumerate(sources)
    ]
    try:
        while True:
            index, event = await queue.get()
            if event is None:
                return
            if isinstance(event, Exception):
                raise event
            yield index, event
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(
    index: int, source: AsyncIterator[Any], listed: Sequence[asyncio.Event], queue: _Queue
) -> None:
    """Put the events of one source into the queue, then None or its error.

    `listed` has an event for each source: its list has ended.
    """
    try:
        async with aclosing(cast("Any", source)) as events:
            if index:
                await listed[index - 1].wait()
            async for event in events:
                if event is not watching.Bookmark.LISTED:
                    await queue.put((index, event))
                    continue
                if listed[index] is listed[-1]:
                    await queue.put((index, event))  # before the watches go on
                listed[index].set()
                await listed[-1].wait()
        await queue.put((index, None))
    except Exception as error:  # raised by `merged`
        await queue.put((index, error))


class Selected:
    """Which sources select an object."""

    def __init__(self) -> None:
        self._sources: dict[Key, tuple[str, set[int]]] = {}  # with the object's uid

    def remains(self, index: int, event: Object) -> bool:
        """Note an event of a source; return whether another source still selects a deleted object.

        An object that loses a label is deleted for the selector of that label only.
        """
        metadata = event["object"]["metadata"]
        key, uid = (metadata.get("namespace"), metadata["name"]), str(metadata.get("uid"))
        known, sources = self._sources.get(key, ("", set()))
        if event["type"] != "DELETED":
            self._sources[key] = (uid, ({*sources} if known == uid else set()) | {index})
            return False
        if known != uid:
            return False  # an object that was replaced
        sources.discard(index)
        if not sources:
            del self._sources[key]
        return bool(sources)
