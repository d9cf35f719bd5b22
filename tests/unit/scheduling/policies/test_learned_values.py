from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.policies.learned_values import (
    KEY,
    LARGEST,
    LearnedValues,
    pod_type,
    read_values,
)
from kube_scheduler_operator.scheduling.policies.pods import read_pod

from .playing import pod

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
rewards = st.lists(st.tuples(names, names, st.floats(0, 1)), max_size=20)


@given(rewards)
def test_written_values_are_read(given: list[tuple[str, str, float]]) -> None:
    state = LearnedValues()
    for at, (kind, node, reward) in enumerate(given, 1):
        assert 0.0 <= state.reward(kind, node, reward) <= 1.0
        state.rated[node] = at + 0.5
    again = read_values(state.data())
    assert again.rated == state.rated
    rounded = {k: {n: round(v, 6) for n, v in by.items()} for k, by in state.by_type().items()}
    assert again.by_type() == rounded


@pytest.mark.parametrize(
    "data",
    [None, {}, {KEY: ""}, {KEY: "{"}, {KEY: "[]"}, {KEY: '{"values":3,"at":"x"}'},
     {KEY: '{"values":[["a","b"],["a","b","c"],3]}'}, {KEY: 3}, {KEY: "[" * 100_000},
     {KEY: '{"values":[["a","b",' + "9" * 400 + '],["a","b",NaN]],"at":' + "9" * 400 + "}"}],
)  # fmt: skip
def test_invalid_data_is_ignored(data: Any) -> None:
    state = read_values(data)
    assert state.by_type() == {}
    assert state.rated == {}


def test_the_time_of_an_older_version_counts_for_the_nodes_that_it_rated() -> None:
    state = read_values({KEY: '{"at":12.5,"values":[["web","a",0.5],["web","b",1]]}'})
    assert state.rated == {"a": 12.5, "b": 12.5}


def test_the_oldest_values_are_removed_at_the_size_limit() -> None:
    state = LearnedValues()
    for at in range(40_000):
        state.reward(f"type-{at % 10}", f"node-with-a-rather-long-name-{at}", 0.5)
    state.reward("type-0", "node-with-a-rather-long-name-0", 1.0)
    text = state.data()[KEY]
    assert 0.9 * LARGEST < len(text) <= LARGEST
    kept = {node for _, node, _ in json.loads(text)["values"]}
    assert "node-with-a-rather-long-name-39999" in kept
    assert "node-with-a-rather-long-name-0" in kept  # it was changed last
    assert "node-with-a-rather-long-name-1" not in kept


def test_a_namespace_with_many_types_displaces_its_own_values() -> None:
    state = LearnedValues()
    state.reward("shop/web", "a", 0.0)
    for number in range(40_000):
        state.reward(f"tenant/a-type-with-a-rather-long-name-{number}", "a", 0.5)
    assert len(state.data()[KEY]) <= LARGEST
    assert state.by_type()["shop/web"] == {"a": 0.9}


@pytest.mark.parametrize(
    ("labels", "kind"),
    [({"podtype": "a", "app": "b", "name": "c"}, "a"), ({"app": "b", "name": "c"}, "b"),
     ({"name": "c"}, "c"), ({"other": "d"}, "p"), ({}, "p")],
)  # fmt: skip
def test_the_type_of_a_pod(labels: dict[str, str], kind: str) -> None:
    assert pod_type(read_pod(pod("p", labels=labels))) == kind
