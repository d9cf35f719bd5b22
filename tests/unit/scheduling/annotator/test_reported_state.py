"""The report to the operator, and when it is written."""

from __future__ import annotations

import json
import logging
from typing import Any, cast

import pytest

from kube_scheduler_operator.base.names import LOAD_STATE_KEY
from kube_scheduler_operator.kube import api as kube
from kube_scheduler_operator.kube.errors import ApiRequest, Forbidden, NotFound
from kube_scheduler_operator.scheduling.annotator.reported_state import Publisher
from kube_scheduler_operator.scheduling.load.reported_state import ReportedState

REQUEST = ApiRequest("patch", "/api/v1/namespaces/x/configmaps/load-state")


class Api:
    """One ConfigMap, or none."""

    def __init__(self) -> None:
        self.data: Any = {"written": "own"}  # None: it does not exist
        self.error: Exception | None = None
        self.writes = 0

    async def patch(self, ref: Any, patch: Any) -> None:
        assert (ref.namespace, ref.name) == ("x", "load-state")
        if self.error:
            raise self.error
        if self.data is None:
            raise NotFound(REQUEST, status=404)
        self.writes += 1
        self.data.update(patch["data"])

    async def create(self, resource: Any, obj: Any) -> None:
        assert obj["metadata"] == {"name": "load-state", "namespace": "x"}
        self.data = dict(obj["data"])


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def publisher(api: Api) -> Publisher:
    clock = iter(range(0, 100_000, 60))
    return Publisher(cast(kube.Api, api), "x", lambda: float(next(clock)))


def state(**changed: Any) -> ReportedState:
    values = {"at": "2026-11-23T00:00:00Z", "source": "NodeMetrics", "nodes": 3, "known": 3}
    return ReportedState(**{**values, **changed})


async def test_report_is_written_on_change_and_periodically(api: Api, publisher: Publisher) -> None:
    await publisher.publish(state())
    await publisher.publish(state(at="2026-11-23T00:01:00Z", patches=7, cycleSeconds=54.0))
    assert api.writes == 1
    await publisher.publish(state(known=2, staleCount=1, stale=["a"]))
    assert api.writes == 2
    for _ in range(5):
        await publisher.publish(state(known=2, staleCount=1, stale=["a"]))
    assert api.writes == 3
    assert api.data["written"] == "own"  # the operator's


async def test_operator_reads_the_written_report(api: Api, publisher: Publisher) -> None:
    sent = state(staleCount=1, stale=["a"], missingCount=2, missing=["b", "c"], removed=["crane"],
                 policy="abc", error="a: refused")  # fmt: skip
    await publisher.publish(sent)
    report = ReportedState.read({"metadata": {}, "data": api.data})
    assert (report.nodes, report.known, report.staleCount, report.missingCount) == (3, 3, 1, 2)
    assert (report.stale, report.missing) == (["a"], ["b", "c"])
    assert (report.policy, report.removed, report.error) == ("abc", ["crane"], "a: refused")
    assert report.time is not None
    assert set(json.loads(api.data[LOAD_STATE_KEY])) >= {
        "write",
        "source",
        "cycleSeconds",
        "patches",
    }


async def test_missing_config_map_is_created(api: Api, publisher: Publisher) -> None:
    api.data = None
    await publisher.publish(state())
    assert json.loads(api.data[LOAD_STATE_KEY])["known"] == 3


async def test_failure_is_logged_once_and_retried(
    api: Api, publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    api.error = Forbidden(REQUEST, status=403)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            await publisher.publish(state())
    assert len(caplog.records) == 1
    api.error = None
    await publisher.publish(state())
    assert api.writes == 1
