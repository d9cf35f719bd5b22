"""Polls what is not watched: pods that wait for a scheduler, and processes that bind pods.

Each poll lists a limited number of objects and reads a few fields of each while they arrive. Their
authors decide about the other content: megabytes, for a Pod. The next poll continues where the list
was cut, so that no author decides which objects are seen.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

from ...base.defects import contained
from ...kube.api import ListResult
from ...kube.client import ApiClient
from ...kube.errors import Forbidden, Gone, Invalid, KubeError
from ...kube.events import EventRecorder, Involved
from ...kube.pages import Kept
from ...kube.resource import EVENTS_V1, PODS
from ..diagnostics import unknown_scheduler_names, unmanaged_schedulers, waiting_pods
from ..model.snapshot import BindingScheduler, PendingPod

log = logging.getLogger(__name__)


class _Namespaced(Protocol):
    @property
    def namespace(self) -> str: ...


Key = TypeVar("Key")
Value = TypeVar("Value", bound=_Namespaced)

PENDING: Final = "pending Pods"
BINDINGS: Final = "events of bindings"
WAITING: Final = "Pods without a node"

TOO_MANY: Final = "there are too many"
NOT_ALLOWED: Final = "the operator may not list them"

FAILURES: Final = 3
"""Polls in a row that fail before what they would read counts as unknown."""

IDLE: Final = 20.0
"""The shortest time between two polls, as a multiple of the duration of the first one.

The API server has no index for events: where few of 100,000 events are of bindings, it reads all of
them for one page.
"""

REMEMBERED: Final = 1024
"""The number of pods that are remembered because they got their event."""

KEPT: Final = 1000
"""The number of values that are kept; of the namespace with most, the oldest ones are dropped."""


class Portions(Generic[Key, Value]):
    """The values in the portions of a list; each remains until the list was read without it.

    A tenant may fill one poll with objects of a namespace that sorts first. That hides nothing: the
    next poll continues behind them, and they displace only others of that namespace.
    """

    def __init__(self) -> None:
        self.token = ""  # where the next portion begins; empty: at the beginning
        self.unread = False  # whether a part was not read since the list was last read to its end
        self._round = 0
        self._seen: dict[Key, tuple[int, Value]] = {}
        self._selector: str | None = None
        self._whole = False  # read to its end, and no token was lost since

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(value for _, value in self._seen.values())

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset(self._seen)

    def select(self, selector: str) -> None:
        """Begin again if the selector has changed: a token belongs to its list."""
        if self._selector not in (None, selector) and self.token:
            self._begin()
        self._selector = selector

    def take(self, portion: Mapping[Key, Value], more: str) -> None:
        """Take a portion; `more` is the token of the rest."""
        for key, value in portion.items():
            self._seen.pop(key, None)
            self._seen[key] = self._round, value
        self._make_room()
        self.token = more
        if not more:
            self._forget([key for key, (last, _) in self._seen.items() if last < self._round])
            self._round += 1
        self._whole = self._whole or not more
        self.unread = not self._whole

    def lost(self) -> None:
        """Begin the list again, because the token is too old for the API server."""
        self._whole, self.unread = False, True
        self._begin()

    def _begin(self) -> None:
        self.token = ""
        self._forget([key for key, (last, _) in self._seen.items() if last < self._round])
        self._round += 1

    def _make_room(self) -> None:
        if len(self._seen) <= KEPT:
            return
        by_namespace: dict[str, deque[Key]] = {}
        for key, (_, value) in self._seen.items():
            by_namespace.setdefault(value.namespace, deque()).append(key)
        for _ in range(len(self._seen) - KEPT):
            del self._seen[max(by_namespace.values(), key=len).popleft()]

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            del self._seen[key]


class Poller:
    """The results of the last poll.

    `interval` has the seconds between polls; 0 turns polling off. `changed` is called when a result
    differs from the one before.
    """

    def __init__(
        self,
        interval: float,
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Pods that no scheduler has attempted, and what events say of processes that bind pods;
        # empty if pods, or events, may not be listed.
        self.pods: Portions[object, PendingPod] = Portions()
        self.claims: Portions[unmanaged_schedulers.ClaimKey, unmanaged_schedulers.BindingClaim]
        self.claims = Portions()
        # Pods without a node, of the last list that was read to its end, and of the current one.
        self._waiting: waiting_pods.Tally | None = None
        self._counting = waiting_pods.Tally(())
        self._rest = ""  # the token of the part that is not counted yet
        self._proven: frozenset[unmanaged_schedulers.ClaimKey] = frozenset()
        self.served: frozenset[str] = frozenset()  # pods with these schedulerNames are not listed
        self._interval = interval
        self._changed = changed
        self._clock = clock
        self._reported: OrderedDict[str, None] = OrderedDict()
        self._forbidden: set[str] = set()
        self._failures: dict[str, int] = {}  # of each poll, in a row

    def unread(self, what: str) -> str:
        """Why the last polls of PENDING or BINDINGS did not read all; empty if they did."""
        if self._interval <= 0:
            return "the operator does not look for them (--pending-pods-interval)"
        if what in self._forbidden:
            return NOT_ALLOWED
        if self._failures.get(what, 0) >= FAILURES:
            return "listing them fails"
        unread = {PENDING: self.pods.unread, BINDINGS: self.claims.unread}
        return TOO_MANY if unread.get(what) else ""

    @property
    def bindings(self) -> tuple[BindingScheduler, ...]:
        """The processes that bind pods, by the pods that they bound."""
        return unmanaged_schedulers.binding_schedulers(self.claims.values, self._proven)

    @property
    def waiting(self) -> Mapping[str, Mapping[waiting_pods.Key, float]]:
        """Metrics of the Pods without a node, of the last whole list; empty: not known."""
        known = self._failures.get(WAITING, 0) < FAILURES and WAITING not in self._forbidden
        return self._waiting.samples if known and self._waiting else {}

    async def run(self, api: ApiClient) -> None:
        polls = {
            PENDING: self.poll_pods,
            BINDINGS: self.poll_bindings,
            WAITING: self.poll_waiting,
        }
        due = dict.fromkeys(polls, float("-inf"))
        while self._interval > 0:
            for what, poll in polls.items():
                began = self._clock()
                if began < due[what]:
                    continue
                await self._try(what, poll, api)
                due[what] = began + IDLE * (self._clock() - began)
            await asyncio.sleep(self._interval)

    async def poll_pods(self, api: ApiClient) -> None:
        """List the pods without a node and with a schedulerName that is not served.

        Raises:
            KubeError: the list failed; the previous result stays.
        """
        selector = unknown_scheduler_names.field_selector(self.served)
        before = self.pods.values, self.pods.unread

        async def read(token: str) -> ListResult:
            return await api.select(
                PODS,
                unknown_scheduler_names.FIELDS,
                field_selector=selector,
                at_most=unknown_scheduler_names.AT_MOST,
                kept=Kept(
                    unknown_scheduler_names.is_not_attempted, unknown_scheduler_names.MOST_READ
                ),
                token=token,
            )

        listed = await _portion(self.pods, selector, read)
        pods = unknown_scheduler_names.not_attempted(listed.items)
        self.pods.take({pod.uid or (pod.namespace, pod.name): pod for pod in pods}, listed.more)
        # A pod that waits exceeds the grace period later, so each one is a reason to reconcile.
        if self.pods.values or (self.pods.values, self.pods.unread) != before:
            self._changed()

    async def poll_waiting(self, api: ApiClient) -> None:
        """Count the Pods without a node by cause.

        Raises:
            KubeError: the list failed; the previous result stays.
        """
        token, self._rest = self._rest, ""
        if not token:
            self._counting = waiting_pods.Tally(self.served)
        listed = await api.select(
            PODS,
            waiting_pods.FIELDS,
            field_selector=waiting_pods.FIELD_SELECTOR,
            at_most=waiting_pods.PAGE,
            kept=Kept(self._counting, waiting_pods.MOST_READ),
            token=token,
        )
        self._rest = listed.more
        if not listed.more:
            self._waiting = self._counting

    async def poll_bindings(self, api: ApiClient) -> None:
        """List the events of recent bindings, and look up pods that they are about.

        Raises:
            KubeError: a request failed; the previous result stays.
        """
        selector = unmanaged_schedulers.FIELD_SELECTOR
        before = self._processes(), self.claims.unread

        async def read(token: str) -> ListResult:
            return await api.select(
                EVENTS_V1,
                unmanaged_schedulers.FIELDS,
                field_selector=selector,
                at_most=unmanaged_schedulers.AT_MOST,
                # All events of one scheduler in one namespace count as one.
                kept=Kept(unmanaged_schedulers.Changes(), unmanaged_schedulers.MOST_READ),
                token=token,
            )

        listed = await _portion(self.claims, selector, read)
        claims = unmanaged_schedulers.claims(listed.items)
        self.claims.take({claim.key: claim for claim in claims}, listed.more)
        await self._look_up(api)
        if (self._processes(), self.claims.unread) != before:
            self._changed()

    async def _look_up(self, api: ApiClient) -> None:
        """Prove claims by the pods that they are about, once for each process and namespace."""
        self._proven &= self.claims.keys
        candidates = unmanaged_schedulers.to_look_up(self.claims.values, self._proven)
        for claim in islice(candidates, unmanaged_schedulers.LOOK_UPS):
            name = f"metadata.name={claim.pod}"
            pods = await api.list(PODS, claim.namespace, field_selector=name)
            if any(map(claim.is_about, pods.items)):
                self._proven |= {claim.key}

    def _processes(self) -> set[unmanaged_schedulers.Process]:
        return {(binding.scheduler, binding.host) for binding in self.bindings}

    def report(self, recorder: EventRecorder, pods: Iterable[PendingPod]) -> None:
        """Send one event for each pod, once."""
        for pod in pods:
            if pod.uid in self._reported:
                continue
            self._reported[pod.uid] = None
            while len(self._reported) > REMEMBERED:
                self._reported.popitem(last=False)
            about = Involved("v1", "Pod", pod.name, pod.namespace, pod.uid)
            message = unknown_scheduler_names.event_message(pod)
            recorder.event("Warning", "NoSuchScheduler", message, about)

    async def _try(
        self, what: str, poll: Callable[[ApiClient], Awaitable[None]], api: ApiClient
    ) -> None:
        before = self.unread(what)
        failures, self._failures[what] = self._failures.get(what, 0) + 1, 0
        try:
            await poll(api)
        except Forbidden as error:
            if what not in self._forbidden:
                log.warning("Listing %s is forbidden: %s", what, error)
            self._forbidden.add(what)
        except KubeError as error:
            log.warning("Listing %s failed: %s", what, error)
            self._failures[what] = failures
        except Exception as error:  # the content of one object must not end polling
            contained("polling", what, error)
            self._failures[what] = failures
        else:
            self._forbidden.discard(what)
        if self.unread(what) != before:
            self._changed()


async def _portion(
    portions: Portions[Any, Any], selector: str, read: Callable[[str], Awaitable[ListResult]]
) -> ListResult:
    """Read the next portion, of the current list if the API server has no older one.

    So no tenant, whose objects fill the polls of minutes, keeps the list from being read to its
    end. If the API server cannot continue it, the first portion is read.
    """
    portions.select(selector)
    if portions.token:
        try:
            return await read(portions.token)
        except Gone as error:
            if error.more:
                return await read(error.more)
            portions.lost()
        except Invalid:
            portions.lost()
    return await read("")
