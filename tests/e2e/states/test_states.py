"""One cluster in many states: every command and condition against what is true there.

The table is in `states.py`. Each state is mended before the next one.
"""

from __future__ import annotations

from functools import partial

import pytest

from cluster.observe import until
from kube_scheduler_operator.cli.checks.operation import severity

from ...consistency import (
    expect_assigned,
    expect_check,
    expect_secondary,
    expect_status,
    expect_waiting,
    expect_watch,
    kinds_of,
)
from ..workloads import create, pod
from .states import BOTH, STATES, State
from .world import LATE, PACKED, World, eventually

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]

HEALTHY = STATES["healthy"]
SOON = 15.0
"""Seconds for which `rollout watch` waits for an end that does not come."""


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_every_command_reports_what_is_true(world: World, state: State) -> None:
    try:
        with state.breaks(world):
            for expect in (expect_reports, expect_reality, expect_rollouts):
                eventually(partial(expect, world, state))
    finally:
        world.without_pods()
    eventually(partial(expect_reports, world, HEALTHY))


def expect_reports(world: World, state: State) -> None:
    """Conditions, `check` and `status` agree with what is true."""
    expect_conditions(world, state)
    expect_check(*world.document("check"), state)
    expect_status(*world.document("status"), state)


def expect_conditions(world: World, state: State) -> None:
    obj = world.secondary()
    expect_secondary(PACKED, obj, state)
    expect_assigned(obj, state)
    if not state.observes:
        return
    conditions = world.status["conditions"]
    bad = {one["type"]: one for one in conditions if severity(one) is not None}
    assert set(bad) == set(state.conditions), bad
    degraded = "Unknown"
    if state.available != "Unknown":
        degraded = str(any(type_.endswith("Degraded") for type_ in state.conditions))
    for type_, status in (("Available", state.available), ("Degraded", degraded)):
        assert world.cluster_operator(type_)[0] == status, world.cluster_operator(type_)


def expect_reality(world: World, state: State) -> None:
    """New Pods are assigned and bound as the commands report it."""
    world.without_pods()
    assert (world.scheduler_of_new() == PACKED) is state.assigns
    pods = {f"fits-{name}": name for name in BOTH}
    create(world, *(pod(name, scheduler) for name, scheduler in pods.items()))
    for name, scheduler in pods.items():
        if scheduler not in state.idle:
            until(partial(world.is_bound, name), LATE, f"{name} is not bound")
    _, document = world.document("pending", "-n", "default")
    waiting = kinds_of(document)
    for name, scheduler in pods.items():
        _, explained = world.document("why", f"default/{name}")
        is_bound = world.is_bound(name)
        assert is_bound is (scheduler not in state.idle), name
        assert (f"default/{name}" in waiting) is not is_bound, waiting
        if not is_bound:
            expect_waiting(scheduler, waiting[f"default/{name}"], explained, state)


def expect_rollouts(world: World, state: State) -> None:
    seconds = LATE if state.observes and state.ready else SOON
    expect_watch(*world.watch("--scheduler", PACKED, seconds=seconds), state)
    settled = state.observes and state.settled
    code, out = world.watch(seconds=LATE if settled else SOON)
    assert (code == 0) is settled, out
    assert ("operator: " in out) is not state.observes, out
    _, revisions = world.document("history")
    assert revisions[0]["outcome"] == state.outcome, revisions[0]
    _, contents = world.document("history", "--scheduler", PACKED)
    assert contents, "the configuration that runs"
