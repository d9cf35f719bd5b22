"""The store has the newest version of every object, in whatever order events arrive."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.kube.resource import CONFIG_MAPS, NODES, PODS, Stream
from kube_scheduler_operator.kube.store import _TOMBSTONES, Store


def config(version: int, uid: str = "u1", name: str = "config", **rest: Any) -> dict[str, Any]:
    metadata = {"namespace": "ops", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata | rest.pop("metadata", {}), **rest}


def held(store: Store, name: str = "config") -> tuple[str, str] | None:
    obj = store.view().get(CONFIG_MAPS, name, "ops")
    return (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]) if obj else None


PUT, REMOVE = Store.put, Store.remove


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(PUT, config(5)), (PUT, config(4))], ("u1", "5")),
        ([(PUT, config(9)), (PUT, config(10))], ("u1", "10")),
        ([(PUT, config(5)), (REMOVE, config(7)), (PUT, config(6))], None),
        ([(PUT, config(5)), (REMOVE, config(5)), (PUT, config(8))], None),
        ([(REMOVE, config(7)), (PUT, config(6))], None),
        ([(PUT, config(5)), (REMOVE, config(7)), (PUT, config(8, "u2"))], ("u2", "8")),
        ([(PUT, config(8, "u2")), (REMOVE, config(7))], ("u2", "8")),
        ([(PUT, config(5)), (PUT, config(8, "u2")), (PUT, config(6))], ("u2", "8")),
        ([(PUT, config(5)), (REMOVE, config(9, "u2"))], None),
        ([(PUT, config(50)), (REMOVE, config(40))], None),
        ([(REMOVE, config(9, "u2")), (REMOVE, config(7)), (PUT, config(8, "u2"))], None),
        ([(REMOVE, config(9, "u2")), (PUT, config(6))], None),
    ],
    ids=[
        "older-loses",
        "numbers-not-text",
        "late-event-does-not-resurrect",
        "write-answered-after-the-deletion-does-not-resurrect",
        "deletion-known-before-the-object",
        "recreated-is-accepted",
        "late-deletion-of-the-predecessor",
        "late-event-of-the-predecessor",
        "deletion-of-an-unseen-successor",
        "relist-deletes-what-our-own-write-had-advanced",
        "later-deletion-is-the-one-remembered",
        "late-event-of-the-predecessor-of-a-deleted-object",
    ],
)
def test_order_of_events_does_not_matter(steps: Any, expected: Any) -> None:
    store = Store()
    for step, obj in steps:
        step(store, CONFIG_MAPS, obj)
    assert held(store) == expected


@pytest.mark.parametrize(
    ("version", "back"), [(6, False), (7, True), (8, True)], ids=["late", "same-change", "later"]
)
def test_object_that_left_a_selection_may_return(version: Any, back: Any) -> None:
    store = Store()
    store.put(CONFIG_MAPS, config(5))
    store.remove(CONFIG_MAPS, config(7))
    assert store.put(CONFIG_MAPS, config(version), may_return=True) is back
    assert (held(store) is not None) is back


@given(st.permutations(range(7)))
def test_any_order_of_the_events_of_one_object_has_the_same_result(order: Any) -> None:
    """An object and its successor: the last change wins in every order of delivery."""
    life = [
        (PUT, config(1)),
        (PUT, config(2)),
        (REMOVE, config(3)),
        (PUT, config(4, "u2")),
        (PUT, config(5, "u2")),
        (PUT, config(6, "u2")),
        (PUT, config(2)),
    ]
    store = Store()
    for index in order:
        step, obj = life[index]
        step(store, CONFIG_MAPS, obj)
    assert held(store) == ("u2", "6")


def test_returns_whether_the_store_changed() -> None:
    store = Store()
    assert store.put(CONFIG_MAPS, config(5))
    assert not store.put(CONFIG_MAPS, config(5))
    assert store.remove(CONFIG_MAPS, config(5))
    assert not store.remove(CONFIG_MAPS, config(5))
    assert not store.forget(CONFIG_MAPS.ref(config(5)))


def test_views_do_not_change() -> None:
    store = Store()
    store.put(CONFIG_MAPS, config(1, name="a"))
    before = store.view()
    store.put(CONFIG_MAPS, config(2, name="b"))
    store.put(CONFIG_MAPS, config(3, name="a"))
    store.remove(CONFIG_MAPS, config(4, name="a"))
    store.put(NODES, {"metadata": {"name": "n", "resourceVersion": "1"}})
    assert [obj["metadata"]["resourceVersion"] for obj in before.list(CONFIG_MAPS)] == ["1"]
    assert before.list(NODES) == ()
    after = store.view()
    assert [obj["metadata"]["name"] for obj in after.list(CONFIG_MAPS)] == ["b"]
    assert len(after.list(NODES)) == 1


def test_views_of_an_unchanged_kind_share_its_objects() -> None:
    store = Store()
    store.put(CONFIG_MAPS, config(1))
    first, second = store.view(), store.view()
    store.put(PODS, config(2))
    assert first.list(CONFIG_MAPS)[0] is store.view().list(CONFIG_MAPS)[0]
    assert first._by_resource[CONFIG_MAPS] is second._by_resource[CONFIG_MAPS]


def test_managed_fields_are_dropped_and_the_original_is_unchanged() -> None:
    original = config(1, metadata={"managedFields": [{"manager": "x"}]})
    store = Store()
    store.put(CONFIG_MAPS, original)
    assert "managedFields" not in store.view().list(CONFIG_MAPS)[0]["metadata"]
    assert "managedFields" in original["metadata"]


def test_managed_fields_of_mirror_pods_are_kept() -> None:
    mark = {"kubernetes.io/config.mirror": "1"}
    managed = [{"manager": "kubelet"}]
    store = Store()
    store.put(PODS, config(1, metadata={"managedFields": managed, "annotations": mark}))
    assert store.view().list(PODS)[0]["metadata"]["managedFields"] == managed


def test_list_is_sorted_and_filtered() -> None:
    store = Store()
    for namespace, name, labels in [
        ("b", "2", {"app": "x"}),
        ("a", "9", {"app": "x", "tier": "y"}),
        ("b", "1", None),
    ]:
        metadata = {"namespace": namespace, "name": name, "labels": labels, "resourceVersion": "1"}
        store.put(PODS, {"metadata": metadata})
    view = store.view()
    names = [obj["metadata"]["name"] for obj in view.list(PODS)]
    assert names == ["9", "1", "2"]
    assert [o["metadata"]["name"] for o in view.list(PODS, "b")] == ["1", "2"]
    assert [o["metadata"]["name"] for o in view.list(PODS, labels={"app": "x"})] == ["9", "2"]
    assert [o["metadata"]["name"] for o in view.list(PODS, "b", {"app": "x"})] == ["2"]
    assert PODS.ref({"metadata": {"namespace": "b", "name": "1"}}) in view
    assert len(list(view)) == 3


def test_synced_when_every_stream_was_listed() -> None:
    store = Store()
    streams = [Stream(CONFIG_MAPS, "ops"), Stream(NODES)]
    store.mark_listed(streams[0])
    assert not store.synced(streams)
    assert store.unsynced(streams) == (streams[1],)
    store.mark_listed(streams[1])
    assert store.synced(streams)


def test_memory_of_deletions_is_bounded() -> None:
    store = Store()
    for number in range(_TOMBSTONES + 50):
        store.remove(PODS, config(number + 1, name=f"installer-{number}"))
    assert len(store._deleted) == _TOMBSTONES
