from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_scheduler_operator.kube.errors import ApiError, ApiRequest, CredentialsError, NotFound
from kube_scheduler_operator.scheduling.policies.learned_values import (
    CONFIG_MAP,
    LearnedValues,
    read_values,
    type_in_namespace,
)
from kube_scheduler_operator.scheduling.rl_monitor.monitor import (
    Monitor,
    RlMonitorOptions,
    StateStore,
    rated_events,
    run,
    write,
)

from ..policies.playing import NOW, pod, rfc3339


def ended(begun: float, lasted: float, code: int = 1) -> dict[str, Any]:
    times = {"startedAt": rfc3339(begun), "finishedAt": rfc3339(begun + lasted)}
    return {"terminated": {"exitCode": code, **times}}


def container(restarts: int = 0, last: Any = None, now: Any = None) -> dict[str, Any]:
    return {"name": "c", "restartCount": restarts, "lastState": last or {}, "state": now or {}}


RUNS = {"running": {"startedAt": rfc3339(NOW)}}


def with_status(name: str, *containers: Any, phase: str = "Running", on: str = "a") -> Any:
    made = pod(name, on=on, labels={"app": "web"})
    return {**made, "status": {"phase": phase, "containerStatuses": list(containers)}}


@pytest.mark.parametrize(
    ("status", "rewards"),
    [
        (container(now=RUNS), [1.0]),
        (container(now={"waiting": {}}), []),
        (container(now=ended(NOW, 10)), [0.0]),
        (container(now=ended(NOW, 601)), [0.5]),
        (container(now=ended(NOW, 600)), [0.0]),
        (container(now=ended(NOW, 10, 0)), [1.0]),
        (container(1, last=ended(NOW, 10), now=RUNS), [0.0]),
        (container(5, last=ended(NOW, 10), now=ended(NOW + 20, 700)), [0.0, 0.5]),
    ],
)
def test_container_states_are_rewarded(status: Any, rewards: list[float]) -> None:
    assert [each.reward for each in rated_events(with_status("p", status))] == rewards


@pytest.mark.parametrize("phase", ["Failed", "Unknown"])
def test_a_failed_pod(phase: str) -> None:
    evicted = {**pod("p", on="a"), "status": {
        "phase": phase, "conditions": [{"type": "Ready", "lastTransitionTime": rfc3339(NOW)}],
    }}  # fmt: skip
    assert [(each.reward, each.at) for each in rated_events(evicted)] == [(0.0, NOW)]
    failed = with_status("p", container(now=ended(NOW, 5)), phase=phase)
    assert [each.reward for each in rated_events(failed)] == [0.0]


def test_every_event_counts_once() -> None:
    monitor = Monitor(LearnedValues())
    monitor.set(with_status("p", container(now=RUNS)))
    monitor.set(with_status("p", container(now=RUNS)))
    assert monitor.state.by_type() == {"web": {"a": 1.0}}
    crash = ended(NOW + 1, 5)
    monitor.set(with_status("p", container(now=crash)))
    monitor.set(with_status("p", container(1, last=crash, now={"waiting": {}})))
    monitor.set(with_status("p", container(1, last=crash, now=RUNS)))
    assert monitor.state.by_type() == {"web": {"a": 0.9}}
    monitor.set(with_status("nowhere", container(now=crash), on=""))
    monitor.set(with_status("q", container(now=crash), on="b"))
    monitor.remove(with_status("p"))
    assert monitor.state.by_type() == {"web": {"a": 0.9, "b": 0.9}}


def test_of_all_namespaces_each_has_types_of_its_own() -> None:
    """Otherwise, Pods of a tenant that fail would decide where those of others run."""
    monitor = Monitor(LearnedValues(), kind=type_in_namespace)
    failed = with_status("p", container(now=ended(NOW + 1, 5)))
    failed["metadata"]["namespace"] = "tenant"
    monitor.set(failed)
    other = with_status("q", container(now=RUNS))
    other["metadata"]["namespace"] = "shop"
    monitor.set(other)
    assert monitor.state.by_type() == {"tenant/web": {"a": 0.9}, "shop/web": {"a": 1.0}}


def test_a_restart_does_not_count_events_again() -> None:
    first = Monitor(LearnedValues())
    first.set(with_status("p", container(now=ended(NOW, 5))))
    second = Monitor(read_values(first.state.data()))
    second.set(with_status("p", container(now=ended(NOW, 5))))
    assert second.state.by_type() == {"web": {"a": 0.9}}
    assert not second.changed
    second.set(with_status("p", container(1, last=ended(NOW, 5), now=ended(NOW + 10, 5))))
    assert second.state.by_type()["web"]["a"] == pytest.approx(0.81)


@pytest.mark.parametrize("ahead", [560.0, 1200.0])
def test_the_clock_of_one_node_hides_no_event_of_another(ahead: float) -> None:
    first = Monitor(LearnedValues())
    first.set(with_status("fast", container(now=ended(NOW + ahead, 5)), on="fast"))
    second = Monitor(read_values(first.state.data()))
    second.set(with_status("fast", container(now=ended(NOW + ahead, 5)), on="fast"))
    second.set(with_status("p", container(now=ended(NOW + 10, 5))))
    assert second.state.by_type() == {"web": {"fast": 0.9, "a": 0.9}}


@pytest.mark.parametrize("jump", [-1200.0, -560.0, 560.0])
def test_an_event_after_a_jump_of_its_nodes_clock_counts(jump: float) -> None:
    first = Monitor(LearnedValues())
    first.set(with_status("p", container(now=ended(NOW, 5))))
    second = Monitor(read_values(first.state.data()))
    second.set(with_status("p", container(now=ended(NOW, 5))))
    again = container(1, last=ended(NOW, 5), now=ended(NOW + 60 + jump, 5))
    second.set(with_status("p", again))
    assert second.state.by_type()["web"]["a"] == pytest.approx(0.81)


class Api:
    """A ConfigMap, and an API that can be unavailable."""

    def __init__(self) -> None:
        self.data: dict[str, str] | None = None
        self.away = False
        self.writes = 0

    def _there(self) -> None:
        if self.away:
            raise ApiError(ApiRequest("get", "/"), status=0, message="away")

    async def get(self, ref: Any) -> Any:
        self._there()
        if self.data is None:
            raise NotFound(ApiRequest("get", "/"), status=404, message="none")
        return {"data": self.data}

    async def patch(self, ref: Any, patch: Any) -> Any:
        await self.get(ref)
        assert ref.name == CONFIG_MAP
        self.writes += 1
        self.data = patch["data"]

    async def create(self, resource: Any, obj: Any) -> Any:
        self._there()
        assert obj["metadata"] == {"name": CONFIG_MAP, "namespace": "ns"}
        self.writes += 1
        self.data = obj["data"]


async def test_changed_values_are_saved_and_loaded() -> None:
    api = Api()
    memory = StateStore(api, "ns")  # type: ignore[arg-type]
    monitor = Monitor(await memory.load())
    await write(monitor, memory)
    assert api.writes == 0
    monitor.set(with_status("p", container(now=ended(NOW, 5))))
    await write(monitor, memory)
    await write(monitor, memory)
    assert api.writes == 1
    monitor.set(with_status("q", container(now=ended(NOW + 1, 5))))
    api.away = True
    await write(monitor, memory)
    api.away = False
    await write(monitor, memory)
    assert api.writes == 2
    assert (await memory.load()).by_type() == {"web": {"a": 0.81}}


async def test_without_credentials_it_ends_with_the_error() -> None:
    async with asyncio.timeout(10):
        with pytest.raises(CredentialsError):
            await run(RlMonitorOptions(None, "namespace", "/absent/kubeconfig"))
