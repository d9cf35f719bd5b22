from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.policies.pods import read_pod, seconds

from .playing import NOW, pod


def container(requests: dict[str, str], limits: dict[str, str] | None = None, **more: Any) -> Any:
    return {"resources": {"requests": requests, **({"limits": limits} if limits else {})}, **more}


def test_requests_are_the_sum_of_the_containers_and_the_overhead() -> None:
    read = read_pod(
        pod(
            containers=[container({"cpu": "100m"}), container({"cpu": "1", "memory": "1Mi"})],
            overhead={"cpu": "50m"},
        )
    )
    assert read.requests == {"cpu": 1150.0, "memory": 2.0**20}


def test_a_larger_init_container_determines_the_requests() -> None:
    read = read_pod(
        pod(
            containers=[container({"cpu": "1", "memory": "1Mi"})],
            initContainers=[container({"cpu": "2"}), container({"cpu": "1500m"})],
        )
    )
    assert read.requests == {"cpu": 2000.0, "memory": 2.0**20}


def test_a_sidecar_adds_to_containers_and_later_init_containers() -> None:
    sidecar = container({"cpu": "500m"}, restartPolicy="Always")
    early, late = container({"cpu": "1200m"}), container({"cpu": "1"})
    read = read_pod(
        pod(containers=[container({"cpu": "800m"})], initContainers=[early, sidecar, late])
    )
    assert read.requests["cpu"] == 1500.0


def test_pod_level_resources_take_precedence() -> None:
    read = read_pod(pod(containers=[container({"cpu": "1"})], resources={"requests": {"cpu": "3"}}))
    assert read.requests["cpu"] == 3000.0


def test_a_resource_that_one_container_does_not_limit_has_no_limit() -> None:
    both = container({}, {"cpu": "1", "memory": "1Mi"})
    read = read_pod(pod(containers=[both, container({}, {"cpu": "2"})]))
    assert read.limits == {"cpu": 3000.0}
    assert read.requests == {"cpu": 3000.0, "memory": 2.0**20}


def test_pods_with_equal_resources_share_them() -> None:
    first, second = (read_pod(pod(name, "1", "1Gi", labels={"app": "a"})) for name in "ab")
    assert first.demand is second.demand
    assert first.labels is second.labels
    assert read_pod(pod("c", "2", "1Gi")).demand is not first.demand


def test_time_of_binding() -> None:
    assert read_pod(pod(on="a", bound=NOW)).bound == NOW
    assert read_pod(pod(bound=NOW)).bound == 0.0
    started = {**pod(on="a"), "status": {"startTime": "2026-11-23T00:00:00Z"}}
    assert read_pod(started).bound == NOW


def test_the_owner_is_the_controller() -> None:
    assert read_pod(pod(owner="DaemonSet")).owner_kind == "DaemonSet"
    assert read_pod(pod()).owner_kind == ""


@pytest.mark.parametrize("text", ["", None, 3.5, 10**400, "yesterday", "2026-11-23T00:00:00"])
def test_an_invalid_time_is_zero(text: Any) -> None:
    assert seconds(text) == 0.0


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "status", "containers", "initContainers", "resources",
                 "requests", "limits", "labels", "ownerReferences", "conditions", "cpu"]
            ), inner, max_size=4,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), anything))
def test_arbitrary_objects_are_parsed(obj: dict[str, Any]) -> None:
    read_pod(obj)
