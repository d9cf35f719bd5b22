"""Conditions are written without moving what did not change."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_scheduler_operator.base.times import rfc3339, timestamp
from kube_scheduler_operator.operator.status.conditions import (
    Condition,
    aggregate,
    merge_conditions,
)

NOW = datetime(2026, 11, 21, 10, 0, 0, 999_000, tzinfo=UTC)
QUICK = settings(max_examples=50, deadline=None)
EARLIER = "2026-11-20T10:00:00Z"


def raw(type_: str, status: str, since: str = EARLIER, **texts: str) -> dict[str, str]:
    return {"lastTransitionTime": since, **texts, "status": status, "type": type_}


def test_new_condition_is_stamped_with_whole_seconds_of_now() -> None:
    assert merge_conditions([], [Condition("ADegraded", "False", "AsExpected")], NOW) == [
        raw("ADegraded", "False", "2026-11-21T10:00:00Z", reason="AsExpected")
    ]


@pytest.mark.parametrize(
    ("new", "since"),
    [
        pytest.param(Condition("A", "True", "R", "other"), EARLIER, id="new-message-keeps-time"),
        pytest.param(Condition("A", "True", "Other", "m"), EARLIER, id="new-reason-keeps-time"),
        pytest.param(Condition("A", "False", "R", "m"), rfc3339(NOW), id="new-status-is-now"),
        pytest.param(
            Condition("A", "Unknown", last_transition_time=NOW - timedelta(days=9)),
            rfc3339(NOW),
            id="time-in-the-new-condition-is-ignored",
        ),
    ],
)
def test_transition_time_follows_status_only(new: Condition, since: str) -> None:
    old = [raw("A", "True", reason="R", message="m")]
    assert merge_conditions(old, [new], NOW)[0]["lastTransitionTime"] == since


def test_condition_without_transition_time_gets_one() -> None:
    old = [{"type": "A", "status": "True"}]
    assert merge_conditions(old, [Condition("A", "True")], NOW) == [raw("A", "True", rfc3339(NOW))]


def test_empty_texts_remove_existing_ones() -> None:
    old = [raw("A", "True", reason="R", message="m")]
    assert merge_conditions(old, [Condition("A", "True")], NOW) == [raw("A", "True")]


def test_foreign_conditions_are_unchanged() -> None:
    foreign = raw("ZForeign", "True", "not a time", message="mine", reason="X") | {"extra": "kept"}
    assert merge_conditions([foreign], [Condition("B", "True")], NOW)[1] == foreign


def test_a_repeated_type_is_an_error() -> None:
    with pytest.raises(ValueError, match="condition A is reported twice"):
        merge_conditions([], [Condition("A", "True"), Condition("A", "False")], NOW)


def test_inputs_are_not_changed() -> None:
    old = [raw("A", "True")]
    merge_conditions(old, [Condition("A", "False")], NOW)
    assert old == [raw("A", "True")]


conditions = st.lists(
    st.builds(
        Condition,
        type=st.sampled_from(["A", "B", "C", "D"]),
        status=st.sampled_from(["True", "False", "Unknown"]),
        reason=st.sampled_from(["", "R", "S"]),
        message=st.text(max_size=5),
    ),
    unique_by=lambda c: c.type,
)


@QUICK
@given(conditions, conditions, st.integers(0, 10_000))
def test_merging_the_same_again_later_changes_no_byte(
    first: list[Condition], second: list[Condition], seconds: int
) -> None:
    once = merge_conditions(merge_conditions([], first, NOW), second, NOW)
    again = merge_conditions(once, second, NOW + timedelta(seconds=seconds))
    assert json.dumps(again) == json.dumps(once)


@QUICK
@given(conditions, st.permutations(range(4)))
def test_order_of_the_findings_does_not_matter(new: list[Condition], order: list[int]) -> None:
    shuffled = [new[index] for index in order if index < len(new)]
    assert merge_conditions([], shuffled, NOW) == merge_conditions([], new, NOW)


@QUICK
@given(conditions)
def test_writing_and_reading_are_inverse(new: list[Condition]) -> None:
    since = NOW.replace(microsecond=0)
    expected = {Condition(c.type, c.status, c.reason, c.message, since) for c in new}
    assert {Condition.from_raw(c) for c in merge_conditions([], new, NOW)} == expected


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        pytest.param([], "", id="none"),
        pytest.param(["b", "a"], "a\nb", id="sorted"),
        pytest.param(["a", "a"], "a\na", id="repetitions-stay"),
    ],
)
def test_aggregate_sorts_and_joins_lines(errors: list[str], message: str) -> None:
    assert aggregate(errors) == message


@pytest.mark.parametrize("text", [None, "", "yesterday", "2026-13-01T00:00:00Z"])
def test_invalid_time_is_none(text: str | None) -> None:
    assert timestamp(text) is None


def test_time_without_zone_is_utc() -> None:
    assert timestamp("2026-11-21T10:00:00") == NOW.replace(microsecond=0)
