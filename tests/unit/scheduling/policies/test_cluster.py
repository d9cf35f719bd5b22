from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.policies.cluster import ASSUMED_SECONDS, Cluster, Node
from kube_scheduler_operator.scheduling.policies.pods import Pod, read_pod

from .playing import Clock, node, pod


def test_a_node_keeps_its_index_while_it_or_its_pods_exist() -> None:
    cluster = Cluster(time.time)
    cluster.set_pod(pod("p", on="a"))
    cluster.set_node(node("b"))
    at = cluster.index["a"]
    assert cluster.nodes[at] is None
    cluster.set_node(node("a"))
    cluster.remove_node("a")
    assert cluster.index["a"] == at
    cluster.remove_pod({"metadata": {"uid": "uid-p"}})
    assert "a" not in cluster.index
    assert cluster.names[at] == ""
    cluster.set_node(node("c"))
    assert cluster.index["c"] == at
    assert len(cluster) == 2


def test_a_heartbeat_is_not_a_change() -> None:
    cluster = Cluster(time.time)
    received: list[Any] = []
    cluster.on_node(lambda index, node: received.append((index, node)))
    cluster.set_node(node("a"))
    version = cluster.version
    beat = node("a")
    beat["status"]["conditions"] = [{"type": "Ready", "lastHeartbeatTime": "now"}]
    cluster.set_node(beat)
    assert len(received) == 1
    assert cluster.version == version
    cluster.set_node(node("a", cpu="8"))
    assert len(received) == 2
    assert cluster.version > version


def test_a_late_callback_receives_present_objects() -> None:
    cluster = Cluster(time.time)
    cluster.set_node(node("a"))
    cluster.set_pod(pod("p", on="a"))
    names: list[str] = []
    nodes: list[Node | None] = []
    pods: list[tuple[str, bool]] = []

    def on_pod(index: int, pod: Pod, added: bool) -> None:
        pods.append((pod.name, added))

    cluster.on_name(lambda index, name: names.append(name))
    cluster.on_node(lambda index, node: nodes.append(node))
    leave = cluster.on_pod(on_pod)
    assert names == ["a"]
    assert [each.name for each in nodes if each] == ["a"]
    assert pods == [("p", True)]
    leave()
    cluster.remove_pod({"metadata": {"uid": "uid-p"}})
    assert pods == [("p", True)]


def test_finished_pods_use_no_resources() -> None:
    cluster = Cluster(time.time)
    cluster.set_node(node("a"))
    cpu, pods = cluster.requested("cpu"), cluster.requested("pods")
    cluster.set_pod(pod("p", cpu="1", on="a"))
    cluster.set_pod(pod("q", cpu="1", on="a"))
    assert (cpu[0], pods[0]) == (2000.0, 2.0)
    cluster.set_pod(pod("p", cpu="1", on="a", status={"phase": "Succeeded"}))
    assert (cpu[0], pods[0]) == (1000.0, 1.0)
    assert [each.name for each in cluster.pods_on(0)] == ["q"]


def test_a_resized_pod_is_removed_and_added() -> None:
    cluster = Cluster(time.time)
    cluster.set_pod(pod("p", cpu="1", on="a"))
    received: list[tuple[float, bool]] = []
    cluster.on_pod(lambda index, pod, added: received.append((pod.requests["cpu"], added)))
    cluster.set_pod(pod("p", cpu="1", on="a"))
    cluster.set_pod(pod("p", cpu="2", on="a"))
    assert received == [(1000.0, True), (1000.0, False), (2000.0, True)]
    assert cluster.requested("cpu")[0] == 2000.0


NAMES = st.sampled_from("abcd")
STEPS = st.lists(
    st.tuples(st.just("node"), NAMES, st.integers(1, 4))
    | st.tuples(st.just("no node"), NAMES, st.just(0))
    | st.tuples(st.sampled_from(["p", "q", "r", "s"]), NAMES, st.integers(1, 4))
    | st.tuples(st.just("no pod"), st.sampled_from("pqrs"), st.just(0))
    | st.tuples(st.just("sums"), st.just(""), st.just(0)),
    max_size=40,
)


@given(STEPS)
def test_sums_equal_a_recomputation_and_indices_are_unique(
    steps: list[tuple[str, str, int]],
) -> None:
    cluster = Cluster(time.time)
    placed: dict[str, Any] = {}
    for what, name, size in steps:
        if what == "node":
            cluster.set_node(node(name, cpu=str(size)))
        elif what == "no node":
            cluster.remove_node(name)
        elif what == "no pod":
            cluster.remove_pod({"metadata": {"uid": f"uid-{name}"}})
            placed.pop(name, None)
        elif what == "sums":
            cluster.requested("cpu")
        else:
            cluster.set_pod(pod(what, cpu=str(size), on=name))
            placed[what] = (name, size)
    for name, index in cluster.index.items():
        assert cluster.names[index] == name
        expected = sum(1000.0 * size for where, size in placed.values() if where == name)
        assert cluster.requested("cpu")[index] == expected
        assert cluster.requested("pods")[index] == len(list(cluster.pods_on(index)))
    assert len(set(cluster.index.values())) == len(cluster.index)
    assert {where for where, _ in placed.values()} <= set(cluster.index)


def test_callbacks_report_reused_indices() -> None:
    cluster = Cluster(time.time)
    seen = [cluster.names_version]

    def changed() -> bool:
        seen.append(cluster.names_version)
        return seen[-1] != seen[-2]

    cluster.set_node(node("a"))
    assert changed()
    cluster.set_node(node("a", cpu="8"))
    assert not changed()
    cluster.set_pod(pod("p", on="a"))
    assert not changed()
    cluster.remove_node("a")
    assert not changed()  # its pod is still there
    cluster.remove_pod({"metadata": {"uid": "uid-p"}})
    assert changed()


def test_an_assumed_pod_is_left_out_for_itself_only() -> None:
    cluster = Cluster(Clock())
    cluster.set_node(node("a"))
    requested, at = cluster.requested("cpu"), cluster.index["a"]
    cluster.assume(read_pod(pod("p", cpu="1")), at)
    with cluster.without_assumed("uid-p"):
        assert requested[at] == 0
    assert requested[at] == 1000
    with cluster.without_assumed("uid-q"):
        assert requested[at] == 1000
    cluster.remove_node("a")
    with cluster.without_assumed("uid-p"):
        pass
    assert "a" not in cluster.index
    assert cluster.pod("uid-p") is None


def test_an_assumed_pod_counts_until_its_binding_is_observed() -> None:
    clock = Clock()
    cluster = Cluster(clock)
    for name in ("a", "b"):
        cluster.set_node(node(name))
    changes: list[tuple[str, str, bool]] = []
    cluster.on_pod(
        lambda index, pod, added: changes.append((cluster.names[index], pod.name, added))
    )
    requested, at = cluster.requested("cpu"), cluster.index["a"]
    version = cluster.version
    cluster.assume(read_pod(pod("p", cpu="1")), at)
    assert requested[at] == 1000
    assert cluster.version == version, "nothing was observed"
    assert cluster.pod_keys() == set()
    cluster.set_pod(pod("p", cpu="1", on="a"))
    assert changes == [("a", "p", True)], "it is bound where it was assumed"
    assert cluster.pod_keys() == {"uid-p"}
    cluster.assume(read_pod(pod("p", cpu="1")), cluster.index["b"])
    assert requested[at] == 1000, "a bound Pod stays where it is"

    cluster.assume(read_pod(pod("q", cpu="2")), at)
    cluster.set_pod(pod("q", cpu="2", on="b"))
    assert (requested[at], requested[cluster.index["b"]]) == (1000, 2000)

    cluster.assume(read_pod(pod("r", cpu="3")), at)
    clock.now += ASSUMED_SECONDS - 1
    cluster.expire_assumed()
    assert requested[at] == 4000
    clock.now += 1
    cluster.expire_assumed()
    assert requested[at] == 1000


def test_assumed_pods_are_bounded() -> None:
    """A client that can call an extender can name any Pod."""
    cluster = Cluster(Clock())
    cluster.set_node(node("a"))
    column = cluster.requested("pods")
    for number in range(5000):
        cluster.assume(read_pod(pod(f"p{number}")), 0)
    assert column[0] == 4096
