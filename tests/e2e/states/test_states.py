"""One cluster in many states: every command and condition against what is true there.

The table is in `states.py`. Each state is mended before the next one.
"""

from __future__ import annotations

import json
from functools import partial

import pytest

from cluster.observe import until
from kube_scheduler_operator.base import names
from kube_scheduler_operator.cli.checks.operation import severity

from ...consistency import (
    expect_assigned,
    expect_check,
    expect_secondary,
    expect_simulated,
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
SOON = 5.0
"""Seconds for which `rollout watch` waits for an end that does not come."""


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_every_command_reports_what_is_true(world: World, state: State) -> None:
    try:
        with state.breaks(world):
            for expect in (
                expect_reports,
                expect_metrics,
                expect_images,
                expect_reality,
                expect_simulations,
                expect_contents,
                expect_rollouts,
            ):
                eventually(partial(expect, world, state))
    finally:
        world.without_pods()
        eventually(partial(expect_reports, world, HEALTHY))
        until(world.calm, LATE, "the rollout does not end")


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
        counted = set(state.conditions) - {names.NODES_DEGRADED}  # which counts after 600 s
        degraded = str(any(type_.endswith("Degraded") for type_ in counted))
    for type_, status in (("Available", state.available), ("Degraded", degraded)):
        assert world.cluster_operator(type_)[0] == status, world.cluster_operator(type_)


def expect_images(world: World, state: State) -> None:
    """The column, `status` and `version` name the image that Ready Pods run."""
    if not state.observes:
        return

    def reported() -> list[str]:
        running = world.secondary()["status"]["running"]
        return sorted({content["image"] for content in running})

    runs = sorted(world.packed_images())
    until(lambda: reported() == runs, LATE, f"{runs} run")
    (shown,) = (
        one for one in world.document("status")[1]["secondarySchedulers"] if one["name"] == PACKED
    )
    assert shown["image"] == ", ".join(runs)
    schedulers = world.document("version")[1]["schedulers"]
    name = f"SecondaryScheduler {PACKED}"
    assert [one["image"] for one in schedulers if one["name"] == name] == runs
    wide = world.kubectl("get", "secondaryschedulers", PACKED, "-o", "wide", "--no-headers")
    assert all(image in wide.split() for image in runs), wide


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


def expect_metrics(world: World, state: State) -> None:
    """What the operator exports agrees with what it writes into conditions; none, if it is gone."""
    if not state.observes:
        return
    exported = world.metrics()
    for condition in world.status["conditions"]:
        value = exported.get(("condition", condition["type"]))
        assert value == (condition["status"] == "True"), condition
    assert exported.get(("assigned", PACKED)) == state.assigns
    node = world.node.name
    assert exported.get(("active_scheduler", node)) == (DEFAULT not in state.idle)
    if world.status.get("nodeStatuses"):  # none while the schedulers are not the operator's
        assert exported.get(("node_scheduler_ready", node)) == world.scheduler_is_ready()
        assert exported.get(("node_drifted", node)) == state.drifts


def expect_simulations(world: World, state: State) -> None:
    """`simulate` reports a scheduler that would not place the Pods."""
    for name in BOTH:
        done = world.with_file("simulate --repeat 1 -o json", pod(f"simulated-{name}", name))
        expect_simulated(name, json.loads(done.stdout), state)


def expect_contents(world: World, state: State) -> None:
    """`diff`, `validate` and `dump-cache` agree with the configuration that runs."""
    done = world.with_file("diff", *world.settings())
    assert done.returncode == state.diff, done
    done = world.with_file("validate", *world.objects())
    assert (done.returncode == 0) is state.valid, done
    done = world.plugin("dump-cache")
    assert (done.returncode == 0) is (state.dumps and DEFAULT not in state.idle), done


def expect_rollouts(world: World, state: State) -> None:
    seconds = LATE if state.observes and state.ready else SOON
    expect_watch(*world.watch("--scheduler", PACKED, seconds=seconds), state)
    settled = state.observes and state.settled
    code, out = world.watch(seconds=LATE if settled else SOON)
    assert (code == 0) is settled, out
    assert ("operator: " in out) is not state.observes, out
    _, revisions = world.document("history")
    outcomes = [revision["outcome"] for revision in revisions]
    if state.outcome == "installed":  # a newer one may have failed before
        assert state.outcome in outcomes, outcomes
    else:
        assert outcomes[:1] == [state.outcome] * bool(state.outcome)
    _, contents = world.document("history", "--scheduler", PACKED)
    assert contents, "the configuration that runs"
