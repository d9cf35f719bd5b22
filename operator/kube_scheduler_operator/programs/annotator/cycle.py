"""The cycle: every node is asked once in it, at a time of its own, and written if it is worth it.

Nodes are spread over the cycle by their names, so neither they nor the API server see bursts, and
each keeps its time over restarts. A node that does not answer is asked more and more rarely, and
waits for its answer in a lane of its own: it takes nobody's place.
"""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...base.klog import kv
from ...kube.errors import Conflict, KubeError, NotFound
from ...kube.resource import NODES, ObjectRef
from ...load.policy import LoadPolicy, time_zone
from . import annotation
from .counters import Counters
from .measurement import Load, SourceError
from .nodes import Fleet, Node
from .patch_filter import requested_changed, why_write

if TYPE_CHECKING:
    from ...kube.api import Api, Object
    from .sources import Source

log = logging.getLogger(__name__)

HEALTHY: Final = 128
"""Nodes that are asked at the same time."""

SUSPECT: Final = 64
"""The same, of those that did not answer the last time."""

WRITES: Final = 32
"""PATCHes at the same time."""

LONGEST_PAUSE: Final = 300.0
"""A node that never answers is asked so often, seconds."""

SPREAD: Final = 0.9
"""Looks are spread over this share of a cycle; in the rest the last ones get their answers."""

FIRST_SPREAD: Final = 0.5
"""The same for the first looks: nothing is known yet."""

NUDGE_SECONDS: Final = 10.0
"""A node whose hot value has changed is not written more often than so, seconds."""

_API_PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)


class Bindings(Protocol):
    """What the pods of a node come to."""

    def hot(self, node: str, now: float) -> int:
        """Crane's hot value of a node at a time, seconds since 1970."""

    def requested(self, node: str) -> Mapping[str, float]:
        """Resource -> sum of the requests of a node's pods."""


class Annotator:
    """Asks and writes, while its process leads.

    Args:
        api: where nodes are.
        policy: what to measure and what matters.
        source: where load is measured; closed at the end.
        bindings: for crane's and safe's annotations; None: hot values and requests are not written.
        counters: what is done is counted here.
        now: seconds since 1970.

    Attributes:
        fleet: the nodes; whoever watches them tells it.
    """

    def __init__(
        self,
        api: Api,
        policy: LoadPolicy,
        source: Source,
        *,
        bindings: Bindings | None = None,
        counters: Counters | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.fleet = Fleet(self._arrived, self._left)
        self.policy, self.source, self.bindings = policy, source, bindings
        self.counters = counters or Counters()
        self.api_trouble = ""
        self._api, self._now = api, now
        self._zone = time_zone(policy.crane_zone)
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._unseen: set[str] = set()
        self._all_listed = False
        self._healthy, self._suspect = asyncio.Semaphore(HEALTHY), asyncio.Semaphore(SUSPECT)
        self._writing = asyncio.Semaphore(WRITES)
        self._api_failures, self._api_resume = 0, float("-inf")
        self._stopped = False
        self.counters.first_cycle = None  # of this leadership

    def listed(self) -> None:
        """All nodes that there are have been seen."""
        self._all_listed = True
        self._note_first_cycle()

    def use(self, policy: LoadPolicy, source: Source | None = None) -> None:
        """From now on go by another policy, and if given, ask another source."""
        old, self.policy, self._zone = self.policy, policy, time_zone(policy.crane_zone)
        if source is not None:
            self.source = source
        if policy.cycle != old.cycle or source is not None:
            for node in self.fleet:
                node.failures = 0
                self._schedule(node, self._first_due(node))

    def nudge(self, name: str) -> None:
        """A node's pods have changed: look at it soon if that changes what is written of them."""
        node = self.fleet.get(name)
        if node is None or self.bindings is None or annotation.CRANE not in self.policy.write:
            return
        if node.load is None or self.bindings.hot(name, self._now()) == (node.hot or 0):
            return
        soon = max(self._loop.time(), node.patched_at + NUDGE_SECONDS)
        timer = self._timers.get(name)
        if timer is None or timer.when() > soon:
            self._schedule(node, soon)
            node.due = None

    async def stop(self) -> None:
        """End all that is going on."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        looking = list(self._looking.values())
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
        await self.source.close()

    # --- when ---------------------------------------------------------------------------------

    def _arrived(self, node: Node) -> None:
        self._unseen.add(node.name)
        self._schedule(node, self._first_due(node))

    def _left(self, node: Node) -> None:
        timer = self._timers.pop(node.name, None)
        if timer is not None:
            timer.cancel()
        task = self._looking.pop(node.name, None)
        if task is not None:
            task.cancel()
        self._unseen.discard(node.name)

    def _schedule(self, node: Node, due: float) -> None:
        timer = self._timers.get(node.name)
        if timer is not None:
            timer.cancel()
        node.due = due
        self._timers[node.name] = self._loop.call_at(due, self._begin, node)

    def _first_due(self, node: Node) -> float:
        return self._loop.time() + _phase(node.name) * FIRST_SPREAD * self.policy.cycle

    def _next_due(self, node: Node) -> float:
        """The node's next turn, the first one that is not half a cycle from now."""
        cycle = self.policy.cycle
        due = self._started + _phase(node.name) * SPREAD * cycle
        pause = cycle / 2
        if node.failures and self.source.per_node:
            factor = 1 << min(node.failures - 1, 16)
            pause = max(min(factor * cycle, LONGEST_PAUSE), cycle) - cycle / 2
        missed = max((self._loop.time() + pause - due) // cycle + 1, 0)
        return due + missed * cycle

    def _begin(self, node: Node) -> None:
        self._timers.pop(node.name, None)
        if node.name in self._looking or self.fleet.get(node.name) is not node:
            return
        task = self._looking[node.name] = self._loop.create_task(self._turn(node))
        task.add_done_callback(lambda _: self._ended(node, task))

    def _ended(self, node: Node, task: asyncio.Task[None]) -> None:
        if self._looking.get(node.name) is task:
            del self._looking[node.name]
        if self._stopped or self.fleet.get(node.name) is not node:
            return
        if not task.cancelled() and (error := task.exception()):
            log.error("A look has failed", exc_info=error, extra=kv(node=node.name))
        if node.name not in self._timers:
            self._schedule(node, self._next_due(node))

    # --- what ---------------------------------------------------------------------------------

    async def _turn(self, node: Node) -> None:
        due, first = node.due, node.name in self._unseen
        load = await self._measure(node)
        if load is not None or self._has_unwanted(node):
            await self._write(node, load)
        if due is not None and not first and not node.failures:
            begin = due - _phase(node.name) * SPREAD * self.policy.cycle
            self.counters.looked(self._loop.time() - begin)
        if node.name in self._unseen:
            self._unseen.discard(node.name)
            self._note_first_cycle()

    async def _measure(self, node: Node) -> Load | None:
        policy, source = self.policy, self.source
        suspect = node.failures and source.per_node
        lane = self._suspect if suspect else self._healthy
        async with lane:
            try:
                async with asyncio.timeout(policy.source.timeout):
                    measured = await source.measure(node)
            except (SourceError, TimeoutError) as error:
                node.trouble = str(error) or f"no answer within {policy.source.timeout:g} s"
                node.failures += 1
                self.counters.results["no_data"] += 1
                return None
        node.failures, node.trouble = 0, ""
        node.load = node.track.take(
            measured, policy.source.type, node.capacities, policy.cycle, policy.rules
        )
        return node.load

    async def _write(self, node: Node, load: Load | None) -> None:
        reason, annotations = self._due(node, load)
        if not reason:
            self.counters.results["skipped"] += 1
            return
        async with self._writing:
            if self._loop.time() < self._api_resume:
                self.counters.results["paused"] += 1
                return
            try:
                await self._patch(node, load, reason, annotations)
            except NotFound:
                self.fleet.lose(node.name)
            except KubeError as error:
                self._api_failed(error)
            else:
                self._api_answers()

    async def _patch(
        self,
        node: Node,
        load: Load | None,
        reason: str,
        annotations: Mapping[str, str | None],
    ) -> None:
        ref = ObjectRef(NODES, None, node.name)
        try:
            self._take(await self._api.patch(ref, _body(node, annotations)))
        except Conflict:
            # The node has changed in a way that we have not seen: see it, and decide again.
            self.counters.results["conflict"] += 1
            if self.fleet.see(await self._api.get(ref)) is not node:
                return  # it is another one of that name, whose turn will come
            reason, annotations = self._due(node, load)
            if not reason:
                return
            try:
                self._take(await self._api.patch(ref, _body(node, annotations)))
            except Conflict:
                return  # the next cycle will do
        node.patched_at = self._loop.time()
        self.counters.patched(reason, self._now())

    def _take(self, obj: Object) -> None:
        self.fleet.see(obj)

    def _due(self, node: Node, load: Load | None) -> tuple[str, dict[str, str | None]]:
        """Why something must be written, and all that is then written; "" if nothing must.

        Without a load that is only what must go: a node that is down must not keep it.
        """
        reason, wanted = self._worth(node, load) if load else ("", {})
        for family in self.unwanted:
            for key in annotation.KEYS[family]:
                if key in node.foreign:
                    wanted[key] = None
                    reason = reason or "removed"
        return reason, wanted

    def _worth(self, node: Node, load: Load) -> tuple[str, dict[str, str | None]]:
        policy, reason = self.policy, why_write(node.written, load, self.policy)
        wanted: dict[str, str | None] = dict(annotation.own(load))
        if annotation.CRANE in policy.write:
            hot = self.bindings.hot(node.name, self._now()) if self.bindings else 0
            told = annotation.crane(load, policy.rules, self._zone, hot, self._now())
            wanted.update(told)
            if not reason and hot != (node.hot or 0):
                reason = "hot"
            if not reason and not told.keys() <= node.foreign:
                reason = "known"
        if annotation.SAFE in policy.write:
            requested = self.bindings.requested(node.name) if self.bindings else {}
            told = annotation.safe(load, requested)
            wanted.update(told)
            if not reason and requested_changed(node.requested, requested, node.capacities):
                reason = "requested"
            if not reason and not told.keys() <= node.foreign:
                reason = "known"
        return reason, wanted

    @property
    def unwanted(self) -> tuple[str, ...]:
        """Families that were written once and are to be removed."""
        policy = self.policy
        return tuple(family for family in policy.remove if family not in policy.write)

    def _has_unwanted(self, node: Node) -> bool:
        return any(node.foreign.intersection(annotation.KEYS[each]) for each in self.unwanted)

    def removed(self) -> tuple[str, ...]:
        """Those of them of which no node has anything any more."""
        return tuple(
            family
            for family in self.unwanted
            if not any(node.foreign.intersection(annotation.KEYS[family]) for node in self.fleet)
        )

    # --- trouble ------------------------------------------------------------------------------

    def trouble(self) -> str:
        """What is in the way, in one sentence; "" if nothing is."""
        if self.api_trouble:
            return f"nodes cannot be written: {self.api_trouble}"
        silent = [node for node in self.fleet if node.failures]
        if silent:
            first = min(silent, key=lambda node: node.name)
            many = f"{len(silent)} of {len(self.fleet)} nodes cannot be measured"
            return f"{many}; {first.name}: {first.trouble}"
        return self.source.warning

    def _api_failed(self, error: KubeError) -> None:
        self.counters.results["failed"] += 1
        now = self._loop.time()
        if now < self._api_resume:
            return  # of those that were under way when the first one failed
        pause = _API_PAUSES[min(self._api_failures, len(_API_PAUSES) - 1)]
        self._api_failures += 1
        self._api_resume = now + pause
        if not self.api_trouble:
            log.warning("Nodes cannot be written, trying again", extra=kv(err=str(error)))
        self.api_trouble = str(error)

    def _api_answers(self) -> None:
        if self.api_trouble:
            log.info("Nodes can be written again")
        self.api_trouble, self._api_failures = "", 0
        self._api_resume = float("-inf")

    def _note_first_cycle(self) -> None:
        if self._all_listed and not self._unseen and self.counters.first_cycle is None:
            self.counters.first_cycle = self._loop.time() - self._started
            values = kv(nodes=len(self.fleet), seconds=round(self.counters.first_cycle, 1))
            log.info("Every node has been looked at", extra=values)


def _phase(name: str) -> float:
    """A node's share of the cycle, 0..1, the same in every process."""
    return zlib.crc32(name.encode()) / 2**32


def _body(node: Node, annotations: Mapping[str, str | None]) -> dict[str, Any]:
    """A PATCH of what was seen and of nothing newer."""
    return {
        "metadata": {
            "uid": node.uid,
            "resourceVersion": node.version,
            "annotations": annotations,
        }
    }
