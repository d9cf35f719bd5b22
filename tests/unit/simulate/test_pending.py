"""Waiting pods by cause: what a tenant writes is bounded, and takes no turn of others."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.limits import FOREIGN_MESSAGE
from kube_scheduler_operator.simulate import pending
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.diagnosis import FAILED, QUEUED, UNSCHEDULABLE
from kube_scheduler_operator.simulate.owners import owner_of
from kube_scheduler_operator.simulate.pending import WaitingGroup, in_turn, waiting_groups
from kube_scheduler_operator.simulate.probes import Acceptance
from kube_scheduler_operator.simulate.questions import NO_BINARY
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.shared_runs import Runs
from kube_scheduler_operator.simulate.world import World

from ...hostile_objects import hostile, many_pods

OPTIONS = RunOptions(NO_BINARY, default_configuration())


async def test_causes_have_a_limited_length() -> None:
    """No pod of these is tried, so no kube-scheduler is started."""
    world = World()
    gates = [{"name": f"example.com/{number}-{'x' * 50}"} for number in range(10_000)]
    for obj in (*many_pods(50), hostile("gated", spec={"schedulingGates": gates})):
        world.add(obj)
    groups = await waiting_groups(world, OPTIONS)
    assert sum(len(group.pods) for group in groups) == 51
    assert max(len(group.cause) for group in groups) <= FOREIGN_MESSAGE


@pytest.mark.parametrize(
    ("reason", "status", "kind"),
    [
        ("SchedulerError", "False", FAILED),
        ("Unschedulable", "False", QUEUED),  # until the queue tries it again
        ("SchedulerError", "True", QUEUED),
    ],
)
async def test_a_pod_that_fits_and_that_its_scheduler_fails_to_place_is_not_only_queued(
    monkeypatch: pytest.MonkeyPatch, reason: str, status: str, kind: str
) -> None:
    async def accepted(
        world: World, options: RunOptions, pods: list[Any], runs: Runs
    ) -> list[Acceptance]:
        return [Acceptance(frozenset({"n1"})) for _ in pods]

    monkeypatch.setattr(pending, "acceptances", accepted)
    message = "running Score plugins: failed to read PreScoreInterPodAffinity"
    condition = {"type": "PodScheduled", "status": status, "reason": reason, "message": message}
    world = World()
    world.add(hostile("p", spec={"containers": []}, status={"conditions": [condition]}))
    (only,) = await waiting_groups(world, OPTIONS)
    assert (only.kind, message in only.cause) == (kind, kind == FAILED)


def group(namespace: str, cause: str) -> WaitingGroup:
    return WaitingGroup(UNSCHEDULABLE, cause, "", [], [f"{namespace}/p"])


def test_changes_are_tried_for_each_namespace_in_turn() -> None:
    groups = [*(group("tenant", f"{number}") for number in range(100)), group("shop", "a")]
    first, second, third = in_turn(groups)[:3]
    assert [first.cause, second.cause, third.cause] == ["0", "a", "1"]


def test_an_owner_has_a_limited_length() -> None:
    owner: dict[str, Any] = {"kind": "x" * 1_000_000, "name": "y" * 1_000_000, "controller": True}
    assert len(owner_of(hostile("p", metadata={"ownerReferences": [owner]}))) < 600
