from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base.quantities import amounts
from kube_scheduler_operator.scheduling.policies import pods
from kube_scheduler_operator.scheduling.policies.pods import Demand, read_pod, seconds

from ....hostile_objects import HOSTILE, odd_pods
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


resources = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/a", "example.com/b"]),
    st.integers(0, 2**40).map(str),
    max_size=3,
)
parts = st.builds(
    lambda requests, limits, restart: {
        "resources": {"requests": requests, "limits": limits},
        **({"restartPolicy": restart} if restart else {}),
    },
    resources,
    resources,
    st.sampled_from(["Always", ""]),
)


def by_definition(spec: dict[str, Any], kind: str) -> dict[str, float]:
    """The requests or limits as documented: the sum of all, or what one init container needs
    together with the sidecars before it."""

    def values(container: Any) -> dict[str, float]:
        limits = amounts(container["resources"]["limits"])
        return (
            {**limits, **amounts(container["resources"]["requests"])}
            if kind == "requests"
            else limits
        )

    def together(containers: list[Any]) -> dict[str, float]:
        known = [values(each) for each in containers]
        names = {name for each in known for name in each}
        if kind == "limits":
            names = {name for name in names if all(name in each for each in known)}
        return {name: sum(each.get(name, 0.0) for each in known) for name in names}

    inits = spec["initContainers"]
    sidecars = [each for each in inits if each.get("restartPolicy") == "Always"]
    found = together(spec["containers"] + sidecars)
    for at, init in enumerate(inits):
        if init not in sidecars:
            before = [each for each in inits[:at] if each.get("restartPolicy") == "Always"]
            for name, amount in together([*before, init]).items():
                found[name] = max(found.get(name, 0.0), amount)
    return {**found, **amounts(spec["resources"][kind])}


@given(
    st.fixed_dictionaries(
        {
            "containers": st.lists(parts, max_size=3),
            "initContainers": st.lists(parts, max_size=6),
            "resources": st.fixed_dictionaries({"requests": resources, "limits": resources}),
        }
    )
)
def test_init_containers_run_beside_the_sidecars_before_them(spec: dict[str, Any]) -> None:
    demand = Demand(spec)
    assert demand.requests == by_definition(spec, "requests")
    assert demand.limits == by_definition(spec, "limits")


class Name(str):
    """A resource name that counts how often it is looked up."""

    lookups = 0

    def __hash__(self) -> int:
        Name.lookups += 1
        return super().__hash__()


def test_the_work_is_linear_in_sidecars_and_init_containers() -> None:
    amount: dict[str, str] = {Name("cpu"): "1"}
    init = container(amount, amount)
    sidecar = container(amount, amount, restartPolicy="Always")
    counts = []
    for number in (100, 200):
        Name.lookups = 0
        Demand({"containers": [init], "initContainers": [sidecar] * number + [init] * number})
        counts.append(Name.lookups)
    assert counts[1] < 2.5 * counts[0]


def test_changes_of_a_large_pod_leave_nothing_behind() -> None:
    """Its labels, and the resources of its containers, are different in each version."""

    def version(number: int) -> dict[str, Any]:
        labels = {f"label-{each}": f"{number}" * 40 for each in range(200)}
        large = [container({"cpu": f"{number + each + 1}m"}) for each in range(200)]
        return pod(labels=labels, containers=large)

    read_pod(version(0))
    tracemalloc.start()
    try:
        for number in range(1, 40):
            read_pod(version(number))
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 500_000


def test_of_a_large_pod_a_bounded_part_is_kept() -> None:
    """Each of the Pods that a tenant creates is kept by agents and annotators."""
    many = {f"example.com/{number:05}": "1" for number in range(20_000)}
    large = [container(many | {"cpu": "1", "nvidia.com/gpu": "1"}, {"cpu": "2"})]
    large += [container({"cpu": "100m", "memory": "1Gi"}, {"cpu": "1"}) for _ in range(5000)]
    labels = {f"label-{number:05}": "x" * 60 for number in range(20_000)}
    kept = read_pod(pod(labels=labels, containers=large))
    assert (kept.requests["cpu"], kept.requests["memory"]) == (501_000.0, 5000 * 2.0**30)
    assert kept.limits == {"cpu": 5_002_000.0}
    ((requests, limits),) = kept.demand.containers
    assert (requests, limits) == (kept.requests, kept.limits)
    assert len(kept.requests) == pods.MOST_RESOURCES
    assert len(kept.labels) == pods.MOST_LABELS


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_kept_of_each_pod_of_a_tenant_is_small(what: str) -> None:
    """Agents and annotators keep each one."""
    count = 4
    read_pod(HOSTILE[what])
    tracemalloc.start()
    try:
        kept = [read_pod(copied(HOSTILE[what])) for _ in range(count)]
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == count
    assert left / count < 100_000


def copied(obj: Any) -> Any:
    """A copy, in which strings are other objects, as in the change of an API server."""
    return json.loads(json.dumps(obj))


def test_odd_pods_are_read() -> None:
    for obj in odd_pods():
        read_pod(obj)


def test_a_pod_of_twenty_containers_is_kept_as_it_is() -> None:
    ordinary = [container({"cpu": f"{number}m", "memory": "1Gi"}) for number in range(1, 21)]
    assert len(read_pod(pod(containers=ordinary)).demand.containers) == 20


def test_many_small_labels_are_bounded_by_their_size() -> None:
    for number in range(2000):
        read_pod(pod(labels={f"label-{each}": f"{number:050}" for each in range(40)}))
        assert pods._labels.used <= pods._CACHE_CHARACTERS
    assert len(pods._labels) < 2000


def test_a_large_pod_leaves_what_others_share() -> None:
    first = read_pod(pod("a", "1", "1Gi", labels={"app": "a"}))
    read_pod(pod("b", labels={f"label-{each}": "x" * 60 for each in range(20_000)}))
    second = read_pod(pod("c", "1", "1Gi", labels={"app": "a"}))
    assert first.labels is second.labels
    assert first.demand is second.demand


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
