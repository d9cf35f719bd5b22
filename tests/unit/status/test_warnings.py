"""Warnings as a condition: bounded, in an order of their own, and alarming nobody."""

from __future__ import annotations

import random

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.findings import Finding
from kube_scheduler_operator.status.condition_union import AGGREGATES
from kube_scheduler_operator.status.conditions import Condition
from kube_scheduler_operator.status.warnings import MOST_CHARACTERS, MOST_LINES, warnings_condition

TYPES = (names.WARNINGS, names.CONFIGURATION_WARNINGS, names.UNKNOWN_LEASE_HOLDER)


def finding(number: int, message: str = "m") -> Finding:
    path = f"SchedulerProfile/a spec.plugins[{number:02d}]"
    return Finding(names.WARNINGS, f"Reason{number}", path, message, blocking=False)


def test_nothing_to_say_is_as_expected() -> None:
    assert warnings_condition("T", []) == Condition("T", "False", "AsExpected")


def test_the_order_in_which_they_are_found_does_not_matter() -> None:
    found = [finding(number) for number in range(8)]
    expected = warnings_condition("T", found)
    assert (expected.status, expected.reason) == ("True", "Reason0")
    for seed in range(5):
        random.Random(seed).shuffle(found)
        assert warnings_condition("T", [*found, found[0]]) == expected


def test_the_message_is_bounded_and_says_how_many_are_left_out() -> None:
    found = [finding(number, "x" * 1000) for number in range(MOST_LINES + 7)]
    lines = warnings_condition("T", found).message.splitlines()
    assert len(lines) == MOST_LINES + 1
    assert max(map(len, lines)) == MOST_CHARACTERS
    assert lines[-1].startswith("and 7 more: ")


def test_what_the_object_is_called_stands_nowhere_twice() -> None:
    condition = warnings_condition("T", [finding(1), finding(2)], "SchedulerProfile/a ")
    assert condition.message == "spec.plugins[01]: m\nspec.plugins[02]: m"


def test_no_sum_of_conditions_counts_them() -> None:
    assert not any(type_.endswith(each.type) for type_ in TYPES for each in AGGREGATES)
