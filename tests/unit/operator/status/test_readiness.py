"""Ready, Reconciling and Stalled follow from the other conditions: which one, and why."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base import names
from kube_scheduler_operator.operator.status.conditions import Condition
from kube_scheduler_operator.operator.status.readiness import (
    NOT_EVERYWHERE,
    TYPES,
    readiness,
    with_readiness,
)

ACCEPTED = Condition(names.ACCEPTED, "True", "Accepted")
LAST = Condition(names.ACCEPTED, "False", "LastAcceptedInUse", "spec.x: wrong")
WAITING = Condition(names.ACCEPTED, "False", "Waiting", "the edit waits")
AVAILABLE = Condition(names.AVAILABLE, "True", "AsExpected")
STARTING = Condition(names.AVAILABLE, "False", "Starting", "wait")
UNMANAGED = Condition(names.AVAILABLE, "Unknown", "Unmanaged", "not observed")
OF_A_URL = Condition(names.AVAILABLE, "Unknown", "NotManaged", "the operator does not run it")
DEGRADED = Condition(names.DEGRADED, "True", "PodsFailing", "pod a crashes")
SOME_NODES = Condition(names.DEGRADED, "True", "NodesUnknown", "load stale for 1 of 3 nodes")
ROLLING = Condition(names.PROGRESSING, "True", "RollingOut", "node b")
SIMULATING = Condition(names.PLACEMENT_CHECK_PROGRESSING, "True", "Simulating", "at most 300 s")
HELD = Condition(names.PLACEMENT_CHECK_PROGRESSING, "True", "Held", "approve it")
WARNINGS = Condition(names.WARNINGS, "True", "Slow", "surprising")


def outcome(*conditions: Condition) -> tuple[str, str]:
    """(the one that is True; empty: none, its reason)."""
    made = readiness(conditions)
    true = [condition.type for condition in made if condition.status == "True"]
    assert len(true) <= 1
    return "".join(true), made[0].reason


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((ACCEPTED, AVAILABLE, WARNINGS), ("Ready", "AsExpected")),
        ((ACCEPTED, OF_A_URL), ("Ready", "AsExpected")),
        ((ACCEPTED, AVAILABLE, SOME_NODES), ("Ready", "AsExpected")),
        ((LAST, AVAILABLE), ("Stalled", "LastAcceptedInUse")),
        ((LAST, ROLLING, HELD), ("Stalled", "LastAcceptedInUse")),
        ((ACCEPTED, DEGRADED, ROLLING), ("Stalled", "PodsFailing")),
        ((ACCEPTED, HELD), ("Stalled", "Held")),
        ((WAITING, HELD), ("Stalled", "Held")),
        ((WAITING, SIMULATING), ("Reconciling", "Simulating")),
        ((WAITING,), ("Reconciling", "Waiting")),
        ((ACCEPTED, ROLLING), ("Reconciling", "RollingOut")),
        ((ACCEPTED, STARTING, ROLLING), ("Reconciling", "Starting")),
        ((ACCEPTED, UNMANAGED), ("", "Unmanaged")),
        ((LAST, UNMANAGED), ("Stalled", "LastAcceptedInUse")),
    ],
)
def test_the_worst_condition_decides(
    conditions: tuple[Condition, ...], expected: tuple[str, str]
) -> None:
    for order in permutations(conditions):
        assert outcome(*order) == expected


def test_the_message_is_that_of_the_condition_that_decides() -> None:
    ready, reconciling, stalled = readiness((LAST,))
    assert (ready.status, ready.message) == ("False", "spec.x: wrong")
    assert (stalled.reason, stalled.message) == ("LastAcceptedInUse", "spec.x: wrong")
    assert (reconciling.status, reconciling.message) == ("False", "")


types = st.sampled_from(
    [names.ACCEPTED, names.AVAILABLE, names.DEGRADED, names.PROGRESSING,
     names.PLACEMENT_CHECK_PROGRESSING, names.WARNINGS]
)  # fmt: skip
reasons = st.sampled_from(["", "Held", "Waiting", "NotManaged", "NodesUnknown", "Other"])
conditions_of_any_kind = st.lists(
    st.builds(Condition, types, st.sampled_from(["True", "False", "Unknown"]), reasons, st.text())
)


@given(conditions_of_any_kind)
def test_at_most_one_is_true_and_each_has_a_reason(conditions: list[Condition]) -> None:
    made = readiness(conditions)
    assert tuple(condition.type for condition in made) == TYPES
    true = [condition for condition in made if condition.status == "True"]
    assert len(true) == (made[0].status != "Unknown")
    assert all(condition.reason for condition in made)


def obj(generation: int, *conditions: Condition, observed: int = 1) -> dict[str, Any]:
    raw = [{"type": c.type, "status": c.status, "reason": c.reason} for c in conditions]
    status = {"observedGeneration": observed, "conditions": raw}
    return {"metadata": {"name": "x", "generation": generation}, "status": status}


def test_while_the_scheduler_is_not_known_an_edit_is_reconciling() -> None:
    made = with_readiness(obj(2, ACCEPTED, *readiness(())), (ACCEPTED,), None)
    assert made[1:] == readiness((NOT_EVERYWHERE,))


def test_while_the_scheduler_is_not_known_an_object_without_an_edit_stays_as_it_is() -> None:
    before = readiness((ROLLING,))
    made = with_readiness(obj(1, ACCEPTED, *before), (ACCEPTED,), None)
    assert [(c.type, c.status) for c in made[1:]] == [(c.type, c.status) for c in before]


def test_while_the_scheduler_is_not_known_a_refusal_is_stalled_at_once() -> None:
    made = with_readiness(obj(1, ACCEPTED, *readiness(())), (LAST,), None)
    assert made[1:] == readiness((LAST,))


def test_a_condition_that_changed_without_an_edit_counts() -> None:
    made = with_readiness(obj(1, LAST, *readiness((LAST,))), (ACCEPTED,), None)
    assert made[1:] == readiness((NOT_EVERYWHERE,))
