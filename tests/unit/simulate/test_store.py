"""The objects of the simulated API server."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.simulate.kinds import NODES, PODS
from kube_scheduler_operator.simulate.store import WorldStore
from kube_scheduler_operator.simulate.world import World


def _store() -> WorldStore:
    world = World()
    world.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
    return WorldStore(world)


def _pod(phase: str = "Pending") -> dict[str, Any]:
    return {"metadata": {"namespace": "n", "name": "p"}, "status": {"phase": phase}}


def test_objects_of_the_world_have_a_version() -> None:
    store = _store()
    node = store.get(NODES, ("", "a"))
    assert node is not None
    assert node["metadata"]["resourceVersion"] == "1"


def test_a_watch_gets_all_changes_after_its_version() -> None:
    store = _store()
    store.put(PODS, _pod())
    seen: list[str] = []
    store.watch(PODS, store.version, lambda event: seen.append(event.type))
    store.put(PODS, _pod("Running"))
    store.delete(PODS, ("n", "p"))
    assert seen == ["MODIFIED", "DELETED"]
    replayed: list[str] = []
    store.watch(PODS, 1, lambda event: replayed.append(event.type))
    assert replayed == ["ADDED", "MODIFIED", "DELETED"]


def test_a_finished_pod_is_deleted_for_watches() -> None:
    store = _store()
    store.put(PODS, _pod())
    seen: list[str] = []
    store.watch(PODS, None, lambda event: seen.append(event.type))
    store.put(PODS, _pod("Succeeded"))
    assert seen == ["DELETED"]
    assert store.get(PODS, ("n", "p")) is None
