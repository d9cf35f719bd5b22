"""Warnings about two schedulers in one cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.findings import WARNING
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.language.warnings import configuration as top
from kube_scheduler_operator.config.language.warnings.configuration import (
    ConfiguredScheduler,
    warnings_between,
)

OWN = {"resourceName": "own"}


def process(name: str, **fields: Any) -> ConfiguredScheduler:
    return ConfiguredScheduler(name, fields, Target(Gates(Version(1, 35))))


def served(*names: str, **fields: Any) -> dict[str, Any]:
    return {"profiles": [{"schedulerName": name, **fields} for name in names]}


MAIN = process("main")


def test_profiles_of_one_process_may_have_different_filters() -> None:
    profiles = [
        {"schedulerName": "a"},
        {"schedulerName": "b", "plugins": {"filter": {"disabled": [{"name": "*"}]}}},
    ]
    assert warnings_between([process("one", profiles=profiles)]) == []


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (served("mine"), top.SHARED_LEASE),
        ({**served("mine"), "leaderElection": {"leaderElect": False}}, top.SAME_NODES),
        ({**served("mine"), "leaderElection": OWN}, top.SAME_NODES),
        ({**served("default-scheduler"), "leaderElection": OWN}, top.SAME_SCHEDULER_NAME),
        ({**served("mine", "default-scheduler"), "leaderElection": OWN}, top.SAME_SCHEDULER_NAME),
    ],
)
def test_two_processes(second: dict[str, Any], reason: str) -> None:
    ours = process("second", **second)
    ((where, warning),) = warnings_between([MAIN, ours])
    assert where is ours
    assert (warning.reason, warning.severity) == (reason, WARNING)
    assert warning.message.startswith("main ")
    assert warning.fix


def test_different_filters_are_listed() -> None:
    lists = {"plugins": {"filter": {"disabled": [{"name": "NodePorts"}, {"name": "NodeName"}]}}}
    second = process("second", **served("mine", **lists), leaderElection=OWN)
    ((_, warning),) = warnings_between([MAIN, second])
    assert "and only main filters by NodeName, NodePorts:" in warning.message
    alike = process("second", **served("mine"), leaderElection=OWN)
    ((_, warning),) = warnings_between([MAIN, alike])
    assert "filters by" not in warning.message


def test_every_pair_is_compared_once() -> None:
    third = process("third", **served("third"), leaderElection={"resourceName": "third"})
    second = process("second", **served("mine"), leaderElection=OWN)
    found = warnings_between([MAIN, second, third])
    assert [where.name for where, _ in found] == ["second", "third", "third"]
