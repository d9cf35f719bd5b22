"""Recurring lists of names are neither parsed nor looked up again, and stay correct."""

from __future__ import annotations

import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.extender.node_names import (
    NamesError,
    NodeNames,
    RecentNodeNames,
)
from kube_scheduler_operator.scheduling.extender.wire import ArgsReader
from kube_scheduler_operator.scheduling.policies.cluster import Cluster

from .conftest import POD, names_body, node


def as_json(*names: str) -> bytes:
    return json.dumps(names, separators=(",", ":")).encode()


def located(cluster: Cluster, names: NodeNames) -> tuple[list[str], list[int]]:
    names.locate(cluster)
    positions = range(len(names)) if names.positions is None else names.positions.tolist()
    return [cluster.names[index] for index in names.indices], list(positions)


def test_a_recurring_list_is_the_same_object() -> None:
    last = RecentNodeNames()
    names = last.get(as_json("a", "b"))
    assert names.texts == ["a", "b"]
    assert last.get(as_json("b", "a")) is not names
    assert last.get(as_json("a", "b")) is names


def test_requests_for_other_pods_share_their_names() -> None:
    reader = ArgsReader()
    first = reader.read(names_body("a", "b"))
    reader.read(names_body("b", "a"))
    other = reader.read(names_body("a", "b", pod={**POD, "x": 1}))
    assert other.nodes is first.nodes
    assert other.object["x"] == 1


def test_the_least_recently_used_list_is_removed() -> None:
    last = RecentNodeNames(size=2)
    first, second = last.get(as_json("a")), last.get(as_json("b"))
    assert last.get(as_json("a")) is first
    last.get(as_json("c"))
    assert last.get(as_json("a")) is first
    assert last.get(as_json("b")) is not second


def test_the_cache_has_a_size_in_bytes() -> None:
    size = len(as_json("a" * 50))
    last = RecentNodeNames(size_bytes=2 * size)
    first, second = last.get(as_json("a" * 50)), last.get(as_json("b" * 50))
    assert last.get(as_json("a" * 50)) is first
    last.get(as_json("c" * 50))
    assert last.get(as_json("b" * 50)) is not second
    # One that is larger than all room there is is read, and leaves the room as it was.
    huge = as_json(*("d" * 50 for _ in range(3)))
    assert last.get(huge) is not last.get(huge)
    first = last.get(as_json("a" * 50))
    last.get(as_json("b" * 50))
    assert last.get(as_json("a" * 50)) is first


def test_invalid_json_is_not_cached() -> None:
    last = RecentNodeNames()
    for _ in range(2):
        with pytest.raises(orjson.JSONDecodeError):
            last.get(b'["a"')


def test_names_are_looked_up_again_when_nodes_change(cluster: Cluster) -> None:
    names = NodeNames(["c", "x", "a"])
    assert located(cluster, names) == (["c", "a"], [0, 2])
    cluster.set_node(node("x"))
    assert located(cluster, names) == (["c", "x", "a"], [0, 1, 2])
    assert names.positions is None
    cluster.remove_node("c")
    cluster.set_node(node("d"))  # in the place of c
    assert located(cluster, names) == (["x", "a"], [1, 2])


def test_earlier_indices_do_not_change(cluster: Cluster) -> None:
    """Recorded decisions keep references to positions."""
    names = NodeNames(["c", "x", "a"])
    names.locate(cluster)
    indices, positions = names.indices, names.positions
    assert positions is not None
    cluster.set_node(node("x"))
    names.locate(cluster)
    assert (len(indices), positions.tolist()) == (2, [0, 2])


@pytest.mark.parametrize("wrong", [["a", 1], ["a", None], ["a", ["b"]], ["a", {"b": "c"}]])
def test_names_that_are_not_strings_are_always_refused(cluster: Cluster, wrong: Any) -> None:
    names = NodeNames(wrong)
    for _ in range(2):
        with pytest.raises(NamesError, match="list of strings"):
            names.locate(cluster)


@given(st.lists(st.sampled_from("abcxyz"), unique=True), st.data())
def test_a_split_separates_rejected_names(texts: list[str], data: st.DataObject) -> None:
    cluster = Cluster(time.time)
    for name in "abc":
        cluster.set_node(node(name))
    names = NodeNames(texts)
    if data.draw(st.booleans()):
        names.locate(cluster)
    for _ in range(2):
        at = data.draw(st.permutations(range(len(texts))).map(lambda all_: all_[: len(all_) // 2]))
        left, gone = names.split(at)
        assert gone == [texts[each] for each in at]
        assert left.texts == [text for text in texts if text not in gone]
        assert json.loads(left.json) == left.texts
        assert located(cluster, left) == located(cluster, NodeNames(list(left.texts)))


def test_a_repeated_split_is_cached() -> None:
    names = NodeNames(["a", "b", "c"])
    left, _ = names.split({1: "hot"})
    assert names.split({1: "cold"})[0] is left
    assert names.split({2: "hot"})[0] is not left
