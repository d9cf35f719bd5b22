"""The cycle: measures every node once, at its own time, and annotates it if necessary.

Nodes are spread over the cycle by name, so neither they nor the API server see bursts, and each
keeps its time across restarts. A node that does not answer is polled with increasing back-off and
under a separate concurrency limit, so it never delays other nodes.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from ...base.backoff import Backoff
from ...base.klog import kv
from ...kube.api import Api
from ...kube.errors import Conflict, KubeError, NotFound
from ...kube.resource import NODES, ObjectRef
from ..load.policy import CRANE, SAFE, LoadPolicy, time_zone
from . import annotation
from .bindings import PodBindings
from .counters import Counters
from .measurement import Load, MeasurementError
from .nodes import AnnotatedNode, NodeRegistry
from .patch_filter import requested_changed, why_write
from .sources import LoadSource

log = logging.getLogger(__name__)

HEALTHY: Final = 128
"""Maximum number of concurrent polls."""

SUSPECT: Final = 64
"""The same for nodes that did not answer the last poll."""

WRITES: Final = 32
"""Maximum number of concurrent PATCHes."""

LONGEST_INTERVAL: Final = 300.0
"""Longest interval in seconds between polls of a node that does not answer."""

SPREAD: Final = 0.9
"""Fraction of a cycle over which polls are spread; the rest is for the last responses."""

FIRST_SPREAD: Final = 0.5
"""The same for the first polls, when no load is known yet."""

HOT_VALUE_INTERVAL: Final = 10.0
"""Minimum seconds between PATCHes of a node for changes of its hot value."""

_API_BACKOFF: Final = Backoff((1.0, 2.0, 5.0, 10.0, 20.0, 30.0))


class Annotator:
    """Measures and annotates nodes while its process leads.

    `stop` closes `source`. Without `bindings`, no hot values and requests are written. `now` is the
    API server's time, in seconds since 1970.
    """

    def __init__(
        self,
        api: Api,
        policy: LoadPolicy,
        source: LoadSource,
        *,
        bindings: PodBindings | None = None,
        counters: Counters | None = None,
        now: Callable[[], float],
    ) -> None:
        self.nodes = NodeRegistry(self._arrived, self._left)
        self.policy, self.source, self.bindings = policy, source, bindings
        self.counters = counters or Counters()
        self.api_error = ""
        self._api, self._now = api, now
        self._zone = time_zone(policy.crane_zone)
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._polling: dict[str, asyncio.Task[None]] = {}
        self._unpolled: set[str] = set()
        self._all_listed = False
        self._healthy, self._suspect = asyncio.Semaphore(HEALTHY), asyncio.Semaphore(SUSPECT)
        self._writing = asyncio.Semaphore(WRITES)
        self._api_failures, self._api_resume = 0, float("-inf")
        self._stopped = False
        self.counters.first_cycle = None  # of this leadership

    def listed(self) -> None:
        """Note that the initial list of nodes is complete."""
        self._all_listed = True
        self._note_first_cycle()

    def use(self, policy: LoadPolicy, source: LoadSource | None = None) -> None:
        """Switch to another policy and, if given, another source."""
        old, self.policy, self._zone = self.policy, policy, time_zone(policy.crane_zone)
        if source is not None:
            self.source = source
        if policy.cycle != old.cycle or source is not None:
            for node in self.nodes:
                node.failures = 0
                self._schedule(node, self._first_due(node))

    def pods_changed(self, name: str) -> None:
        """Poll a node early if its hot value has changed."""
        node = self.nodes.get(name)
        if node is None or self.bindings is None or CRANE not in self.policy.write:
            return
        if node.load is None or self.bindings.hot(name, self._now()) == (node.hot or 0):
            return
        soon = max(self._loop.time(), node.patched_at + HOT_VALUE_INTERVAL)
        timer = self._timers.get(name)
        if timer is None or timer.when() > soon:
            self._schedule(node, soon)
            node.due = None

    async def stop(self) -> None:
        """Cancel all polls and close the source."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        polling = list(self._polling.values())
        for task in polling:
            task.cancel()
        await asyncio.gather(*polling, return_exceptions=True)
        await self.source.close()

    # --- schedule -----------------------------------------------------------------------------

    def _arrived(self, node: AnnotatedNode) -> None:
        self._unpolled.add(node.name)
        self._schedule(node, self._first_due(node))

    def _left(self, node: AnnotatedNode) -> None:
        timer = self._timers.pop(node.name, None)
        if timer is not None:
            timer.cancel()
        task = self._polling.pop(node.name, None)
        if task is not None:
            task.cancel()
        self._unpolled.discard(node.name)

    def _schedule(self, node: AnnotatedNode, due: float) -> None:
        timer = self._timers.get(node.name)
        if timer is not None:
            timer.cancel()
        node.due = due
        self._timers[node.name] = self._loop.call_at(due, self._begin, node)

    def _first_due(self, node: AnnotatedNode) -> float:
        return self._loop.time() + _position(node.name) * FIRST_SPREAD * self.policy.cycle

    def _next_due(self, node: AnnotatedNode) -> float:
        """Return the node's next regular time that is at least half a cycle from now."""
        cycle = self.policy.cycle
        due = self._started + _position(node.name) * SPREAD * cycle
        pause = cycle / 2
        if node.failures and self.source.per_node:
            backoff = Backoff.exponential(cycle, max(cycle, LONGEST_INTERVAL))
            pause = backoff.delay(node.failures - 1) - cycle / 2
        missed = max((self._loop.time() + pause - due) // cycle + 1, 0)
        return due + missed * cycle

    def _begin(self, node: AnnotatedNode) -> None:
        self._timers.pop(node.name, None)
        if node.name in self._polling or self.nodes.get(node.name) is not node:
            return
        task = self._polling[node.name] = self._loop.create_task(self._poll(node))
        task.add_done_callback(lambda _: self._ended(node, task))

    def _ended(self, node: AnnotatedNode, task: asyncio.Task[None]) -> None:
        if self._polling.get(node.name) is task:
            del self._polling[node.name]
        if self._stopped or self.nodes.get(node.name) is not node:
            return
        if not task.cancelled() and (error := task.exception()):
            log.error("Failed to poll a node", exc_info=error, extra=kv(node=node.name))
        if node.name not in self._timers:
            self._schedule(node, self._next_due(node))

    # --- measure and write --------------------------------------------------------------------

    async def _poll(self, node: AnnotatedNode) -> None:
        due, first = node.due, node.name in self._unpolled
        load = await self._measure(node)
        await self._write(node, load)
        if due is not None and not first and not node.failures:
            begin = due - _position(node.name) * SPREAD * self.policy.cycle
            self.counters.polled(self._loop.time() - begin)
        if node.name in self._unpolled:
            self._unpolled.discard(node.name)
            self._note_first_cycle()

    async def _measure(self, node: AnnotatedNode) -> Load | None:
        policy, source = self.policy, self.source
        suspect = node.failures and source.per_node
        async with self._suspect if suspect else self._healthy:
            try:
                async with asyncio.timeout(policy.source.timeout):
                    measured = await source.measure(node)
            except (MeasurementError, TimeoutError) as error:
                node.error = str(error) or f"no response within {policy.source.timeout:g} s"
                node.failures += 1
                self.counters.results["no_data"] += 1
                return None
        node.failures, node.error = 0, ""
        node.load = node.history.update(
            measured, policy.source.type, node.capacities, policy.cycle, policy.rules
        )
        return node.load

    async def _write(self, node: AnnotatedNode, load: Load | None) -> None:
        reason, annotations = self._due(node, load)
        if not reason:
            if load is not None:
                self.counters.results["skipped"] += 1
            return
        async with self._writing:
            if self._loop.time() < self._api_resume:
                self.counters.results["paused"] += 1
                return
            try:
                await self._patch(node, load, reason, annotations)
            except NotFound:
                self.nodes.remove(node.name)
            except KubeError as error:
                self._api_failed(error)
            else:
                self._api_answers()

    async def _patch(
        self,
        node: AnnotatedNode,
        load: Load | None,
        reason: str,
        annotations: Mapping[str, str | None],
    ) -> None:
        ref = ObjectRef(NODES, None, node.name)
        try:
            self.nodes.update(await self._api.patch(ref, _body(node, annotations)))
        except Conflict:
            # The node has changed: read it and decide again.
            self.counters.results["conflict"] += 1
            if self.nodes.update(await self._api.get(ref)) is not node:
                return  # a new node with that name, which has its own schedule
            reason, annotations = self._due(node, load)
            if not reason:
                return
            try:
                self.nodes.update(await self._api.patch(ref, _body(node, annotations)))
            except Conflict:
                return  # retried in the next cycle
        node.patched_at = self._loop.time()
        self.counters.patched(reason, self._now())

    def _due(self, node: AnnotatedNode, load: Load | None) -> tuple[str, dict[str, str | None]]:
        """Return the reason for a PATCH, "" if none is needed, and its annotations.

        Without a load, only unwanted annotations are removed: also from a node that is down.
        """
        reason, desired = self._desired(node, load) if load else ("", {})
        for family in self.unwanted:
            for key in annotation.KEYS[family]:
                if key in node.foreign:
                    desired[key] = None
                    reason = reason or "removed"
        return reason, desired

    def _desired(self, node: AnnotatedNode, load: Load) -> tuple[str, dict[str, str | None]]:
        policy, reason = self.policy, why_write(node.written, load, self.policy)
        desired: dict[str, str | None] = dict(annotation.own(load))
        if CRANE in policy.write:
            hot = self.bindings.hot(node.name, self._now()) if self.bindings else 0
            family = annotation.crane(load, policy.rules, self._zone, hot, self._now())
            desired.update(family)
            if not reason and hot != (node.hot or 0):
                reason = "hot"
            if not reason and not family.keys() <= node.foreign:
                reason = "known"
        if SAFE in policy.write:
            requested = self.bindings.requested(node.name) if self.bindings else {}
            family = annotation.safe(load, requested)
            desired.update(family)
            if not reason and requested_changed(node.requested, requested, node.capacities):
                reason = "requested"
            if not reason and not family.keys() <= node.foreign:
                reason = "known"
        return reason, desired

    @property
    def unwanted(self) -> tuple[str, ...]:
        """Annotation families to remove."""
        policy = self.policy
        return tuple(family for family in policy.remove if family not in policy.write)

    def removed(self) -> tuple[str, ...]:
        """Return the families to remove that are no longer on any node."""
        return tuple(
            family
            for family in self.unwanted
            if not any(node.foreign.intersection(annotation.KEYS[family]) for node in self.nodes)
        )

    # --- errors -------------------------------------------------------------------------------

    def error(self) -> str:
        """Return the current error in one sentence; "" without one."""
        if self.api_error:
            return f"writing nodes fails: {self.api_error}"
        silent = [node for node in self.nodes if node.failures]
        if silent:
            first = min(silent, key=lambda node: node.name)
            failed = f"measuring {len(silent)} of {len(self.nodes)} nodes fails"
            return f"{failed}; {first.name}: {first.error}"
        return self.source.warning

    def _api_failed(self, error: KubeError) -> None:
        self.counters.results["failed"] += 1
        now = self._loop.time()
        if now < self._api_resume:
            return  # already in progress when the first one failed
        pause = _API_BACKOFF.delay(self._api_failures)
        self._api_failures += 1
        self._api_resume = now + pause
        if not self.api_error:
            log.warning("Writing nodes fails, will retry", extra=kv(err=str(error)))
        self.api_error = str(error)

    def _api_answers(self) -> None:
        if self.api_error:
            log.info("Writing nodes works again")
        self.api_error, self._api_failures = "", 0
        self._api_resume = float("-inf")

    def _note_first_cycle(self) -> None:
        if self._all_listed and not self._unpolled and self.counters.first_cycle is None:
            self.counters.first_cycle = self._loop.time() - self._started
            values = kv(nodes=len(self.nodes), seconds=round(self.counters.first_cycle, 1))
            log.info("Polled every node once", extra=values)


def _position(name: str) -> float:
    """Return a node's position in the cycle, 0..1, the same in every process."""
    return zlib.crc32(name.encode()) / 2**32


def _body(node: AnnotatedNode, annotations: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the body of a PATCH, conditional on the observed version of the node."""
    return {
        "metadata": {
            "uid": node.uid,
            "resourceVersion": node.version,
            "annotations": annotations,
        }
    }
