"""Writes without a lasting effect; tests/simulation/test_futile_writes.py has whole histories."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS
from kube_scheduler_operator.operator.diagnostics.writes import message
from kube_scheduler_operator.operator.engine.write_guard import (
    DELAYS,
    REST,
    WriteGuard,
    other_manager,
)
from kube_scheduler_operator.operator.model.plan import Replace
from kube_scheduler_operator.operator.model.snapshot import FutileWrite, Futility


class Bench:
    """A guard, and a KubeScheduler whose status is written."""

    def __init__(self) -> None:
        self.now = 0.0
        self.guard = WriteGuard(lambda: self.now)
        self.version = 1
        self.uid = "first"
        self.stored = self.object({})

    def object(self, status: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        metadata = {"name": "cluster", "uid": self.uid, "resourceVersion": str(self.version)}
        return {"metadata": metadata, "status": status}

    def write(self, status: dict[str, Any], kept: dict[str, Any] | None = None) -> bool:
        """Write, unless it is delayed; the API server keeps `kept`, or all."""
        action = Replace(KUBE_SCHEDULERS, {**self.stored, "status": status}, "status")
        written = self.guard.allows(action, self.stored)
        if written:
            answer = self.object(status if kept is None else kept)
            self.guard.wrote(action, self.stored, answer)
            self.stored = answer
        self.guard.end_plan()
        return written

    @property
    def reported(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(write.why.value, write.fields) for write in self.guard.futile()]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_dropped_field_is_delayed_and_other_fields_are_not(bench: Bench) -> None:
    bench.write({"a": 1, "new": 1}, {"a": 1})
    for _ in range(3):
        assert bench.write({"a": 1, "new": 1}, {"a": 1})
    assert bench.reported == [("FieldsDropped", ("status.new",))]
    assert not bench.write({"a": 1, "new": 1}, {"a": 1})
    assert bench.write({"a": 2, "new": 1}, {"a": 2}), "another field does not wait"
    assert not bench.write({"a": 2, "new": 1}, {"a": 2})
    assert bench.reported == [("FieldsDropped", ("status.new",))]


def test_an_object_that_its_user_replaces_is_not_in_dispute(bench: Bench) -> None:
    for number in range(20):
        assert bench.write({"a": 1})
        bench.uid = f"of {number}"
        bench.stored = bench.object({})
        bench.now += 1.0
    assert bench.reported == []


def test_a_field_that_is_stored_again_ends_the_report(bench: Bench) -> None:
    for _ in range(4):
        bench.write({"new": 1}, {})
    bench.now += DELAYS[Futility.DROPPED].delays[-1]
    assert bench.write({"new": 1})
    assert bench.reported == []


def test_a_field_that_is_normalized_is_not_reported(bench: Bench) -> None:
    for number in range(20):
        assert bench.write({"cpu": "0.5", "a": number}, {"cpu": "500m", "a": number})
    assert bench.reported == []


def test_delays_grow_to_minutes(bench: Bench) -> None:
    attempts = 0
    for _ in range(3600):
        attempts += bench.write({"new": 1}, {})
        bench.now += 1.0
    assert attempts <= 2 + 8 + 3600 / 300


def test_a_reverted_field_is_delayed_and_reported(bench: Bench) -> None:
    attempts = 0
    for _ in range(600):
        attempts += bench.write({"a": 1})
        bench.stored = bench.object({"a": 2})
        bench.now += 1.0
    assert attempts <= 12
    assert bench.reported == [("RevertedByAnotherClient", ("status.a",))]


def test_the_end_of_a_dispute_is_noticed(bench: Bench) -> None:
    for _ in range(4):
        bench.write({"a": 1})
        bench.stored = bench.object({"a": 2})
    bench.now += 60
    bench.write({"a": 1})
    for _ in range(3):
        bench.guard.end_plan()
        bench.now += REST
    assert bench.reported == []
    assert bench.guard.wait() is None


def test_values_that_alternate_are_not_a_dispute(bench: Bench) -> None:
    for number in range(100):
        assert bench.write({"a": number % 2})
    assert bench.reported == []


def test_another_client_with_another_value_each_time_is_limited(bench: Bench) -> None:
    attempts = 0
    for number in range(3600):
        attempts += bench.write({"a": number})
        bench.stored = bench.object({"a": -number})
        bench.now += 1.0
    assert attempts <= 20 + 3600 / 60 + 1
    assert bench.reported == [("RevertedByAnotherClient", ("status.a",))]


def test_times_do_not_hide_a_dispute(bench: Bench) -> None:
    attempts = 0
    for number in range(60):
        condition = {"type": "A", "status": "True", "lastTransitionTime": str(number)}
        attempts += bench.write({"conditions": [condition]})
        bench.stored = bench.object({"conditions": []})
        bench.now += 0.2
    assert attempts < 10
    assert bench.reported[0][1] == ("status.conditions[A].status", "status.conditions[A].type")


def test_few_conflicts_are_normal(bench: Bench) -> None:
    action = Replace(KUBE_SCHEDULERS, bench.stored, "status")
    for _ in range(5):
        assert bench.guard.allows(action, bench.stored)
        bench.guard.conflicted(action)
        bench.guard.end_plan()
    assert bench.reported == []
    assert bench.guard.allows(action, bench.stored)
    bench.guard.conflicted(action)
    assert bench.reported == [("RepeatedConflicts", ())]
    assert not bench.guard.allows(action, bench.stored)
    bench.now += 2.0
    assert bench.write({"a": 1})
    assert bench.reported == []


def test_the_other_client_is_named_from_managed_fields() -> None:
    entries = [
        {"manager": "ours", "time": "2026-01-01T00:00:09Z", "fieldsV1": {"f:status": {}}},
        {"manager": "kubectl", "time": "2026-01-01T00:00:08Z", "fieldsV1": {"f:metadata": {}}},
        {"manager": "argocd", "time": "2026-01-01T00:00:03Z", "fieldsV1": {"f:status": {}}},
    ]
    live = {"metadata": {"managedFields": entries}}
    assert other_manager(live, ["status.a"], "ours") == "argocd"
    assert other_manager(live, ["data.a"], "ours") == "kubectl"
    assert other_manager({"metadata": {}}, ["status.a"], "ours") == ""


@pytest.mark.parametrize(
    ("why", "fields", "words"),
    [
        (Futility.DROPPED, ("status.a",), ("status.a", "apply crds/")),
        (Futility.REVERTED, ("status.a",), ("status.a", 'manager "argocd"', "stop that client")),
        (Futility.REVERTED, (), ("deletes it", 'manager "argocd"')),
        (Futility.CONFLICT, (), ("conflict", 'manager "argocd"')),
        (Futility.DROPPED, tuple(f"f{n}" for n in range(9)), ("f4 and 4 more",)),
    ],
)
def test_messages_name_object_field_and_fix(
    why: Futility, fields: tuple[str, ...], words: tuple[str, ...]
) -> None:
    ref = KUBE_SCHEDULERS.ref({"metadata": {"name": "cluster"}})
    text = message(FutileWrite(ref, why, fields, "argocd"))
    for word in ("KubeScheduler cluster", *words):
        assert word in text


def test_what_was_written_is_remembered_without_a_copy(bench: Bench) -> None:
    """Of thousands of objects, copies would be as large as the store."""
    status = {"conditions": [{"type": "Available", "message": "m" * 1000}], "nodes": {"a": 1}}
    bench.write(status)
    (written,) = bench.guard._written.values()
    assert written["status"] is bench.stored["status"]
