from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.operator.controlplane.status import (
    is_scheduler_observed,
    merge_generations,
)

OWN = {"group": "config.openshift.io", "resource": "schedulers", "namespace": "", "name": "cluster"}
OTHER = {"group": "apps", "resource": "deployments", "namespace": "n", "name": "cluster"}


def scheduler(generation: int) -> dict[str, Any]:
    return {"metadata": {"name": "cluster", "generation": generation}}


def kubescheduler(*generations: Any) -> dict[str, Any]:
    return {"status": {"generations": list(generations)}}


@pytest.mark.parametrize(
    ("old", "others"),
    [
        (None, []),
        ([], []),
        ([{**OWN, "lastGeneration": 3}], []),
        ([{**OTHER, "lastGeneration": 7}], [{**OTHER, "lastGeneration": 7}]),
        ([{**OWN, "lastGeneration": 3}, {**OTHER, "lastGeneration": 7}],
         [{**OTHER, "lastGeneration": 7}]),
        (["text", None], []),
    ],
    ids=["none", "empty", "own", "another", "both", "malformed"],
)  # fmt: skip
def test_the_generation_of_the_scheduler_replaces_its_own_entry_only(
    old: Any, others: list[Any]
) -> None:
    assert merge_generations(old, scheduler(4)) == [*others, {**OWN, "lastGeneration": 4}]
    assert merge_generations(old, None) == others


def test_a_scheduler_is_observed_when_the_status_has_its_generation() -> None:
    seen = kubescheduler({**OTHER, "lastGeneration": 5}, {**OWN, "lastGeneration": 4})
    assert is_scheduler_observed(seen, scheduler(4))
    assert not is_scheduler_observed(seen, scheduler(5))


@pytest.mark.parametrize("found", [{}, {"status": None}, kubescheduler(), kubescheduler("text")])
def test_a_status_of_an_earlier_release_counts_as_observed(found: dict[str, Any]) -> None:
    assert is_scheduler_observed(found, scheduler(5))
    assert is_scheduler_observed(found, None)


def test_without_a_scheduler_there_is_nothing_to_observe() -> None:
    assert is_scheduler_observed(kubescheduler({**OWN, "lastGeneration": 4}), None)
