"""One kube-scheduler for several questions about a world, one after the other.

Starting one and telling it about 5,000 nodes takes seconds, most questions tenths of a second. A
run is used again only as if it was new: for the same world and options, if kube-scheduler bound and
preempted nothing and all objects are those of the beginning.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from ..kube.resource import Resource
from .kinds import PODS, Object
from .run import Run
from .run_options import RunOptions
from .world import Entry, Key, World

Runs = Callable[[World, RunOptions, Sequence[Object]], AbstractAsyncContextManager[Run]]
"""Returns a run over a world for questions about some pods: `Run`, or `SharedRuns.run`."""

_Seen = Mapping[Resource, Mapping[Key, Entry]]


@dataclass(frozen=True, slots=True)
class _Shared:
    run: Run
    options: RunOptions
    seen: _Seen
    ends: AsyncExitStack = field(default_factory=AsyncExitStack)


class SharedRuns:
    """Runs for questions about these pods, as an asynchronous context manager."""

    def __init__(self, pods: Sequence[Object]) -> None:
        self._pods = pods
        self._shared: _Shared | None = None  # not in use

    async def __aenter__(self) -> SharedRuns:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._end()

    @asynccontextmanager
    async def run(
        self, world: World, options: RunOptions, _pods: Sequence[Object]
    ) -> AsyncIterator[Run]:
        """Return a run that is as if it was new; the pods are some of those of all questions.

        Raises:
            SimulationError: kube-scheduler does not start.
        """
        seen = _seen(world)
        shared = self._shared
        if shared is None or shared.options != options or shared.seen != seen:
            await self._end()
            shared = _Shared(Run(world, options, self._pods), options, seen)
            await shared.ends.enter_async_context(shared.run)
        self._shared = None
        async with AsyncExitStack() as ends:
            ends.push_async_exit(shared.ends)
            shared.run.renew()
            yield shared.run
            if shared.run.is_as_new:
                ends.pop_all()
                self._shared = shared

    async def _end(self) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared.ends.aclose()


def _seen(world: World) -> _Seen:
    """Return what a run shows of a world: of waiting pods those that may hold room."""
    pods = {
        key: entry
        for key, entry in world.objects[PODS].items()
        if entry.node or b'"nominatedNodeName"' in entry.content
    }
    return {**world.objects, PODS: pods}
