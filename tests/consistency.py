"""What each command must report about a state of a cluster: one definition for all tests.

`tests/unit/cli/test_consistency.py` compares it over an imitated managed cluster,
`tests/e2e/states` over a real one with static Pods.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.simulate import diagnosis

from .expect import condition_of

OUTDATED = ("conditions", "objects")
"""The checks that report that their facts are of an earlier time: no operator runs."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is true of a cluster."""

    observes: bool = True  # the operator runs
    idle: Collection[str] = ()  # the schedulers that schedule nothing
    # SecondarySchedulers whose Pods, Deployment or Lease are not as they should be
    down: Collection[str] = ()
    assigns: bool = True  # new Pods get the schedulerName of the scheduler with spec.assign
    # the Pods of that scheduler are, with the configuration of its spec, and of what it refers to
    ready: bool = True
    checks: tuple[str, ...] = ()  # the checks that fail or warn, besides those of the above
    text: str = ""  # what check and status name; empty: nothing is wrong
    is_warning: bool = False  # whether nothing has failed, so that both end with 0

    @property
    def problems(self) -> set[str]:
        """The checks that fail or warn."""
        return {
            *self.checks,
            *(() if self.observes else ("operator",)),
            *(("secondary-schedulers",) if self.down else ()),
            *(() if self.assigns else ("assignment",)),
        }

    @property
    def code(self) -> int:
        """The exit code of check and status."""
        return 1 if self.text and not self.is_warning else 0


def causes(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """The causes of each check that is not ok, from `check -o json`."""
    found: dict[str, list[str]] = {}
    for result in document["checks"]:
        if result["result"] != "ok":
            found.setdefault(result["check"], []).append(result["cause"])
    return found


def expect_check(code: int, document: Mapping[str, Any], truth: Truth) -> None:
    found = causes(document)
    assert set(found) == truth.problems, found
    assert truth.text in "\n".join(cause for causes_ in found.values() for cause in causes_)
    assert code == truth.code, found


def expect_status(code: int, document: Mapping[str, Any], truth: Truth) -> None:
    keys = ("problems", "warnings", "assignments", "progress", "managementState")
    shown = json.dumps([document[key] for key in keys], ensure_ascii=False)
    if set(truth.checks) != {"operator-rights"}:  # rights are what `check` is for
        assert truth.text in shown, shown
        assert code == truth.code, shown
    assert (document["silence"] == "") is truth.observes, document["silence"]
    assert document["notObserved"] == []


def expect_waiting(name: str, kind: str, explained: Mapping[str, Any], truth: Truth) -> None:
    """What `pending` and `why` report of a waiting Pod that fits, of the scheduler `name`."""
    assert kind == explained["outcome"]
    if kind == diagnosis.NOT_SIMULATED:
        assert explained["problem"], "both do not know the configuration"
        return
    assert (explained["idle"] != "") is (name in truth.idle), explained["idle"]
    assert kind == (diagnosis.IDLE if name in truth.idle else diagnosis.QUEUED)


def expect_simulated(name: str, document: Mapping[str, Any], truth: Truth) -> None:
    """What `simulate` reports of a new Pod that fits, of the scheduler `name`."""
    if document["configurations"][0]["notSimulated"]:
        assert document["fits"] is None
        return
    assert document["fits"], document
    is_noted = any("schedules nothing now" in note for note in document["notes"])
    assert is_noted is (name in truth.idle), document["notes"]


def kinds_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Waiting Pod -> the kind of its group, from `pending -o json`."""
    return {pod: group["kind"] for group in document["groups"] for pod in group["pods"]}


def expect_watch(code: int, out: str, truth: Truth) -> None:
    """What `rollout watch` reports of the scheduler with spec.assign."""
    assert (code == 0) is (truth.observes and truth.ready), out
    assert ("operator: " in out) is not truth.observes, out


def expect_secondary(name: str, obj: Mapping[str, Any], truth: Truth) -> None:
    """The conditions of a SecondaryScheduler; if none observes, they are of an earlier time."""
    if truth.observes:
        assert (condition_of(obj, names.AVAILABLE)[0] == "True") is (name not in truth.idle), name


def expect_assigned(obj: Mapping[str, Any], truth: Truth) -> None:
    if truth.observes:
        assert (condition_of(obj, names.ASSIGNED)[0] == "True") is truth.assigns
        assert ("assignment" in obj["status"]) is truth.assigns
