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

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED, Platform
from kube_scheduler_operator.base.recognition import NodeMarks, Remembered, decide, recognize
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, NODES
from kube_scheduler_operator.operator.engine import process
from kube_scheduler_operator.operator.engine.assignment import STARTING
from kube_scheduler_operator.operator.engine.followed_version import FollowedVersion
from kube_scheduler_operator.operator.engine.process import (
    FAILING_SECONDS,
    Operator,
    OperatorOptions,
)
from kube_scheduler_operator.operator.model.snapshot import AssignmentWay
from kube_scheduler_operator.operator.telemetry.metrics import OperatorMetrics

from ...kube.conftest import FakeApi
from ...kube.conftest import api as api
from ...kube.test_lease import Leases, elector, now, stopped


@pytest.mark.parametrize(
    ("reconciled", "succeeded", "failing", "problem"),
    [
        pytest.param(None, None, "x", "no reconcile has succeeded yet", id="start"),
        pytest.param(0.0, 0.0, "", None, id="fine"),
        pytest.param(1_000.0, 1_000.0, "", None, id="idle"),
        pytest.param(10.0, 10.0, "403", None, id="fails-for-a-short-time"),
        pytest.param(
            FAILING_SECONDS + 1,
            FAILING_SECONDS + 1,
            "403",
            "no reconcile has succeeded for 121 s: 403",
            id="fails-for-long",
        ),
        pytest.param(
            0.0, 300.0, "step x", "no reconcile has succeeded for 300 s: step x", id="a-step-fails"
        ),
    ],
)
def test_readyz_reports_that_no_reconcile_succeeds(
    reconciled: float | None, succeeded: float | None, failing: str, problem: str | None
) -> None:
    """Ages are in seconds."""
    now = time.monotonic()
    operator = object.__new__(Operator)
    operator._failing = failing
    operator._reconciled_at = None if reconciled is None else now - reconciled
    operator._succeeded_at = None if succeeded is None else now - succeeded
    assert operator._reconcile_problem() == problem


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


@pytest.mark.parametrize(
    ("recorded", "answered", "followed", "newer"),
    [
        ("", "v1.36.1-eks-1", "v1.36.1-eks-1", ""),
        ("v1.36.1-eks-1", "v1.36.1-eks-1", "v1.36.1-eks-1", ""),
        ("v1.35.4-eks-1", "v1.36.1-eks-1", "v1.35.4-eks-1", "v1.36.1-eks-1"),
        ("v1.36.1-eks-1", "v1.35.4-eks-1", "v1.35.4-eks-1", ""),
        pytest.param("v1.20.0", "v1.35.4-eks-1", "v1.35.4-eks-1", "", id="forged-or-too-old"),
        pytest.param("x" * 10, "v1.35.4-eks-1", "v1.35.4-eks-1", "", id="not-a-version"),
    ],
)
async def test_a_new_leader_continues_from_the_version_that_was_followed(
    api: FakeApi, recorded: str, answered: str, followed: str, newer: str
) -> None:
    """Not from the one that it read when it started, which may be of before an upgrade."""
    if recorded:
        data = {"platform": "managed", "kubernetesVersion": recorded}
        api.put(CONFIG_MAPS, names.PLATFORM_RECORD, MANAGED.target_namespace, data=data)
    operator = object.__new__(Operator)
    operator._platform = MANAGED
    operator._options = OperatorOptions(None, MANAGED, Settings())
    operator._version = FollowedVersion("v1.33.0")

    async def version(api: ApiClient, stop: asyncio.Event) -> str:
        return answered

    operator._read_version = version  # type: ignore[method-assign]
    async with ApiClient(api.credentials(), field_manager="me") as client:
        await operator._recall_version(client, asyncio.Event())
    assert (operator._version.text, operator._version.newer) == (followed, newer)


def _undecided(monkeypatch: pytest.MonkeyPatch, chosen: Platform | None) -> Operator:
    """An operator that started before there was a node."""
    monkeypatch.setattr(process, "DECIDE_SECONDS", 0.01)
    operator = object.__new__(Operator)
    nothing = recognize(infrastructure=False, nodes=[])
    operator._decision = decide(chosen, nothing, Remembered())
    operator._platform = operator._decision.platform
    operator._options = OperatorOptions(None, operator._platform, Settings(), chosen=chosen)
    operator._wake = lambda urgent: None  # type: ignore[method-assign,misc]
    return operator


def _eks_node(api: FakeApi) -> None:
    api.put(NODES, "a", labels={"eks.amazonaws.com/nodegroup": "x"})


async def test_nodes_that_appear_later_name_the_provider(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, stop = _undecided(monkeypatch, MANAGED), asyncio.Event()
    api.served |= {NODES}
    async with ApiClient(api.credentials(), field_manager="me") as client:
        deciding = asyncio.create_task(operator._decide_later(client, stop))
        await asyncio.sleep(0.2)
        assert not deciding.done(), "there is no node yet"
        _eks_node(api)
        await asyncio.wait_for(deciding, 20)
    assert operator._decision is not None
    assert operator._decision.used.provider == "EKS"
    assert not stop.is_set()


async def test_nodes_that_show_another_platform_end_the_process(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its container starts again, for that platform."""
    operator, stop = _undecided(monkeypatch, None), asyncio.Event()
    api.served |= {NODES}
    _eks_node(api)
    async with ApiClient(api.credentials(), field_manager="me") as client:
        await asyncio.wait_for(operator._decide_later(client, stop), 20)
    assert stop.is_set()


async def test_a_decided_platform_needs_no_further_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operator = _undecided(monkeypatch, MANAGED)
    found = recognize(infrastructure=False, nodes=[NodeMarks("a")])
    operator._decision = decide(MANAGED, found, Remembered())
    await asyncio.wait_for(operator._decide_later(None, asyncio.Event()), 1)  # type: ignore[arg-type]


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
        operator._reconciled_at = 1.0
        operator._work = self._work  # type: ignore[method-assign,assignment]

    async def run(self) -> None:
        done: asyncio.Task[Any] = asyncio.create_task(asyncio.sleep(0, "uid"))
        acquiring = asyncio.create_task(self.elector.acquire())
        api: Any = None
        await self.operator._lead(api, self.stop, acquiring, done, done)
        await self.elector.release()

    async def _work(self, *_: Any) -> None:
        assert self.operator._reconciled_at is None, "the state of the last leader"
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
