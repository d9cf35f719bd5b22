"""Leader election with a Lease: at most one process leads at a time.

The rules are client-go's. A candidate never compares clocks with the holder: it acquires the Lease
once the record has not changed for a lease duration by its own monotonic clock. The holder stops
leading earlier than that, counted from the time at which it sent the last successful renewal.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.times import rfc3339_micro
from .api import Api, Object
from .errors import AlreadyExists, Conflict, KubeError, NotFound, Unavailable
from .resource import LEASES, ObjectRef

_log = logging.getLogger(__name__)

_RELEASE_TIMEOUT: Final = 3.0
"""Seconds that a stopping process waits for the API server."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Timings of leader election, seconds; the defaults are kube-scheduler's."""

    lease_duration: float = 15.0  # time that candidates wait after the last observed renewal
    # time after its last successful renewal at which the holder stops leading
    renew_deadline: float = 10.0
    retry_period: float = 2.0  # interval of attempts, of candidates and the holder
    jitter: float = 1.2  # share of retry_period that candidates add at random

    def __post_init__(self) -> None:
        if (
            not 0
            < self.retry_period * (1 + self.jitter)
            < self.renew_deadline
            < self.lease_duration
        ):
            raise ValueError(
                "leader election needs retry_period * (1 + jitter) < renew_deadline < "
                f"lease_duration; got {self}"
            )


@dataclass(frozen=True, slots=True)
class ElectionLease:
    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)  # its labels, if the elector creates it


class LeaderElector:
    """Acquires one Lease: `await acquire()`, work during `await hold()`, `await release()`.

    Args:
        identity: the holder's identity. Stable across restarts of a container (e.g. the Pod's UID),
            so that a restarted one does not wait for its own Lease to expire.
        now: the wall clock, aware; only for timestamps.
        rewound: called with the evidence when a version of the Lease is older than one before: etcd
            was restored from a backup. A candidate notices it as well, within `retry_period`.
        recovered: called when the API server answers again after it did not, before
            `answered_since` is set: etcd may have been restored meanwhile.
    """

    def __init__(
        self,
        api: Api,
        lease: ElectionLease,
        identity: str,
        *,
        timings: Timings | None = None,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        rewound: Callable[[str], None] = lambda _: None,
        recovered: Callable[[], None] = lambda: None,
    ) -> None:
        if not identity:
            raise ValueError("leader election needs an identity: an empty one means no holder")
        self._api = api
        self._ref = ObjectRef(LEASES, lease.namespace, lease.name)
        self._identity = identity
        self._timings = timings or Timings()
        self._labels = dict(lease.labels)
        self._now = now
        self._rewound = rewound
        self._recovered = recovered
        self._away = False
        self._version = 0  # the newest observed resourceVersion
        self._lease: Object | None = None  # last observed state
        self._spec: Mapping[str, Any] | None = None  # its spec at the last change
        self._changed_at = 0.0  # monotonic time of that change
        self._renewed_at: float | None = None  # time at which the last successful renewal was sent
        # start of the current series of successful requests; None: the last failed
        self.answered_since: datetime.datetime | None = None
        # end of the last series of failed requests; None: none has failed
        self.recovered_at: datetime.datetime | None = None
        self._error = ""

    @property
    def is_leader(self) -> bool:
        """Whether this process may act as leader now."""
        return (
            self._renewed_at is not None
            and self._time() < self._renewed_at + self._timings.renew_deadline
        )

    @property
    def holder(self) -> str:
        """The last observed holder; empty if the Lease has no holder."""
        return str((self._spec or {}).get("holderIdentity") or "")

    async def acquire(self) -> None:
        """Wait until this process leads. API errors are logged and retried."""
        while not await self._attempt(self._timings.renew_deadline):
            period = self._timings.retry_period
            await asyncio.sleep(period * (1 + self._timings.jitter * random.random()))  # noqa: S311
        _log.info("became leader: lease %s, identity %s", self._ref, self._identity)

    async def hold(self) -> None:
        """Renew the Lease; return when it is lost: all work must stop at once."""
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
            f"is held by {self.holder or 'no process'}"
            if self.holder != self._identity
            else f"was not renewed within {self._timings.renew_deadline:g} s",
            f"; last error: {self._error}" if self._error else "",
        )

    async def release(self) -> None:
        """Release the Lease after all work has ended; does nothing on a standby."""
        leading, self._renewed_at = self.is_leader, None
        if not leading:
            return
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT):
                await self._empty()
        except (KubeError, TimeoutError) as error:
            _log.warning(
                "cannot release lease %s, candidates wait until it expires: %s", self._ref, error
            )
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

    async def _attempt(self, limit: float) -> bool:
        """Acquire or renew the Lease within `limit` seconds; return whether that succeeded."""
        sent_at = self._time()
        try:
            async with asyncio.timeout(limit):
                won = await self._get_or_renew()
        except (KubeError, TimeoutError) as error:
            message = str(error) or f"no response within {limit:g} s"
            if message != self._error:
                _log.warning("lease %s: %s", self._ref, message)
            self._error = message
            self._away |= isinstance(error, TimeoutError | Unavailable)
            self.answered_since = None
            return False
        if self._away:
            self._away = False
            self._recovered()
        if self.answered_since is None:
            self.answered_since = self._now()
            self.recovered_at = self.answered_since if self._error else None
        self._error = ""
        if won:
            self._renewed_at = sent_at
        return won

    async def _get_or_renew(self) -> bool:
        # The holder replaces the state that it wrote last: one request per renewal.
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
            # Another candidate wrote it, or this process in a request whose response was lost. The
            # next attempt decides.
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
        """Return the record that makes this process the holder."""
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
        # Requests follow each other, so each response is as new as the one before.
        before, self._version = self._version, int(lease["metadata"].get("resourceVersion") or 0)
        if self._version < before:
            self._rewound(f"{self._ref} has resourceVersion {self._version} after {before}")
        self._lease = lease
        if spec != self._spec:
            self._spec, self._changed_at = dict(spec), self._time()

    def _free(self) -> bool:
        """Return whether this process may write: no holder, its own Lease, or an expired one."""
        if self.holder in ("", self._identity):
            return True
        duration = (self._spec or {}).get("leaseDurationSeconds") or self._timings.lease_duration
        return self._time() >= self._changed_at + float(duration)

    def _taken(self) -> bool:
        return self.holder not in ("", self._identity)

    def _stamp(self) -> str:
        return rfc3339_micro(self._now())

    @staticmethod
    def _time() -> float:
        return asyncio.get_running_loop().time()
