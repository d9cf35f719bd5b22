"""One cluster in many states: every command and condition against what is true there.

The table is in `states.py`. Each state is mended before the next one.
"""

from __future__ import annotations

import pytest

from cluster.observe import CLUSTEROPERATOR, delete_pod, until
from kube_scheduler_operator.base import names
from kube_scheduler_operator.cli.checks.operation import INFORMATIONAL

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
from .world import DEFAULT, LATE, PACKED, World, eventually

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]

HEALTHY = STATES["healthy"]
SOON = 15
"""Seconds for which `rollout watch` waits for an end that does not come."""


def test_there_are_twenty_states() -> None:
    assert len(STATES) >= 20


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_every_command_reports_what_is_true(world: World, state: State) -> None:
    try:
        with state.breaks(world):
            eventually(lambda: expect_reports(world, state))
            expect_reality(world, state)
            expect_rollouts(world, state)
            expect_reports(world, state)
    finally:
        world.without_pods()
    eventually(lambda: expect_reports(world, HEALTHY), 2 * LATE)


def expect_reports(world: World, state: State) -> None:
    """Conditions, `check` and `status` agree with what is true."""
    expect_conditions(world, state)
    _, checked = world.document("check")
    expect_check(checked, state)
    expect_status(*world.document("status"), state)


def expect_conditions(world: World, state: State) -> None:
    obj = world.secondary()
    expect_secondary(PACKED, obj, state)
    expect_assigned(obj, state)
    if not state.observes:
        return
    conditions = {one["type"]: one["status"] for one in world.status["conditions"]}
    bad = {type_ for type_, status in conditions.items() if status == _bad(type_)}
    assert bad == set(state.conditions)
    path = CLUSTEROPERATOR
    overall = {one["type"]: one for one in world.api.request("GET", path)["status"]["conditions"]}
    degraded = any(type_.endswith("Degraded") for type_ in state.conditions)
    assert (overall["Available"]["status"] == "True") is state.available, overall["Available"]
    assert (overall["Degraded"]["status"] == "True") is degraded, overall["Degraded"]


def _bad(type_: str) -> str:
    """The status of a condition that reports a problem; empty: no status does."""
    if type_.endswith("Degraded") or type_ in INFORMATIONAL:
        return "True"
    return "False" if type_.endswith(("Available", "Upgradeable")) else ""


def expect_reality(world: World, state: State) -> None:
    """New Pods are assigned and bound as the commands report it."""
    assert (world.scheduler_of_new() == PACKED) is state.assigns
    pods = {f"fits-{name}": name for name in BOTH}
    create(world, *(pod(name, scheduler) for name, scheduler in pods.items()))
    for name, scheduler in pods.items():
        if scheduler not in state.idle:
            until(lambda name=name: world.is_bound(name), LATE, f"{name} is not bound")  # type: ignore[misc]
    _, document = world.document("pending", "-n", "default")
    waiting = kinds_of(document)
    for name, scheduler in pods.items():
        _, explained = world.document("why", f"default/{name}")
        is_bound = world.is_bound(name)
        assert is_bound is (scheduler not in state.idle), name
        assert (f"default/{name}" in waiting) is not is_bound, waiting
        if not is_bound:
            expect_waiting(scheduler, waiting[f"default/{name}"], explained, state)
    for name in pods:
        delete_pod(world.api, name)


def expect_rollouts(world: World, state: State) -> None:
    code, out = world.watch("--scheduler", PACKED, seconds=SOON)
    expect_watch(code, out, state)
    code, out = world.watch(seconds=SOON)
    assert (code == 0) is (state.observes and state.settled), out
    assert ("operator: " in out) is not state.observes, out
    _, revisions = world.document("history")
    assert revisions[0]["outcome"] == state.outcome, revisions[0]
    _, contents = world.document("history", "--scheduler", PACKED)
    assert contents, "the configuration that runs"
