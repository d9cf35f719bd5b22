from __future__ import annotations

import math
from datetime import UTC, timedelta, timezone
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.policies.cluster import Cluster, Node
from kube_scheduler_operator.scheduling.policies.node_loads import LoadColumns

from .playing import NOW, Clock, node, rfc3339, usage

CPU = "cpu_usage_avg_5m"


class Read:
    def __init__(self, names: tuple[str, ...] = (CPU,), **options: Any) -> None:
        self.clock = Clock()
        self.cluster = Cluster(self.clock)
        self.changed: list[int] = []
        self.loads = LoadColumns(self.cluster, names, self.changed.append, **options)
        self.cluster.on_node(self.node)

    def node(self, index: int, node: Node | None) -> None:
        if self.loads.read(index, node):
            self.changed.append(index)

    def update(self, annotations: dict[str, str], name: str = "a") -> None:
        self.cluster.set_node(node(name, annotations=annotations))

    def value(self, name: str = CPU) -> float | None:
        found = self.loads.columns[name][0]
        return None if math.isnan(found) else found


def test_our_annotation_is_valid_until_it_expires() -> None:
    read = Read(valid={CPU: 60.0})
    read.update(usage(**{CPU: 0.25}))
    assert read.value() == 0.25
    assert read.loads.measured[0] == NOW
    read.clock.now += 59
    read.loads.expire()
    assert read.value() == 0.25
    read.clock.now += 1
    read.changed.clear()
    read.loads.expire()
    assert read.value() is None
    assert read.changed == [0]
    read.loads.expire()
    assert read.changed == [0]
    read.update(usage(read.clock.now, **{CPU: 0.5}))
    assert read.value() == 0.5


@pytest.mark.parametrize("ahead", [0.0, 560.0, 1200.0])
def test_an_annotation_from_a_clock_that_is_ahead_is_valid_for_no_longer(ahead: float) -> None:
    read = Read(valid={CPU: 60.0})
    read.update(usage(NOW + ahead, **{CPU: 0.25}))
    assert (read.value(), read.loads.measured[0]) == (0.25, NOW)
    read.clock.now += 60
    read.loads.expire()
    assert read.value() is None


def test_an_expired_annotation_is_unknown() -> None:
    read = Read()
    read.update(usage(NOW - 480, **{CPU: 0.25}))
    assert read.value() is None
    read.update(usage(NOW - 479, **{CPU: 0.25}))
    assert read.value() == 0.25


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"at":"2026-11-23T00:00:00Z"}', '{"cpu_usage_avg_5m":0.5}',
     '{"at":"2026-11-23T00:00:00Z","cpu_usage_avg_5m":"0.5"}',
     '{"at":"2026-11-23T00:00:00Z","cpu_usage_avg_5m":NaN}',
     '{"at":"2026-11-23T00:00:00Z","cpu_usage_avg_5m":true}',
     pytest.param("[" * 100_000, id="deep"),
     '{"at":"2026-11-23T00:00:00Z","cpu_usage_avg_5m":' + "9" * 400 + "}",
     '{"at":"2026-11-23T00:00:00Z","cpu_usage_avg_5m":-' + "9" * 400 + "}"],
)  # fmt: skip
def test_invalid_values_are_unknown(text: str) -> None:
    read = Read()
    read.update({next(iter(usage())): text})
    assert read.value() is None


def test_cranes_suffix_z_has_no_meaning() -> None:
    shanghai = timezone(timedelta(hours=8))
    local = rfc3339(NOW + 8 * 3600)
    read = Read((CPU, "hot"), annotations="crane", zone=shanghai)
    read.update({CPU: f"0.63012,{local}", "node_hot_value": f"3,{local}"})
    assert read.value() == 0.63012
    assert read.value("hot") == 3.0
    read.clock.now += 300
    read.loads.expire()
    assert read.value("hot") is None
    assert read.value() == 0.63012
    ignorant = Read(annotations="crane", zone=UTC)
    ignorant.update({CPU: f"0.63012,{rfc3339(NOW - 3600)}"})
    assert ignorant.value() is None


@pytest.mark.parametrize("text", ["0.5", "0.5,x", "-0.5,{at}", "x,{at}", "0.5,{at},{at}", ",{at}"])
def test_values_that_crane_rejects_are_unknown(text: str) -> None:
    read = Read(annotations="crane")
    read.update({CPU: text.format(at=rfc3339(NOW))})
    assert read.value() is None


def test_crane_plus_uses_percent() -> None:
    read = Read(annotations="crane-plus")
    read.update({CPU: f"63.0,{rfc3339(NOW)}"})
    assert read.value() == 0.63


def test_annotations_of_safe_do_not_expire() -> None:
    names = ("free_cpu_mean", "free_memory_forecast", "congestion", "requested_ephemeral-storage")
    read = Read(names, annotations="safe")
    read.update(
        {
            "mean-free-cpu": "2000.5",
            "forcasted-free-memory": "N/A",
            "congestion-factor": "7",
            "requested-ephemeral-storage": "5",
        }
    )
    read.clock.now += 1e9
    read.loads.expire()
    assert read.value("free_cpu_mean") == 2000.5
    assert read.value("free_memory_forecast") is None
    assert read.value("congestion") == 7.0
    assert read.value("requested_ephemeral-storage") == 5.0


def test_a_removed_node_is_unknown() -> None:
    read = Read()
    read.update(usage(**{CPU: 0.25}))
    read.cluster.remove_node("a")
    assert read.value() is None
