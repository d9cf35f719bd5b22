"""When the operator process reports that it does not do its work."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.operator.engine.assignment import STARTING
from kube_scheduler_operator.operator.engine.options import OperatorOptions
from kube_scheduler_operator.operator.engine.process import Operator
from kube_scheduler_operator.operator.engine.reconcile_health import ReconcileHealth
from kube_scheduler_operator.operator.model.snapshot import AssignmentWay
from kube_scheduler_operator.operator.telemetry.metrics import OperatorMetrics

from ...kube.conftest import api as api
from ...kube.test_lease import Leases, elector, now, stopped


@dataclass(frozen=True)
class Start:
    """A process that starts, or has started `age` seconds ago."""

    age: float = 1.0
    synced: bool = True
    assigning: bool = True
    port: int = 0
    configuration: Any = None
    way: AssignmentWay | None = None


WEBHOOK, LATE = AssignmentWay.WEBHOOK, STARTING + 1


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        pytest.param(Start(synced=False), "waiting for the first lists", id="start"),
        pytest.param(Start(assigning=False), None, id="nothing-is-assigned"),
        pytest.param(Start(), "looking for what applies", id="unknown"),
        pytest.param(Start(configuration={}), "it does not listen yet", id="untrusted"),
        pytest.param(Start(configuration={}, way=WEBHOOK), "it does not listen yet", id="starts"),
        pytest.param(Start(port=9, configuration={}, way=WEBHOOK), None, id="listens"),
        pytest.param(Start(way=AssignmentWay.POLICY), None, id="policy"),
        pytest.param(Start(way=AssignmentWay.UNREADABLE), None, id="forbidden"),
        pytest.param(Start(LATE, configuration={}, way=WEBHOOK), None, id="not-a-start"),
        pytest.param(Start(LATE, synced=False), None, id="api-is-away"),
    ],
)
def test_readyz_of_a_process_that_starts_waits_until_it_assigns_pods(
    monkeypatch: pytest.MonkeyPatch, start: Start, problem: str | None
) -> None:
    operator = object.__new__(Operator)
    monkeypatch.setattr(Operator, "_synced", property(lambda _: start.synced))
    monkeypatch.setattr(Operator, "_assigning", lambda _: start.assigning)
    known: Any = SimpleNamespace(way=start.way, configuration=start.configuration)
    listener: Any = SimpleNamespace(port=start.port)
    operator._began, operator._ways = time.monotonic() - start.age, known
    operator._webhook = listener
    found = operator._webhook_problem()
    assert found == problem if problem is None else (found or "").startswith(problem)


class Leading:
    """An operator whose work is to wait, and when it did; two processes share the Lease."""

    def __init__(self, leases: Leases, who: str) -> None:
        self.elector = elector(leases, who)
        self.stop = asyncio.Event()
        self.works: list[tuple[float, float]] = []
        self.operator = operator = object.__new__(Operator)
        operator._elector = self.elector
        operator._platform = MANAGED
        operator._options = OperatorOptions(None, MANAGED, Settings())
        operator._metrics = OperatorMetrics("v0")
        clock: Any = SimpleNamespace(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
        operator._clock = clock
        operator._health = health = ReconcileHealth()
        health.executed(())
        operator._work = self._work  # type: ignore[method-assign,assignment]

    async def run(self) -> None:
        done: asyncio.Task[Any] = asyncio.create_task(asyncio.sleep(0, "uid"))
        acquiring = asyncio.create_task(self.elector.acquire())
        api: Any = None
        await self.operator._lead(api, self.stop, acquiring, done, done)
        await self.elector.release()

    async def _work(self, *_: Any) -> None:
        assert self.operator._health.problem(), "the state of the last leader"
        began = now()
        try:
            await self.stop.wait()
        finally:
            await asyncio.sleep(0.5)  # a write in progress
            self.works.append((began, now()))


def test_a_process_that_lost_its_lease_leads_again(virtual_time: Any) -> None:
    """A slow API server must not end it: its container would wait longer with every restart."""

    async def scenario() -> None:
        leases = Leases()
        one = Leading(leases, "one")
        running = asyncio.create_task(one.run())
        await asyncio.sleep(20)
        leases.broken.add("one")
        await asyncio.sleep(60)
        assert not running.done()
        assert not one.elector.is_leader
        ((began, ended),) = one.works
        assert (began, 28 <= ended < 31) == (0, True)
        leases.broken.clear()
        await asyncio.sleep(5)
        assert one.elector.is_leader
        one.stop.set()
        await running
        assert len(one.works) == 2
        assert leases.lease is not None
        assert not leases.lease["spec"].get("holderIdentity"), "released at the end"

    virtual_time.run(scenario())


def test_a_process_waits_for_the_lease_that_another_one_has_taken(virtual_time: Any) -> None:
    async def scenario() -> None:
        leases = Leases()
        one, two = Leading(leases, "one"), Leading(leases, "two")
        tasks = [asyncio.create_task(one.run())]
        await asyncio.sleep(1)
        tasks.append(asyncio.create_task(two.run()))
        for first, second in ((one, two), (two, one), (one, two)):
            assert first.elector.is_leader
            leases.broken = {first.elector._identity}
            await asyncio.sleep(60)
            leases.broken = set()
            await asyncio.sleep(60)
            assert (first.elector.is_leader, second.elector.is_leader) == (False, True)
        works = sorted([*one.works, *two.works])
        for (_, ended), (began, _) in itertools.pairwise(works):
            assert ended <= began, "never two at a time"
        assert not any(task.done() for task in tasks)
        for task in tasks:
            await stopped(task)

    virtual_time.run(scenario())
