"""What the operator is told, and when."""

from __future__ import annotations

import json
import logging

import pytest

from kube_scheduler_operator.kube.errors import Forbidden, NotFound, Request
from kube_scheduler_operator.loadpolicy.load_state import read_said
from kube_scheduler_operator.programs.annotator.reported_state import KEY, Publisher, State

REQUEST = Request("patch", "/api/v1/namespaces/x/configmaps/load-state")


class Api:
    """One ConfigMap, or none."""

    def __init__(self):
        self.data, self.writes, self.error = {"written": "own"}, 0, None

    async def patch(self, ref, patch):
        assert (ref.namespace, ref.name) == ("x", "load-state")
        if self.error:
            raise self.error
        if self.data is None:
            raise NotFound(REQUEST, status=404)
        self.writes += 1
        self.data.update(patch["data"])

    async def create(self, resource, obj):
        assert obj["metadata"] == {"name": "load-state", "namespace": "x"}
        self.data = dict(obj["data"])


@pytest.fixture
def api():
    return Api()


@pytest.fixture
def publisher(api):
    clock = iter(range(0, 100_000, 60))
    return Publisher(api, "x", lambda: float(next(clock)))


def state(**changed):
    values = {"at": "2026-11-23T00:00:00Z", "source": "NodeMetrics", "nodes": 3, "known": 3}
    return State(**{**values, **changed})


async def test_it_is_told_when_it_changes_and_now_and_then(api, publisher):
    await publisher.publish(state())
    await publisher.publish(state(at="2026-11-23T00:01:00Z", patches=7, cycleSeconds=54.0))
    assert api.writes == 1
    await publisher.publish(state(known=2, staleCount=1, stale=["a"]))
    assert api.writes == 2
    for _ in range(5):
        await publisher.publish(state(known=2, staleCount=1, stale=["a"]))
    assert api.writes == 3
    assert api.data["written"] == "own"  # the operator's


async def test_what_the_operator_reads_is_what_was_told(api, publisher):
    told = state(staleCount=1, stale=["a"], missingCount=2, missing=["b", "c"], removed=["crane"],
                 policy="abc", error="a: refused")  # fmt: skip
    await publisher.publish(told)
    said = read_said({"data": api.data})
    assert (said.nodes, said.known, said.stale, said.missing) == (3, 3, 1, 2)
    assert (said.stale_names, said.missing_names) == (("a",), ("b", "c"))
    assert (said.policy, said.removed, said.error) == ("abc", ("crane",), "a: refused")
    assert said.at is not None
    assert set(json.loads(api.data[KEY])) >= {"write", "source", "cycleSeconds", "patches"}


async def test_without_the_config_map_one_is_made(api, publisher):
    api.data = None
    await publisher.publish(state())
    assert json.loads(api.data[KEY])["known"] == 3


async def test_trouble_is_said_once_and_it_is_tried_again(api, publisher, caplog):
    api.error = Forbidden(REQUEST, status=403)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            await publisher.publish(state())
    assert len(caplog.records) == 1
    api.error = None
    await publisher.publish(state())
    assert api.writes == 1
