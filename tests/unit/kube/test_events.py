"""Events are counted, limited, and never block or fail."""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube_scheduler_operator.kube.api import EventType
from kube_scheduler_operator.kube.errors import ApiRequest, Forbidden, NotFound
from kube_scheduler_operator.kube.events import (
    BURST,
    REFILL,
    WINDOW,
    EventRecorder,
    Involved,
)

DEPLOYMENT = Involved("apps/v1", "Deployment", "operator", "ops", "uid-1")
ASKED = ApiRequest("create", "/events")


class Events:
    """Takes events; remembers creates and patches."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.patched: list[tuple[str, dict[str, Any]]] = []
        self.gone = False
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def create(self, resource: Any, obj: Any, **_: Any) -> Any:
        await self.gate.wait()
        if self.error:
            raise self.error
        self.created.append(obj)
        return obj

    async def patch(self, ref: Any, patch: Any, **_: Any) -> Any:
        await self.gate.wait()
        if self.gone:
            raise NotFound(ASKED, status=404)
        self.patched.append((ref.name, patch))
        return patch


class Bench:
    def __init__(self) -> None:
        self.api = Events()
        self.time = 0.0
        self.seen: list[str] = []
        start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        self.recorder = EventRecorder(
            self.api,  # type: ignore[arg-type]
            component="kube-scheduler-operator",
            instance="pod-1",
            involved=DEPLOYMENT,
            observer=self._observe,
            clock=lambda: self.time,
            now=lambda: start + datetime.timedelta(seconds=self.time),
        )

    def _observe(self, severity: EventType) -> None:
        self.seen.append(severity)

    async def settle(self) -> None:
        await self.recorder._queue.join()


@pytest.fixture
async def bench() -> AsyncIterator[Any]:
    made = Bench()
    async with made.recorder:
        yield made


async def test_event_is_complete(bench: Any) -> None:
    bench.recorder.event("Normal", "RevisionCreated", "Revision 7 created")
    await bench.settle()
    (event,) = bench.api.created
    name = event["metadata"].pop("name")
    assert name.startswith("operator.")
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "ops"},
        "involvedObject": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "operator",
            "namespace": "ops",
            "uid": "uid-1",
        },
        "type": "Normal",
        "reason": "RevisionCreated",
        "message": "Revision 7 created",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "kube-scheduler-operator"},
        "reportingComponent": "kube-scheduler-operator",
        "reportingInstance": "pod-1",
    }
    assert bench.seen == ["Normal"]


async def test_repetitions_are_counted_on_one_event(bench: Any) -> None:
    for _ in range(3):
        bench.recorder.event("Warning", "Failed", "again")
        bench.time += WINDOW - 1
    await bench.settle()
    assert len(bench.api.created) == 1
    assert [patch["count"] for _, patch in bench.api.patched] == [2, 3]
    assert {name for name, _ in bench.api.patched} == {bench.api.created[0]["metadata"]["name"]}


async def test_repetition_after_the_window_is_a_new_event(bench: Any) -> None:
    bench.recorder.event("Warning", "Failed", "again")
    await bench.settle()
    bench.time += WINDOW + 1
    bench.recorder.event("Warning", "Failed", "again")
    await bench.settle()
    assert len({event["metadata"]["name"] for event in bench.api.created}) == 2


@pytest.mark.parametrize(
    "other",
    [
        ("Normal", "Failed", "again", None),
        ("Warning", "Other", "again", None),
        ("Warning", "Failed", "other", None),
        ("Warning", "Failed", "again", Involved("v1", "Node", "n")),
    ],
    ids=["type", "reason", "message", "object"],
)
async def test_different_entries_are_separate_events(bench: Any, other: Any) -> None:
    bench.recorder.event("Warning", "Failed", "again")
    bench.time += 1
    bench.recorder.event(*other)
    await bench.settle()
    assert len(bench.api.created) == 2


async def test_expired_event_is_created_again(bench: Any) -> None:
    bench.recorder.event("Normal", "Done", "x")
    await bench.settle()
    bench.api.gone = True
    bench.time += 1
    bench.recorder.event("Normal", "Done", "x")
    await bench.settle()
    assert [event["count"] for event in bench.api.created] == [1, 1]


async def test_rate_is_limited_per_object_and_refills(bench: Any) -> None:
    for number in range(BURST + 10):
        bench.recorder.event("Normal", "Spam", str(number))
    bench.recorder.event("Normal", "Spam", "x", Involved("v1", "Node", "n"))
    await bench.settle()
    assert len(bench.api.created) == BURST + 1
    assert bench.recorder.dropped == 10
    bench.time += 2 * REFILL
    for number in range(5):
        bench.recorder.event("Normal", "Later", str(number))
    await bench.settle()
    assert len(bench.api.created) == BURST + 3


async def test_events_of_cluster_scoped_objects_are_in_default(bench: Any) -> None:
    bench.recorder.event("Normal", "X", "y", Involved("v1", "Node", "n"))
    await bench.settle()
    (event,) = bench.api.created
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


async def test_event_neither_blocks_nor_fails(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    bench.api.gate.clear()
    for number in range(1000):
        bench.recorder.event("Normal", "Spam", str(number))
    assert bench.recorder.dropped > 700
    bench.api.error = Forbidden(ASKED, status=403, message="no")
    bench.api.gate.set()
    await bench.settle()
    bench.api.error = RuntimeError("a bug")
    bench.time += 100 * REFILL
    bench.recorder.event("Normal", "Spam", "x")
    await bench.settle()
    bench.api.error = None
    bench.recorder.event("Normal", "Works", "again")
    await bench.settle()
    assert [event["reason"] for event in bench.api.created] == ["Works"]


async def test_every_event_is_logged(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        bench.recorder.event("Warning", "Failed", "it did")
    assert "event for Deployment operator: Failed: it did" in caplog.text
    assert caplog.records[-1].levelno == logging.WARNING


async def test_long_messages_are_cut_to_the_limit_of_the_api(bench: Any) -> None:
    bench.recorder.event("Normal", "Long", "x" * 5000)
    await bench.settle()
    assert len(bench.api.created[0]["message"]) == 1024


async def test_pending_events_are_sent_before_the_end() -> None:
    made = Bench()
    async with made.recorder:
        made.recorder.event("Normal", "Last", "words")
    assert [event["reason"] for event in made.api.created] == ["Last"]


def test_end_does_not_wait_for_an_unavailable_api(virtual_time: Any) -> None:
    async def scenario() -> None:
        made = Bench()
        made.api.gate.clear()
        async with made.recorder:
            made.recorder.event("Normal", "Stuck", "x")
            made.recorder.event("Normal", "Stuck", "y")
        assert made.api.created == []
        assert asyncio.get_running_loop().time() < 5

    virtual_time.run(scenario())
