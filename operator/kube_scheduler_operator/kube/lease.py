"""Leader election with a real Lease: at most one process at a time believes that it leads.

The rules are client-go's. A candidate never compares clocks with the holder: it takes the lease
over when the record has not changed for a whole lease duration by its own monotonic clock. The
holder stops believing earlier than that, counted from when its last good renewal was sent.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .errors import AlreadyExists, Conflict, KubeError, NotFound
from .resource import LEASES, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .api import Api, Object

_log = logging.getLogger(__name__)

_RELEASE_TIMEOUT: Final = 3.0
"""A process that is told to stop waits so long for the API, seconds."""


@dataclass(frozen=True, slots=True)
class Timings:
    """How patient candidates and holder are, seconds; the defaults are kube-scheduler's.

    Attributes:
        lease_duration: candidates wait so long after the last renewal that they saw.
        renew_deadline: the holder gives up so long after its last successful renewal.
        retry_period: pause between two attempts, of both.
        jitter: share of retry_period that candidates add at random.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    jitter: float = 1.2

    def __post_init__(self) -> None:
        if (
            not 0
            < self.retry_period * (1 + self.jitter)
            < self.renew_deadline
            < self.lease_duration
        ):
            raise ValueError(
                "leader election needs retry_period * (1 + jitter) < renew_deadline < "
                f"lease_duration, got {self}"
            )


class LeaderElector:
    """Competes for one Lease: `await acquire()`, work while `await hold()`, `await release()`.

    Args:
        api: where the Lease is.
        namespace: its namespace.
        name: its name.
        identity: who we are. Stable across restarts of one container (the pod's UID, say), so that
            a restarted one goes on at once instead of waiting for itself.
        timings: see Timings.
        labels: of the Lease, if it has to be made.
        now: the wall clock, aware; only for the timestamps that people read.

    Attributes:
        answered_since: since when the API server has answered every attempt; None: it does not.
        recovered_at: when it last began to answer again after it had not; None: it always did.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        identity: str,
        *,
        timings: Timings | None = None,
        labels: Mapping[str, str] | None = None,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        if not identity:
            raise ValueError("leader election needs an identity: an empty one means 'nobody'")
        self._api = api
        self._ref = ObjectRef(LEASES, namespace, name)
        self._identity = identity
        self._timings = timings or Timings()
        self._labels = dict(labels or {})
        self._now = now
        self._lease: Object | None = None  # as last seen in the API
        self._spec: Mapping[str, Any] | None = None  # of the lease, when it last changed
        self._changed_at = 0.0  # our monotonic time of that
        self._renewed_at: float | None = None  # when our last successful renewal was sent
        self.answered_since: datetime.datetime | None = None
        self.recovered_at: datetime.datetime | None = None
        self._trouble = ""

    @property
    def is_leader(self) -> bool:
        """Whether we may act as leader right now."""
        return (
            self._renewed_at is not None
            and self._time() < self._renewed_at + self._timings.renew_deadline
        )

    @property
    def holder(self) -> str:
        """Whom we last saw holding the lease; empty for nobody."""
        return str((self._spec or {}).get("holderIdentity") or "")

    async def acquire(self) -> None:
        """Wait until we lead. API errors are logged and outlasted."""
        while not await self._attempt(self._timings.renew_deadline):
            pause = self._timings.retry_period
            await asyncio.sleep(pause * (1 + self._timings.jitter * random.random()))  # noqa: S311
        _log.info("became leader: lease %s, identity %s", self._ref, self._identity)

    async def hold(self) -> None:
        """Renew the lease; returns when it is lost: stop working at once."""
        while self._renewed_at is not None:
            deadline = self._renewed_at + self._timings.renew_deadline
            await asyncio.sleep(max(0.0, min(self._timings.retry_period, deadline - self._time())))
            left = deadline - self._time()
            if left <= 0 or (not await self._attempt(left) and self._taken()):
                break
        self._renewed_at = None
        _log.error(
            "lost leadership: lease %s %s%s",
            self._ref,
            f"is held by {self.holder or 'nobody'}"
            if self.holder != self._identity
            else f"was not renewed within {self._timings.renew_deadline:g} s",
            f"; last trouble: {self._trouble}" if self._trouble else "",
        )

    async def release(self) -> None:
        """Let others lead at once. Call it when all work has ended; does nothing if not leading."""
        leading, self._renewed_at = self.is_leader, None
        if not leading:
            return
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT):
                await self._empty()
        except (KubeError, TimeoutError) as error:
            _log.warning("lease %s not released, others wait until it ends: %s", self._ref, error)
        else:
            _log.info("released lease %s", self._ref)

    async def _empty(self) -> None:
        while self._lease is not None and self.holder == self._identity:
            spec = {
                "leaseDurationSeconds": 1,
                "leaseTransitions": self._lease["spec"].get("leaseTransitions") or 0,
                "acquireTime": self._stamp(),
                "renewTime": self._stamp(),
            }
            try:
                self._observe(await self._api.replace(LEASES, {**self._lease, "spec": spec}))
            except Conflict:
                self._observe(await self._api.get(self._ref))

    async def _attempt(self, patience: float) -> bool:
        """One try to get or renew the lease, within `patience` seconds. True if we lead."""
        sent_at = self._time()
        try:
            async with asyncio.timeout(patience):
                won = await self._get_or_renew()
        except (KubeError, TimeoutError) as error:
            trouble = str(error) or f"no answer in {patience:g} s"
            if trouble != self._trouble:
                _log.warning("lease %s: %s", self._ref, trouble)
            self._trouble = trouble
            self.answered_since = None
            return False
        if self.answered_since is None:
            self.answered_since = self._now()
            self.recovered_at = self.answered_since if self._trouble else None
        self._trouble = ""
        if won:
            self._renewed_at = sent_at
        return won

    async def _get_or_renew(self) -> bool:
        # As holder, the state that we wrote last is the one to replace: one request per renewal.
        if self._renewed_at is None or self._lease is None:
            try:
                self._observe(await self._api.get(self._ref))
            except NotFound:
                return await self._create()
        if self._lease is None or not self._free():
            return False
        try:
            self._observe(await self._api.replace(LEASES, {**self._lease, "spec": self._claim()}))
        except Conflict:
            # Somebody wrote it in between: another candidate, or we in a request whose answer was
            # lost. The next attempt will see.
            self._observe(await self._api.get(self._ref))
            return False
        except NotFound:
            self._lease = None
            return False
        return True

    async def _create(self) -> bool:
        self._lease = None
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "namespace": self._ref.namespace,
                "name": self._ref.name,
                "labels": self._labels,
            },
            "spec": self._claim(),
        }
        try:
            self._observe(await self._api.create(LEASES, lease))
        except (AlreadyExists, Conflict):
            return False
        return True

    def _claim(self) -> dict[str, Any]:
        """The record that makes us the holder."""
        old = self._lease["spec"] if self._lease else {}
        mine = old.get("holderIdentity") == self._identity
        transitions = int(old.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._timings.lease_duration)),
            "acquireTime": old.get("acquireTime") or self._stamp() if mine else self._stamp(),
            "renewTime": self._stamp(),
            "leaseTransitions": transitions if mine or not self._lease else transitions + 1,
        }

    def _observe(self, lease: Object) -> None:
        spec = lease.setdefault("spec", {})
        self._lease = lease
        if spec != self._spec:
            self._spec, self._changed_at = dict(spec), self._time()

    def _free(self) -> bool:
        """Whether we may write: nobody's lease, ours, or one whose holder has gone silent."""
        if self.holder in ("", self._identity):
            return True
        duration = (self._spec or {}).get("leaseDurationSeconds") or self._timings.lease_duration
        return self._time() >= self._changed_at + float(duration)

    def _taken(self) -> bool:
        return self.holder not in ("", self._identity)

    def _stamp(self) -> str:
        return micro_time(self._now())

    @staticmethod
    def _time() -> float:
        return asyncio.get_running_loop().time()


def micro_time(moment: datetime.datetime) -> str:
    """Kubernetes' MicroTime: RFC 3339 in UTC with exactly six decimals."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
