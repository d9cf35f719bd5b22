"""When nodes are polled and written, also with failing nodes and without the API."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from kube_scheduler_operator.base.names import LOAD_ANNOTATION
from kube_scheduler_operator.kube.errors import ApiRequest, Unavailable
from kube_scheduler_operator.scheduling.annotator.annotation import KEYS
from kube_scheduler_operator.scheduling.annotator.bindings import PodBindings
from kube_scheduler_operator.scheduling.annotator.reported_state import groups, take_state
from kube_scheduler_operator.scheduling.load.policy import LoadPolicy, Predicate, Rules
from kube_scheduler_operator.scheduling.load.policy import SourceSpec as Where

from ....builders import container, pod, pod_status

CYCLE = 60.0


def fill(world: Any, count: Any) -> Any:
    names = [f"n{number:03}" for number in range(count)]
    for name in names:
        world.nodes.add(name)
    world.annotator.listed()
    return names


def test_nodes_are_polled_once_per_cycle_and_spread(play: Any) -> None:
    async def test(world: Any) -> None:
        names = fill(world, 200)
        await asyncio.sleep(CYCLE / 2 + 1)
        assert {name for _, name in world.source.asked} == set(names)
        assert world.annotator.counters.first_cycle < CYCLE
        world.source.asked.clear()
        await asyncio.sleep(CYCLE * 10)
        counts = Counter(name for _, name in world.source.asked)
        assert set(counts) == set(names)
        assert set(counts.values()) <= {9, 10, 11}
        per_second = Counter(int(at) for at, _ in world.source.asked)
        assert max(per_second.values()) < 20

    play(test)


def test_unchanged_node_is_written_only_to_refresh(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 20)
        await asyncio.sleep(3600)
        counts = Counter(name for _, name, _ in world.nodes.patches)
        assert all(14 <= count <= 17 for count in counts.values()), counts
        for name in counts:
            at = world.nodes.of(name)
            assert all(180 < later - before <= 300 for before, later in pairwise(at))

    play(test)


def test_relevant_change_is_written_within_a_cycle(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 1)
        await asyncio.sleep(CYCLE)
        count = len(world.nodes.patches)
        world.source.usage["n000"] = 0.9
        await asyncio.sleep(CYCLE + 1)
        assert len(world.nodes.patches) == count + 1
        assert world.nodes.load("n000")["cpu_usage_avg_5m"] == 0.9
        assert world.nodes.load("n000")["free_cpu_mean"] == 400
        assert world.nodes.load("n000")["congestion"] == 71  # (.9 - .65) / .35

    play(test)


def test_one_patch_has_all_annotations_and_preconditions(play: Any) -> None:
    bodies = []

    async def test(world: Any) -> None:
        original = world.nodes.patch

        async def patch(ref: Any, body: Any, **flags: Any) -> Any:
            bodies.append(body)
            return await original(ref, body, **flags)

        world.nodes.patch = patch
        fill(world, 1)
        await asyncio.sleep(CYCLE)

    play(test, LoadPolicy(write=("crane", "safe")), PodBindings(Rules(), lambda: 0.0))
    (body,) = bodies
    assert set(body["metadata"]) == {"uid", "resourceVersion", "annotations"}
    written = set(body["metadata"]["annotations"])
    assert written == {*KEYS["own"], *KEYS["crane"], *KEYS["safe"]}


def test_conflict_reads_the_node_again(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 1)
        unseen = iter([True])

        def change(name: Any) -> None:
            if next(unseen, False):
                world.nodes.annotations(name)["other"] = "theirs"
                world.nodes.touch(name, seen=False)

        world.nodes.before_patch = change
        await asyncio.sleep(CYCLE)
        assert world.annotator.counters.results["conflict"] == 1
        assert world.nodes.annotations("n000")["other"] == "theirs"
        assert LOAD_ANNOTATION in world.nodes.annotations("n000")

    play(test)


def test_constantly_changing_node_costs_two_patches_per_cycle(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 1)
        asked = []

        def change(name: Any) -> None:
            asked.append(name)
            world.nodes.touch(name, seen=False)

        world.nodes.before_patch = change
        await asyncio.sleep(10 * CYCLE)
        assert 18 <= len(asked) <= 24

    play(test)


def test_newer_annotation_is_not_overwritten(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 1)
        await asyncio.sleep(CYCLE)
        fresh = world.nodes.annotations("n000")[LOAD_ANNOTATION]
        count = len(world.nodes.patches)

        def other(name: Any) -> None:
            text = fresh.replace("0.3,", "0.89,", 1)
            world.nodes.annotations(name)[LOAD_ANNOTATION] = text.replace("0.3,", "0.9,")
            world.nodes.touch(name, seen=False)
            world.nodes.before_patch = lambda _: None

        world.nodes.before_patch = other
        world.source.usage["n000"] = 0.9
        await asyncio.sleep(CYCLE)
        assert world.annotator.counters.results["conflict"] == 1
        assert len(world.nodes.patches) <= count + 1

    play(test)


def test_removed_annotation_is_restored(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 1)
        await asyncio.sleep(CYCLE)
        del world.nodes.annotations("n000")[LOAD_ANNOTATION]
        world.nodes.touch("n000")
        await asyncio.sleep(CYCLE + 1)
        assert LOAD_ANNOTATION in world.nodes.annotations("n000")

    play(test)


def test_nodes_are_added_removed_and_recreated(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 3)
        await asyncio.sleep(CYCLE)
        world.nodes.remove("n001")
        world.nodes.add("n003")
        world.source.asked.clear()
        await asyncio.sleep(2 * CYCLE)
        assert {name for _, name in world.source.asked} == {"n000", "n002", "n003"}
        assert LOAD_ANNOTATION in world.nodes.annotations("n003")
        world.nodes.add("n001", uid="another")
        await asyncio.sleep(CYCLE)
        assert LOAD_ANNOTATION in world.nodes.annotations("n001")
        world.nodes.add("n001", uid="yet-another")
        await asyncio.sleep(CYCLE)
        assert LOAD_ANNOTATION in world.nodes.annotations("n001")

    play(test)


def test_failing_nodes_back_off_without_delaying_others(play: Any) -> None:
    async def test(world: Any) -> None:
        names = fill(world, 600)
        sick = set(names[::2])  # more than there are places
        world.source.hanging = set(sick)
        await asyncio.sleep(8 * CYCLE)
        world.source.asked.clear()
        await asyncio.sleep(10 * CYCLE)
        counts = Counter(name for _, name in world.source.asked)
        assert all(9 <= counts[name] <= 11 for name in names if name not in sick)
        assert all(counts[name] <= 3 for name in sick)
        assert world.annotator.counters.cycle < CYCLE
        well = [name for name in names if name not in sick]
        gaps = [later - before for name in well for before, later in pairwise(world.nodes.of(name))]
        assert max(gaps) <= 300
        world.source.hanging.clear()
        await asyncio.sleep(8 * CYCLE)
        known, stale, missing = groups(world.annotator.nodes, 480, world.now())
        assert (known, stale, missing) == (600, [], [])

    play(test)


def test_bulk_source_is_requested_again_in_the_next_cycle(play: Any) -> None:
    async def test(world: Any) -> None:
        world.source.per_node = False
        names = fill(world, 10)
        world.source.broken = dict.fromkeys(names, "down")
        await asyncio.sleep(60 * CYCLE)
        world.source.broken.clear()
        world.source.asked.clear()
        await asyncio.sleep(CYCLE + 1)
        assert {name for _, name in world.source.asked} == set(names)

    play(test)


def test_stale_nodes_are_reported(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 4)
        world.nodes.add("never")
        world.source.broken = {"never": "connection refused"}
        await asyncio.sleep(10 * CYCLE)
        world.source.broken["n002"] = "no route to host"
        await asyncio.sleep(12 * CYCLE)
        state = take_state(world.annotator, "digest", "", world.now())
        assert (state.nodes, state.known) == (5, 3)
        assert (state.stale, state.missing) == (["n002"], ["never"])
        assert state.error.startswith("measuring 2 of 5 nodes fails; n002: no route to host")
        # Old data is left as it is: readers see by its time that it is old.
        assert LOAD_ANNOTATION in world.nodes.annotations("n002")

    play(test)


def test_api_outage_backs_off_and_logs_once(play: Any, caplog: pytest.LogCaptureFixture) -> None:
    request = ApiRequest("patch", "/api/v1/nodes/x")

    async def test(world: Any) -> None:
        fill(world, 200)
        await asyncio.sleep(CYCLE)
        world.nodes.errors = [Unavailable(request, status=503) for _ in range(1_000)]
        before = len(world.nodes.errors)
        await asyncio.sleep(600)
        assert before - len(world.nodes.errors) < 400
        world.nodes.errors.clear()
        await asyncio.sleep(CYCLE + 31)
        known, _, _ = groups(world.annotator.nodes, 480, world.now())
        assert known == 200
        assert not world.annotator.api_error

    with caplog.at_level(logging.INFO):
        play(test)
    assert len([r for r in caplog.records if "Writing nodes fails" in r.message]) == 1
    assert len([r for r in caplog.records if "Writing nodes works again" in r.message]) == 1


def test_changed_policy_applies_immediately(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 5)
        world.source.usage = {"n001": 0.32}
        await asyncio.sleep(5 * CYCLE)
        count = len(world.nodes.patches)
        strict = Rules(predicates=(Predicate("cpu_usage_avg_5m", 0.31),))
        world.source.usage = {"n001": 0.30}
        world.annotator.use(replace(world.annotator.policy, rules=strict))
        await asyncio.sleep(CYCLE)
        reasons = world.annotator.counters.patches
        assert reasons["limit"] == 1
        assert len(world.nodes.patches) > count

    play(test)


def test_shorter_cycle_and_other_source(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 5)
        await asyncio.sleep(CYCLE)
        other = type(world.source)()
        policy = replace(world.annotator.policy, cycle=2.0, source=Where(type="Prometheus"))
        world.annotator.use(policy, other)
        await asyncio.sleep(20)
        assert 35 <= len(other.asked) <= 60
        assert world.nodes.load("n000")["source"] == "Prometheus"

    play(test)


def test_unwanted_families_are_removed(play: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, 2)
        world.nodes.add("theirs", {"cpu_usage_avg_5m": "0.5,2026-11-23T00:00:00Z", "mine": "x"})
        assert world.annotator.removed() == ()
        await asyncio.sleep(CYCLE)
        assert world.annotator.removed() == ("crane",)
        assert set(world.nodes.annotations("theirs")) == {"mine", LOAD_ANNOTATION}

    play(test, LoadPolicy(remove=("crane",)))


def test_unwanted_families_are_removed_from_a_node_that_is_down(play: Any) -> None:
    async def test(world: Any) -> None:
        world.nodes.add("down", {"cpu_usage_avg_5m": "0.5,2026-11-23T00:00:00Z", "mine": "x"})
        world.source.broken = {"down": "no route to host"}
        await asyncio.sleep(CYCLE)
        assert world.nodes.annotations("down") == {"mine": "x"}

    play(test, LoadPolicy(remove=("crane",)))


def test_changing_the_source_during_a_poll_loses_no_node(play: Any) -> None:
    async def test(world: Any) -> None:
        names = fill(world, 20)
        world.source.hanging = set(names)
        await asyncio.sleep(CYCLE / 2 + 1)
        other = type(world.source)()
        world.annotator.use(replace(world.annotator.policy, source=Where(type="Prometheus")), other)
        for task in list(world.annotator._polling.values()):
            task.cancel()  # as closing the old one may
        await asyncio.sleep(2 * CYCLE)
        assert {name for _, name in other.asked} == set(names)

    play(test)


def test_families_not_listed_are_not_removed(play: Any) -> None:
    async def test(world: Any) -> None:
        world.nodes.add("theirs", {"cpu_usage_avg_5m": "0.5,2026-11-23T00:00:00Z"})
        await asyncio.sleep(CYCLE)
        assert "cpu_usage_avg_5m" in world.nodes.annotations("theirs")

    play(test)


def running(name: str) -> dict[str, Any]:
    """A running Pod on the first node."""
    status = pod_status("Running")
    return pod(name, node="n000", containers=[container({"cpu": "1"})], status=status)


def test_hot_values_are_written_early_and_decay(play: Any) -> None:
    async def test(world: Any) -> None:
        bindings = world.annotator.bindings = PodBindings(Rules(), world.now)
        bindings.changed = world.annotator.pods_changed
        fill(world, 1)
        await asyncio.sleep(5 * CYCLE)
        for number in range(4):
            bindings.set(running(f"p{number}"))
        await asyncio.sleep(11)
        assert world.nodes.annotations("n000")["node_hot_value"].startswith("2,")
        await asyncio.sleep(2 * CYCLE + 1)
        assert world.nodes.annotations("n000")["node_hot_value"].startswith("0,")
        written = len(world.nodes.patches)
        for number in range(4, 300):
            bindings.set(running(f"p{number}"))
            await asyncio.sleep(0.1)
        assert len(world.nodes.patches) - written <= 4

    play(test, LoadPolicy(write=("crane",)))


def test_requested_resources_are_written(play: Any) -> None:
    async def test(world: Any) -> None:
        bindings = world.annotator.bindings = PodBindings(Rules(), world.now)
        fill(world, 1)
        await asyncio.sleep(CYCLE)
        assert world.nodes.annotations("n000")["requested-cpu"] == "0"
        bindings.set(running("one"))
        await asyncio.sleep(CYCLE + 1)
        assert world.nodes.annotations("n000")["requested-cpu"] == "1000"
        assert world.annotator.counters.patches["requested"] == 1

    play(test, LoadPolicy(write=("safe",)))


@pytest.mark.parametrize("count", [1, 1000])
def test_first_polls_take_half_a_cycle(play: Any, count: Any) -> None:
    async def test(world: Any) -> None:
        fill(world, count)
        await asyncio.sleep(CYCLE)
        assert world.annotator.counters.first_cycle <= CYCLE / 2 + 2
        assert len(world.nodes.patches) == count

    play(test)


def test_restart_does_not_rewrite_fresh_annotations(play: Any) -> None:
    kept = {}

    async def before(world: Any) -> None:
        fill(world, 50)
        await asyncio.sleep(CYCLE)
        kept.update({name: world.nodes.annotations(name) for name in world.nodes.objects})

    async def after(world: Any) -> None:
        for name, values in kept.items():
            world.nodes.add(name, values)
        world.annotator.listed()
        await asyncio.sleep(CYCLE)
        assert not world.nodes.patches

    play(before)
    play(after)
