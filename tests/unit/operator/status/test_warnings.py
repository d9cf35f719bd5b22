"""Warnings as a condition: bounded, ordered, and without an alarm."""

from __future__ import annotations

import random

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.findings import Finding
from kube_scheduler_operator.operator.controlplane.cluster_operator import AGGREGATES
from kube_scheduler_operator.operator.status.conditions import (
    MOST_CHARACTERS,
    MOST_LINES,
    Condition,
    warnings_condition,
)

TYPES = (names.WARNINGS, names.CONFIGURATION_WARNINGS, names.UNKNOWN_LEASE_HOLDER)


def finding(number: int, message: str = "m") -> Finding:
    path = f"SchedulerProfile/a spec.plugins[{number:02d}]"
    return Finding(names.WARNINGS, f"Reason{number}", path, message, blocking=False)


def test_without_findings_the_condition_is_false() -> None:
    assert warnings_condition("T", []) == Condition("T", "False", "AsExpected")


def test_the_condition_does_not_depend_on_the_order_of_findings() -> None:
    found = [finding(number) for number in range(8)]
    expected = warnings_condition("T", found)
    assert (expected.status, expected.reason) == ("True", "Reason0")
    for seed in range(5):
        random.Random(seed).shuffle(found)
        assert warnings_condition("T", [*found, found[0]]) == expected


def test_the_message_is_bounded_and_has_the_number_of_omitted_lines() -> None:
    found = [finding(number, "x" * 1000) for number in range(MOST_LINES + 7)]
    lines = warnings_condition("T", found).message.splitlines()
    assert len(lines) == MOST_LINES + 1
    assert max(map(len, lines)) == MOST_CHARACTERS
    assert lines[-1].startswith("and 7 more: ")


def test_the_name_of_the_owner_is_omitted() -> None:
    condition = warnings_condition("T", [finding(1), finding(2)], "SchedulerProfile/a ")
    assert condition.message == "spec.plugins[01]: m\nspec.plugins[02]: m"


def test_each_warning_about_settings_that_do_not_run_states_why() -> None:
    found = [finding(1, "x" * 1000), finding(2)]
    lines = warnings_condition("T", found, unused="revision 2 was refused").message.splitlines()
    assert [line.endswith(" (revision 2 was refused)") for line in lines] == [True, True]


def test_warnings_do_not_affect_the_cluster_operator() -> None:
    assert not any(type_.endswith(each.type) for type_ in TYPES for each in AGGREGATES)
