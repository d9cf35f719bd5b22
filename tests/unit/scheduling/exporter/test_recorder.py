"""Recorded samples: statistics, metrics and stale values."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.exporter.exporter import answers
from kube_scheduler_operator.scheduling.exporter.recorder import UsageRecorder
from kube_scheduler_operator.scheduling.exporter.usage_source import Reading, ReadingError

KEYS = [
    f"{prefix}_usage_{window}"
    for prefix in ("cpu", "mem")
    for window in ("active", "avg_5m", "max_avg_1h", "max_avg_1d")
]


class Node:
    """Four CPUs, half of them busy, and three quarters of the memory."""

    def __init__(self) -> None:
        self.now, self.trouble = 0.0, ""
        self.recorder = UsageRecorder(self, lambda: self.now)

    def read(self, now: Any) -> Reading:
        if self.trouble:
            raise ReadingError(self.trouble)
        return Reading(now, now * 2, now * 4, 750.0, 1000.0, 4)

    def sample(self, *, after: float = 15.0) -> None:
        self.now += after
        self.recorder.sample()

    def get(self, path: Any) -> Any:
        return answers(self.recorder, path)


@pytest.fixture
def node() -> Node:
    return Node()


def test_statistics_have_the_keys_and_the_unit_of_node_metrics(node: Node) -> None:
    node.sample()
    node.sample()
    answer = node.get("/statistics")
    assert (answer.status, answer.content_type) == (200, "application/json")
    found = json.loads(answer.body)
    assert [found[key] for key in KEYS] == [50, 50, 50, 50, 75, 75, 75, 75]
    assert all(isinstance(value, int | float) for value in found.values())
    assert (found["free_cpu_mean"], found["free_cpu_std"]) == (2000, 0)
    assert (found["free_memory_mean"], found["free_memory_std"]) == (250, 0)
    assert (found["capacity_cpu"], found["capacity_memory"]) == (4000, 1000)


def test_metrics_are_gauges_of_the_same_names(node: Node) -> None:
    node.sample()
    node.sample()
    lines = node.get("/metrics").body.decode().splitlines()
    for key in KEYS:
        assert f"# TYPE node_{key} gauge" in lines
        assert any(line.startswith(f"node_{key} ") for line in lines)
    assert "node_cpu_usage_avg_5m 50.0" in lines
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(families)) == len(families)


def test_one_reading_gives_no_values(node: Node) -> None:
    node.sample()
    assert node.get("/statistics").status == node.get("/healthz").status == 503
    assert node.get("/metrics").status == 200  # a scrape shows the trouble
    node.sample()
    assert node.get("/statistics").status == node.get("/healthz").status == 200


def test_stale_values_are_not_served(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.sample()
    node.sample()
    node.trouble = "/proc/stat: gone"
    with caplog.at_level(logging.INFO):
        for _ in range(6):
            node.sample()
    assert node.get("/statistics").body == b"no sample: /proc/stat: gone\n"
    assert node.get("/healthz").status == 503
    assert "node_metrics_failed_readings_total 6" in node.get("/metrics").body.decode()
    assert "node_cpu_usage" not in node.get("/metrics").body.decode()
    assert len(caplog.records) == 1
    node.trouble = ""
    node.sample()
    node.sample()
    assert node.get("/statistics").status == 200


def test_gap_is_excluded_from_the_average(node: Node) -> None:
    node.sample()
    node.sample()
    node.sample(after=3600.0)  # the machine slept
    assert node.get("/statistics").status == 503
    node.sample()
    assert node.get("/statistics").status == 200


def test_unknown_path_lists_the_known_ones(node: Node) -> None:
    assert node.get("/").status == 404
    assert b"/statistics" in node.get("/nothing").body
