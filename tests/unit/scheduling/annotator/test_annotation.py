"""Annotations have the format that readers of each family expect."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base.names import LOAD_ANNOTATION
from kube_scheduler_operator.scheduling.annotator.annotation import (
    KEYS,
    cleanup_patch,
    crane,
    own,
    read_hot,
    read_own,
    read_requested,
    safe,
)
from kube_scheduler_operator.scheduling.annotator.measurement import KEYS as FIGURES
from kube_scheduler_operator.scheduling.annotator.measurement import Load
from kube_scheduler_operator.scheduling.load.policy import METRICS, Rules, Sync, time_zone
from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.scheduling.policies.node_loads import LoadColumns

AT = datetime.datetime(2026, 11, 23, 7, 4, 32, tzinfo=datetime.UTC).timestamp()
USAGE = (0.63012, 0.66, 0.7, 0.3, 0.35, 0.4)
AMOUNTS = (2000.0, 400.0, 1900.0, 4e9, 1e8, 3.9e9)
LOAD = Load(AT + 0.7, "NodeMetrics", (*USAGE, *AMOUNTS, 12.0), (4000.0, 8e9))


def test_own_annotation_is_one_json_in_utc() -> None:
    fields = json.loads(own(LOAD)[LOAD_ANNOTATION])
    assert fields["at"] == "2026-11-23T07:04:32Z"
    assert fields["source"] == "NodeMetrics"
    assert fields["cpu_usage_avg_5m"] == 0.63012
    assert fields["free_memory_std"] == 1e8
    assert fields["congestion"] == 12
    assert set(fields) == {"at", "source", *FIGURES, "cpu", "memory"}


def test_unknown_metrics_are_omitted() -> None:
    values = (math.nan, *LOAD.values[1:])
    fields = json.loads(own(Load(AT, "x", values))[LOAD_ANNOTATION])
    assert "cpu_usage_avg_5m" not in fields
    assert "cpu" not in fields


VALUES = st.one_of(st.just(math.nan), st.floats(0, 1e12))


@given(st.lists(VALUES, min_size=len(FIGURES), max_size=len(FIGURES)), st.booleans())
def test_own_annotation_round_trips(values: Any, sized: Any) -> None:
    load = Load(AT, "NodeMetrics", tuple(values), (4000.0, 8e9) if sized else (0.0, 0.0))
    found = read_own(own(load)[LOAD_ANNOTATION])
    assert repr(found) == repr(load)  # NaN is not equal to itself


@pytest.mark.parametrize(
    "text",
    [None, "", "{", "[]", "7", "{}", '{"at":5}', '{"at":"soon"}', '{"at":"2026-11-23T00:00:00"}',
     '{"at":"2026-11-23T00:00:00Z"' + "[" * 5000, '{"at":"9999-12-31T23:59:59-23:59"}',
     '{"at":"0001-01-01T00:00:00+23:59"}'],
)  # fmt: skip
def test_invalid_annotation_is_none(text: Any) -> None:
    assert read_own(text) is None


def test_invalid_metric_is_unknown() -> None:
    text = '{"at":"2026-11-23T00:00:00Z","cpu_usage_avg_5m":"much","mem_usage_avg_5m":true,'
    text = text + '"cpu_usage_max_avg_1h":-5,"cpu_usage_max_avg_1d":1e999}'
    found = read_own(text)
    assert found is not None
    assert all(math.isnan(value) for value in found.values)


def test_cranes_annotations_have_five_decimals_and_a_local_time() -> None:
    fields = crane(LOAD, Rules(), time_zone("Asia/Shanghai"), 3, AT + 60)
    assert fields == {
        "cpu_usage_avg_5m": "0.63012,2026-11-23T15:04:32Z",
        "cpu_usage_max_avg_1h": "0.66000,2026-11-23T15:04:32Z",
        "cpu_usage_max_avg_1d": "0.70000,2026-11-23T15:04:32Z",
        "mem_usage_avg_5m": "0.30000,2026-11-23T15:04:32Z",
        "mem_usage_max_avg_1h": "0.35000,2026-11-23T15:04:32Z",
        "mem_usage_max_avg_1d": "0.40000,2026-11-23T15:04:32Z",
        "node_hot_value": "3,2026-11-23T15:05:32Z",
    }
    assert read_hot(fields) == 3


def test_cranes_annotations_are_the_synced_metrics() -> None:
    rules = Rules(sync=(Sync("mem_usage_avg_5m", 180), Sync("disk", 180)), hot_values=())
    assert list(crane(LOAD, rules, datetime.UTC, 0, AT)) == ["mem_usage_avg_5m"]


def test_safes_annotations_are_integers() -> None:
    fields = safe(LOAD, {"cpu": 1500.0, "memory": 2e9, "pods": 12.0})
    assert fields == {
        "mean-free-cpu": "2000",
        "std-free-cpu": "400",
        "forcasted-free-cpu": "1900",
        "mean-free-memory": "4000000000",
        "std-free-memory": "100000000",
        "forcasted-free-memory": "3900000000",
        "congestion-factor": "12",
        "requested-cpu": "1500",
        "requested-memory": "2000000000",
        "requested-pods": "12",
        "requested-gpu": "0",
        "requested-ephemeral-storage": "0",
    }
    assert read_requested(fields)["memory"] == 2e9
    assert "requested-cpu" not in safe(LOAD, {})


READERS = {
    "own": lambda: own(LOAD),
    "crane": lambda: crane(LOAD, Rules(), time_zone("Asia/Shanghai"), 3, AT),
    "safe": lambda: safe(LOAD, {"cpu": 1500.0, "pods": 12.0}),
}


@pytest.mark.parametrize("family", READERS)
def test_policies_read_the_written_annotations(family: Any) -> None:
    cluster = Cluster(lambda: AT + 60)
    names = {
        "own": FIGURES,
        "crane": (*METRICS, "hot"),
        "safe": (*FIGURES[6:], "requested_cpu", "requested_pods"),
    }[family]
    loads = LoadColumns(
        cluster, names, lambda _: None, annotations=family, zone=time_zone("Asia/Shanghai")
    )
    read: Callable[..., Any] = loads.read
    cluster.on_node(read)
    cluster.set_node(
        {"metadata": {"name": "a", "annotations": READERS[family]()}, "status": {}, "spec": {}}
    )
    others = {"hot": 3.0, "requested_cpu": 1500.0, "requested_pods": 12.0}
    for name in names:
        expected = others[name] if name in others else LOAD[name]
        assert loads.columns[name][0] == pytest.approx(expected), name


def test_families_write_only_their_listed_keys() -> None:
    assert set(own(LOAD)) <= set(KEYS["own"])
    assert set(crane(LOAD, Rules(), datetime.UTC, 1, AT)) == set(KEYS["crane"])
    assert set(safe(LOAD, {"cpu": 1.0})) == set(KEYS["safe"])


def test_cleanup_removes_present_keys_of_the_given_families_only() -> None:
    annotations = {
        LOAD_ANNOTATION: "{}",
        "cpu_usage_avg_5m": "0.1,x",
        "mean-free-cpu": "1",
        "a": "b",
    }
    node = {"metadata": {"name": "n", "uid": "u", "annotations": annotations}}
    assert cleanup_patch(node, ["own", "crane"]) == {
        "metadata": {"uid": "u", "annotations": {LOAD_ANNOTATION: None, "cpu_usage_avg_5m": None}}
    }
    assert cleanup_patch(node, []) is None
    assert cleanup_patch({"metadata": {"name": "n", "uid": "u"}}, KEYS) is None


@pytest.mark.parametrize("text", ["", "3", "x,2026", "-1,2026", "3.5,2026"])
def test_invalid_hot_values_are_none(text: Any) -> None:
    assert read_hot({"node_hot_value": text}) is None


def test_metric_names_are_cranes() -> None:
    assert KEYS["crane"] == (*METRICS, "node_hot_value")
