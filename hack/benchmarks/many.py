"""Dozens of SecondarySchedulers and hundreds of SchedulerProfiles in one cluster.

The API server and its controllers are real, and so is the operator, with its own account's rights;
pods are played. What was written is counted by the API server itself: it is in its audit log.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.many_cluster import SECONDARY_SCHEDULERS, Cluster, Mark, Pass, profile_spec
from benchmarks.table import REPOSITORY, Row
from cluster import lifecycle, teardown
from cluster.console import say
from cluster.observe import SCHEDULER, until

NAME = f"bench-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
PASS_TARGET = 100.0
MEMORY_TARGET = 120.0
IDLE_SECONDS = 30.0

Writes = Counter[str]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that a person makes, and the required writes."""

    what: str  # for the table
    # makes the n-th one of its kind and returns the required writes, by a pattern
    make: Callable[[Cluster, int], dict[str, int]]


def measure(schedulers: int, profiles: int, repeat: int) -> Iterator[Row]:
    """All figures, as they come."""
    teardown.down(NAME)
    sandbox = lifecycle.up(NAME, 0, 0, with_operator=False)
    cluster = None
    try:
        cluster = Cluster(sandbox, schedulers, profiles)
        first = cluster.start()
        heading = f"{schedulers} schedulers, {profiles} profiles: "
        yield Row(heading + "first reconcile", [first.decided_cpu], "ms CPU", None)
        yield from _calm(cluster, repeat)
        for edit in EDITS:
            yield from _edited(cluster, edit, repeat)
        yield Row("memory of the process", cluster.memory, "MiB", MEMORY_TARGET)
        yield Row("the same, at its peak", [cluster.peak()], "MiB", MEMORY_TARGET)
    finally:
        try:
            if cluster is not None:
                cluster.close()
        finally:
            teardown.down(NAME)


def _calm(cluster: Cluster, repeat: int) -> Iterator[Row]:
    """Reconciles without any work: a profile gets a label, which has no effect."""
    found: list[Pass] = []
    written: Writes = Counter()
    for number in range(repeat):
        mark = cluster.mark()
        metadata = {"annotations": {"example.com/note": str(number)}}
        cluster.patch(cluster.profiles[number], {"metadata": metadata})
        until(lambda mark=mark: bool(cluster.passes(mark)), 30, "no reconcile")  # type: ignore[misc]
        found.append(cluster.passes(mark)[0])
        written += cluster.written(mark)
    yield from _took("a reconcile without work", found)
    yield Row("  writes", [float(written.total())], "", 0.0, notes=sorted(written))
    mark, used = cluster.mark(), cluster.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    percent = 100 * (cluster.cpu_seconds() - used) / IDLE_SECONDS
    yield Row("idling, all Leases being renewed", [percent], "% of a core", None)
    idle = cluster.written(mark)
    yield Row("  writes", [float(idle.total())], "", 0.0, notes=sorted(idle))


def _edited(cluster: Cluster, edit: Edit, repeat: int) -> Iterator[Row]:
    passes: list[Pass] = []
    needed, others, notes = [], [], []
    for number in range(repeat):
        mark = cluster.mark()
        wanted = edit.make(cluster, number)
        until(lambda mark=mark: _first(cluster, mark) is not None, 120, "no reconcile")  # type: ignore[misc]
        cluster.wait_calm()
        first = _first(cluster, mark)
        assert first is not None
        passes.append(first)
        written = cluster.written(mark)
        missing = [pattern for pattern in wanted if not _matching(written, pattern)]
        if missing:
            raise AssertionError(f"{edit.what}: no {', '.join(missing)} in {dict(written)}")
        over = written.copy()
        for pattern, at_most in wanted.items():
            for one in _matching(written, pattern):
                over[one] = max(over[one] - at_most, 0)
        needed.append(float(written.total() - over.total()))
        others.append(float(over.total()))
        notes.append(", ".join(f"{one} {count}" for one, count in sorted(written.items())))
        cluster.note_memory()
    say(f"  {edit.what}: {notes[-1]}")
    yield from _took(edit.what, passes)
    yield Row("  required writes", needed, "", None, notes=notes)
    yield Row("  other writes", others, "", 0.0)


def _first(cluster: Cluster, mark: Mark) -> Pass | None:
    """The pass that saw the edit: the first one that had something to do."""
    return next((one for one in cluster.passes(mark) if one.writes), None)


def _matching(written: Writes, pattern: str) -> list[str]:
    """The writes that a pattern means; `*` at its end stands for anything."""
    if pattern.endswith("*"):
        return [one for one in written if one.startswith(pattern[:-1])]
    return [pattern] if pattern in written else []


def _took(what: str, passes: list[Pass]) -> Iterator[Row]:
    yield Row(what, [one.decided_cpu for one in passes], "ms CPU", PASS_TARGET)
    # It never waits, so this shows how busy the machine was.
    yield Row("  by the clock", [one.decided_wall for one in passes], "ms", None)
    if any(one.writes for one in passes):
        yield Row("  with its writes", [one.done_wall for one in passes], "ms", None)


# --- edits ------------------------------------------------------------------------------------

ANY = 1000
"""This many of one kind of write are expected: a status follows a rollout."""


def _of_secondary(name: str) -> dict[str, int]:
    """The writes of a rollout of one secondary scheduler."""
    return {
        f"create configmaps {name}-config-*": 1,
        f"update deployments {name}": 1,
        f"update secondaryschedulers/status {name}": ANY,
    }


def _secondarys_profile(cluster: Cluster, number: int) -> dict[str, int]:
    scheduler = cluster.schedulers[number]
    profile = cluster.profiles_of[scheduler][0]
    cluster.patch(profile, {"spec": profile_spec(10_000 + number)})
    return {f"update schedulerprofiles/status {profile}": 1, **_of_secondary(scheduler)}


def _secondary(cluster: Cluster, number: int) -> dict[str, int]:
    scheduler = cluster.schedulers[-1 - number]
    body = {"spec": {"config": {"parallelism": 100 + number}}}
    cluster.api.request("PATCH", f"{SECONDARY_SCHEDULERS}/{scheduler}", body)
    return _of_secondary(scheduler)


def _next_revision(cluster: Cluster) -> dict[str, int]:
    """What a revision of the control plane writes; the one before, on no node yet, is over."""
    number = cluster.latest_revision() + 1
    return {
        "update configmaps config": 1,
        f"create configmaps revision-status-{number}": 1,
        f"create configmaps config-{number}": 1,
        f"create configmaps kube-scheduler-pod-{number}": 1,
        f"update configmaps revision-status-{number}": 1,
        f"update configmaps revision-status-{number - 1}": 1,
        "update kubeschedulers/status cluster": ANY,
    }


def _control_planes_profile(cluster: Cluster, number: int) -> dict[str, int]:
    profile = cluster.profiles_of[""][number]
    needed = _next_revision(cluster)
    cluster.patch(profile, {"spec": profile_spec(20_000 + number)})
    observed = {"update kubeschedulers cluster": 1}
    return {f"update schedulerprofiles/status {profile}": 1, **observed, **needed}


def _mistake(cluster: Cluster, number: int) -> dict[str, int]:
    profile = cluster.profiles_of[cluster.schedulers[number]][1]
    plugins = {"score": {"enabled": [{"name": "ImageLocalty", "weight": number + 1}]}}
    cluster.patch(profile, {"spec": {"plugins": plugins}})
    return {
        f"update schedulerprofiles/status {profile}": 1,
        "update kubeschedulers/status cluster": 1,
        "update clusteroperators/status kube-scheduler": 1,
    }


def _shared(cluster: Cluster, number: int) -> dict[str, int]:
    needed = _next_revision(cluster)
    profile = ("HighNodeUtilization", "NoScoring")[number % 2]
    cluster.api.request("PATCH", SCHEDULER, {"spec": {"profile": profile}})
    return needed


EDITS: tuple[Edit, ...] = (
    Edit("edit of a profile of one secondary scheduler", _secondarys_profile),
    Edit("edit of a SecondaryScheduler", _secondary),
    Edit("edit of a profile of the control plane's", _control_planes_profile),
    Edit("a mistake in a profile of a secondary scheduler", _mistake),
    Edit("edit of the configuration that all profiles of the control plane share", _shared),
)
