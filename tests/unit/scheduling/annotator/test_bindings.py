"""Hot values, compared with crane's golden vectors, and sums of requests."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.scheduling.annotator.bindings import PodBindings
from kube_scheduler_operator.scheduling.load.policy import HotValue, Rules, hot_value

from .... import builders

SHIPPED = (HotValue(300.0, 5), HotValue(60.0, 2))
NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("ages", "value"),
    [
        ([], 0),
        ([10], 0),
        ([10, 20], 1),
        ([10, 20, 30, 40], 2),
        ([30, 100, 150, 200, 250], 1),
        ([30, *range(100, 190, 10)], 2),
        ([1, 2, 3, 4, 5, 6, 7], 4),
        ([60, 60], 0),  # at the window's edge it is over
        ([59.9, 59.9], 1),
        ([300] * 5, 0),
    ],
)
def test_hot_values(ages: Any, value: Any) -> None:
    assert hot_value(SHIPPED, [NOW - age for age in ages], NOW) == value


def pod(
    name: Any,
    node: str = "a",
    *,
    cpu: str = "100m",
    memory: str = "1Gi",
    uid: Any = None,
    phase: str = "Running",
    bound: Any = None,
) -> Any:
    return builders.pod(
        name,
        node=node,
        containers=[builders.container({"cpu": cpu, "memory": memory})],
        metadata={"uid": uid} if uid else None,
        status=builders.pod_status(phase, bound),
    )


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bindings(clock: Clock) -> PodBindings:
    return PodBindings(Rules(hot_values=SHIPPED), clock)


def test_pod_counts_once_across_events(bindings: PodBindings) -> None:
    for phase in ("Pending", "Running", "Running"):
        for name in ("one", "two"):
            bindings.set(pod(name, phase=phase))
    assert bindings.hot("a", NOW) == 1
    assert bindings.requested("a") == {"cpu": 200.0, "memory": 2 * 2**30, "pods": 2.0}


def test_binding_of_a_deleted_pod_still_counts(bindings: PodBindings, clock: Clock) -> None:
    for name in ("one", "two"):
        bindings.set(pod(name))
        bindings.remove(pod(name))
    assert bindings.hot("a", NOW) == 1
    assert bindings.requested("a") == {"pods": 0.0}
    clock.now += 61
    assert bindings.hot("a", clock.now) == 0


def test_finished_pods_request_nothing(bindings: PodBindings) -> None:
    bindings.set(pod("one"))
    bindings.set(pod("one", phase="Succeeded"))
    bindings.set(pod("two", phase="Failed"))
    assert bindings.requested("a") == {"pods": 0.0}


def test_recreated_pod_is_a_new_binding(bindings: PodBindings) -> None:
    bindings.set(pod("one", uid="1"))
    bindings.remove(pod("one", uid="1"))
    bindings.set(pod("one", uid="2"))
    assert bindings.hot("a", NOW) == 1


def test_old_bindings_do_not_count(bindings: PodBindings) -> None:
    import datetime

    for number in range(100):
        old = datetime.datetime.fromtimestamp(NOW - 4000 - number, datetime.UTC)
        bindings.set(pod(f"p{number}", bound=old))
    assert bindings.hot("a", NOW) == 0
    assert bindings.requested("a")["pods"] == 100


def test_in_place_resize_updates_requests(bindings: PodBindings) -> None:
    bindings.set(pod("one"))
    bindings.set(pod("one", cpu="300m"))
    assert bindings.requested("a")["cpu"] == 300
    assert bindings.hot("a", NOW) == 0


def test_callback_receives_the_node(bindings: PodBindings) -> None:
    changed: list[str] = []
    bindings.changed = changed.append
    bindings.set(pod("one"))
    bindings.set(pod("one"))
    bindings.set(pod("two", node="b"))
    bindings.set(pod("three", node=""))
    assert changed == ["a", "b"]
    assert bindings.hot("unknown", NOW) == 0
