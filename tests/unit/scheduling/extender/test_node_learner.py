"""Nodes that are known only from requests are bounded."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.scheduling.extender import assembly
from kube_scheduler_operator.scheduling.extender.assembly import NodeLearner
from kube_scheduler_operator.scheduling.policies.cluster import Cluster

from .conftest import node


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(lambda: 0.0)


def known(cluster: Cluster) -> list[str]:
    return sorted(each.name for each in cluster.nodes if each is not None)


def test_nodes_of_earlier_requests_stay(cluster: Cluster) -> None:
    learn = NodeLearner(cluster)
    learn([node("a"), node("b")])
    learn([node("c")])
    assert known(cluster) == ["a", "b", "c"]


def test_the_oldest_nodes_make_room_by_number(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "LEARNED_NODES", 3)
    learn = NodeLearner(cluster)
    learn([node("a"), node("b"), node("c")])
    learn([node("a"), node("d")])
    assert known(cluster) == ["a", "c", "d"]


def test_the_oldest_nodes_make_room_by_size(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "LEARNED_BYTES", 10_000)
    learn = NodeLearner(cluster)
    for number in range(20):
        learn([node(f"n{number:02}", note="x" * 3000)])
        assert len(known(cluster)) <= 3
    assert known(cluster) == ["n17", "n18", "n19"]
    learn([node("huge", note="x" * 20_000)])
    assert known(cluster) == []
    learn([node("small")])
    assert known(cluster) == ["small"]


def test_a_changed_node_is_counted_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "LEARNED_BYTES", 10_000)
    learn = NodeLearner(cluster)
    learn([node("other")])
    for size in range(100):
        learn([node("a", note="x" * (1000 + size))])
    assert known(cluster) == ["a", "other"]
