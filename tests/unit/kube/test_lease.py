"""At most one process leads, whatever the API and the clocks do."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import datetime
import random
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube_scheduler_operator.base.times import rfc3339_micro
from kube_scheduler_operator.kube.api import Api
from kube_scheduler_operator.kube.errors import (
    AlreadyExists,
    ApiRequest,
    Conflict,
    NotFound,
    Unavailable,
)
from kube_scheduler_operator.kube.lease import ElectionLease, LeaderElector, Timings

REQUEST = ApiRequest("update", "/lease")


class Leases:
    """One Lease in memory, behind a network that may be slow or broken."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.writes: list[dict[str, Any]] = []
        self.broken: set[str] = set()  # electors without a connection
        self.latency: Callable[[], float] = lambda: 0.0
        self.lose_responses: Callable[[], bool] = lambda: False

    def seen_by(self, who: str) -> Connection:
        return Connection(self, who)


class Connection:
    def __init__(self, leases: Leases, who: str) -> None:
        self.leases, self.who = leases, who

    async def _delay(self) -> None:
        await asyncio.sleep(self.leases.latency())
        if self.who in self.leases.broken:
            raise Unavailable(REQUEST, status=0, message="no connection")

    def _store(self, lease: Any) -> dict[str, Any]:
        self.leases.version += 1
        stored = copy.deepcopy(dict(lease))
        stored["metadata"]["resourceVersion"] = str(self.leases.version)
        self.leases.lease = stored
        self.leases.writes.append(stored["spec"])
        return copy.deepcopy(stored)

    async def _respond(self, lease: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(self.leases.latency())
        if self.leases.lose_responses():
            raise Unavailable(REQUEST, status=0, message="connection broke")
        return lease

    async def get(self, ref: Any) -> dict[str, Any]:
        await self._delay()
        if self.leases.lease is None:
            raise NotFound(REQUEST, status=404)
        return await self._respond(copy.deepcopy(self.leases.lease))

    async def create(self, resource: Any, obj: Any, **_: Any) -> dict[str, Any]:
        await self._delay()
        if self.leases.lease is not None:
            raise AlreadyExists(REQUEST, status=409)
        return await self._respond(self._store(obj))

    async def replace(self, resource: Any, obj: Any, **_: Any) -> dict[str, Any]:
        await self._delay()
        if self.leases.lease is None:
            raise NotFound(REQUEST, status=404)
        current = self.leases.lease["metadata"]["resourceVersion"]
        if obj["metadata"]["resourceVersion"] != current:
            raise Conflict(REQUEST, status=409)
        return await self._respond(self._store(obj))


def elector(leases: Leases, who: str, skew: float = 0.0) -> LeaderElector:
    loop = asyncio.get_running_loop()
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return LeaderElector(
        cast(Api, leases.seen_by(who)),
        ElectionLease("ops", "lock"),
        who,
        now=lambda: start + datetime.timedelta(seconds=loop.time() + skew),
    )


def now() -> float:
    return asyncio.get_running_loop().time()


async def lead(one: LeaderElector) -> asyncio.Task[None]:
    await one.acquire()
    return asyncio.create_task(one.hold())


async def stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_first_candidate_leads_at_once_and_writes_a_complete_record(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        one = elector(leases, "one")
        await one.acquire()
        assert one.is_leader
        assert now() == 0
        assert leases.lease is not None
        assert leases.lease["metadata"]["name"] == "lock"
        assert leases.lease["spec"] == {
            "holderIdentity": "one",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        }

    virtual_time.run(scenario())


def test_second_candidate_takes_over_when_the_holder_stops_renewing(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        one, two = elector(leases, "one"), elector(leases, "two")
        holding = await lead(one)
        second = asyncio.create_task(two.acquire())
        await asyncio.sleep(120)
        assert not two.is_leader
        await stopped(holding)
        died = now()
        await second
        pause = 2 * 2.2  # at most: one until the last renewal is seen, one after the lease ended
        assert 11 <= now() - died <= 15 + 2 * pause + 0.1
        assert not one.is_leader
        assert leases.lease is not None
        assert leases.lease["spec"]["leaseTransitions"] == 1

    virtual_time.run(scenario())


def test_released_lease_is_acquired_at_the_next_attempt(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        one, two = elector(leases, "one"), elector(leases, "two")
        holding = await lead(one)
        second = asyncio.create_task(two.acquire())
        await asyncio.sleep(30)
        await stopped(holding)
        await one.release()
        assert not one.is_leader
        assert "holderIdentity" not in leases.writes[-1]
        assert leases.writes[-1]["leaseDurationSeconds"] == 1
        released = now()
        await second
        assert now() - released <= 2 * 2.2

    virtual_time.run(scenario())


def test_restarted_container_with_the_same_identity_leads_at_once(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        await stopped(await lead(elector(leases, "pod-uid")))
        again = elector(leases, "pod-uid")
        before = now()
        await again.acquire()
        assert now() == before
        assert leases.lease is not None
        assert leases.lease["spec"]["leaseTransitions"] == 0

    virtual_time.run(scenario())


def test_outage_shorter_than_the_deadline_is_tolerated(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        one = elector(leases, "one")
        holding = await lead(one)
        await asyncio.sleep(20)
        leases.broken.add("one")
        await asyncio.sleep(5)
        leases.broken.clear()
        await asyncio.sleep(60)
        assert one.is_leader
        assert not holding.done()
        await stopped(holding)

    virtual_time.run(scenario())


def test_start_of_successful_requests_is_known(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        one = elector(leases, "one")
        assert one.answered_since is None
        holding = await lead(one)
        first = one.answered_since
        await asyncio.sleep(20)
        assert first is not None
        assert (one.answered_since, one.recovered_at) == (first, None)
        leases.broken.add("one")
        await asyncio.sleep(5)
        assert (one.answered_since, one.recovered_at) == (None, None)
        leases.broken.clear()
        await asyncio.sleep(5)
        assert one.answered_since == one.recovered_at
        assert 23 <= (one.answered_since - first).total_seconds() <= 28
        await stopped(holding)

    virtual_time.run(scenario())


def test_outage_longer_than_the_deadline_loses_the_lease(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        one = elector(leases, "one")
        holding = await lead(one)
        await asyncio.sleep(20)
        leases.broken.add("one")
        cut = now()
        await holding
        assert 8 <= now() - cut <= 10
        assert not one.is_leader

    virtual_time.run(scenario())


def test_without_a_renewal_it_leads_until_the_deadline(virtual_time: Any) -> None:
    """A process that was stopped must not write before it notices that it lost the Lease."""

    async def scenario() -> None:
        one = elector(Leases(), "one")
        await one.acquire()
        await asyncio.sleep(9.9)
        assert one.is_leader
        await asyncio.sleep(0.2)
        assert not one.is_leader

    virtual_time.run(scenario())


def test_request_that_never_returns_does_not_outlast_the_deadline(
    virtual_time: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        leases = Leases()
        one = elector(leases, "one")
        holding = await lead(one)
        await asyncio.sleep(20)
        leases.latency = lambda: 1e6
        hung = now()
        await holding
        assert now() - hung <= 10
        assert "lease Lease ops/lock was not renewed within 10 s" in caplog.text

    virtual_time.run(scenario())


def test_slow_response_does_not_prolong_the_lease(virtual_time: Any) -> None:
    """Others count from when the server wrote the renewal, so we must from before we sent it."""

    async def scenario() -> None:
        leases = Leases()
        one = elector(leases, "one")
        holding = await lead(one)
        delays = iter([0.0, 7.0])  # of request and response
        leases.latency = lambda: next(delays, 1e6)
        await asyncio.sleep(9.5)
        assert len(leases.writes) == 2  # sent after 2 s, answered after 9 s
        assert one.is_leader
        await asyncio.sleep(3)
        assert not one.is_leader
        await holding

    virtual_time.run(scenario())


def test_lease_overwritten_by_another_holder_is_lost(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        holding = await lead(elector(leases, "one"))
        thief = leases.seen_by("thief")
        lease = await thief.get(None)
        lease["spec"]["holderIdentity"] = "thief"
        await thief.replace(None, lease)
        taken = now()
        await holding
        assert now() - taken <= 2

    virtual_time.run(scenario())


def test_renewal_with_a_lost_response_is_recognized(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        one = elector(leases, "one")
        holding = await lead(one)
        lost = iter([True])
        leases.lose_responses = lambda: next(lost, False)
        await asyncio.sleep(60)
        assert one.is_leader
        assert not holding.done()
        await stopped(holding)

    virtual_time.run(scenario())


def test_deleted_lease_is_created_again(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        one = elector(leases, "one")
        holding = await lead(one)
        leases.lease = None
        await asyncio.sleep(5)
        assert one.is_leader
        assert leases.lease is not None
        await stopped(holding)

    virtual_time.run(scenario())


def test_create_race_has_one_winner(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        leases.latency = lambda: 0.1
        electors = [elector(leases, name) for name in "abc"]
        tasks = [asyncio.create_task(one.acquire()) for one in electors]
        await asyncio.sleep(1)
        assert [one.is_leader for one in electors].count(True) == 1
        for task in tasks:
            await stopped(task)

    virtual_time.run(scenario())


def test_release_without_leading_writes_nothing(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        await stopped(await lead(elector(leases, "one")))
        writes = len(leases.writes)
        await elector(leases, "two").release()
        assert len(leases.writes) == writes

    virtual_time.run(scenario())


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), skews=st.tuples(*[st.floats(-1e5, 1e5)] * 3))
def test_never_two_leaders(virtual_time: Any, seed: Any, skews: Any) -> None:
    """Slow networks, lost answers, partitions, crashes, wrong clocks: never two, in the end one."""
    dice = random.Random(seed)

    async def live(leases: Leases, who: str, skew: float, alive: list[LeaderElector]) -> None:
        while True:
            one = elector(leases, who, skew)
            alive.append(one)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(dice.uniform(5, 90)):  # then it is killed
                    await one.acquire()
                    await one.hold()
            if dice.random() < 0.5:
                await one.release()
            alive.remove(one)
            await asyncio.sleep(dice.uniform(0, 5))

    async def scenario() -> None:
        leases = Leases()
        leases.latency = lambda: dice.choice([0.001, 0.01, 0.5, 3, 7, 12])
        leases.lose_responses = lambda: dice.random() < 0.1
        alive: list[LeaderElector] = []
        lives = [
            asyncio.create_task(live(leases, who, skew, alive))
            for who, skew in zip("abc", skews, strict=True)
        ]
        led = 0
        for step in range(3000):
            await asyncio.sleep(0.1)
            if step == 1500:
                leases.broken, leases.latency = set(), lambda: 0.01
                leases.lose_responses, led = lambda: False, 0
            elif step < 1500 and dice.random() < 0.01:
                leases.broken ^= {dice.choice("abc")}
            leaders = [one for one in alive if one.is_leader]
            assert len(leaders) <= 1
            led += len(leaders)
        for task in lives:
            await stopped(task)
        assert led, "the network is back, and no process leads"

    virtual_time.run(scenario())


@pytest.mark.parametrize(
    "timings",
    [
        {"renew_deadline": 15.0},
        {"retry_period": 5.0},
        {"retry_period": 0.0},
    ],
    ids=["deadline-not-below-duration", "retry-too-slow", "retry-zero"],
)
def test_invalid_timings_are_refused(timings: Any) -> None:
    with pytest.raises(ValueError, match="renew_deadline"):
        Timings(**timings)


def test_empty_identity_is_refused() -> None:
    with pytest.raises(ValueError, match="identity"):
        LeaderElector(cast(Api, Connection(Leases(), "")), ElectionLease("ops", "lock"), "")


def test_micro_time_is_utc_with_six_decimals() -> None:
    new_york = datetime.timezone(datetime.timedelta(hours=-5))
    moment = datetime.datetime(2026, 1, 1, 19, 0, 0, 5, tzinfo=new_york)
    assert rfc3339_micro(moment) == "2026-01-02T00:00:00.000005Z"


def test_a_restore_of_etcd_is_noticed_by_the_holder_and_by_a_candidate(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        found: list[str] = []
        one, two = (
            LeaderElector(
                cast(Api, leases.seen_by(who)),
                ElectionLease("ops", "lock"),
                who,
                rewound=partial(lambda evidence, who: found.append(f"{who}: {evidence}"), who=who),
            )
            for who in ("one", "two")
        )
        await one.acquire()
        backup = copy.deepcopy(leases.lease)
        holding = asyncio.create_task(one.hold())
        waiting = asyncio.create_task(two.acquire())
        await asyncio.sleep(20)
        assert found == []
        leases.lease, leases.version = backup, 1
        await asyncio.sleep(5)
        await stopped(holding)
        await stopped(waiting)
        assert {text.partition(":")[0] for text in found} >= {"one"}
        assert "has resourceVersion 1 after" in found[0]
        assert len(found) <= 2, "once each"

    virtual_time.run(scenario())


def test_the_end_of_an_outage_is_reported_before_the_server_counts_as_back(
    virtual_time: Any,
) -> None:
    async def scenario() -> None:
        leases = Leases()
        found: list[object] = []
        one = LeaderElector(
            cast(Api, leases.seen_by("one")),
            ElectionLease("ops", "lock"),
            "one",
            recovered=lambda: found.append(one.answered_since),
        )
        holding = await lead(one)
        await asyncio.sleep(5)
        leases.broken.add("one")
        await asyncio.sleep(5)
        assert found == []
        leases.broken.clear()
        await asyncio.sleep(5)
        assert found == [None]
        await stopped(holding)

    virtual_time.run(scenario())
