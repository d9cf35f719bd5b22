"""Which revisions are pruned: rows of the reference (prune controller, TestSync) and our own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base import names
from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.operator.controlplane.revision.history import Revision, last_good
from kube_scheduler_operator.operator.controlplane.revision.revise import RevisionResult
from kube_scheduler_operator.operator.controlplane.rollout.installer_pods import Installer, Stage
from kube_scheduler_operator.operator.controlplane.rollout.node_statuses import NodeStatus
from kube_scheduler_operator.operator.controlplane.rollout.observe import Observation
from kube_scheduler_operator.operator.controlplane.rollout.prune import (
    protected,
    prune,
    within_limits,
)
from kube_scheduler_operator.operator.controlplane.rollout.rollout_step import RolloutStep
from kube_scheduler_operator.operator.model.operand_pods import OperandPod, read
from kube_scheduler_operator.operator.model.plan import Delete
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .....builders import kubescheduler, operand_pod, snapshot

INSTALLED, REFUSED, FAILED = names.OUTCOME_INSTALLED, names.OUTCOME_REFUSED, names.OUTCOME_FAILED


def revision(number: int, outcome: str = INSTALLED, text: str = "", **fields: Any) -> Revision:
    content = RevisionContent(
        {name: {"key": text or f"of {number}"} for name in (names.CONFIG, names.POD)}
    )
    return Revision(
        number=number,
        status={"metadata": {"name": f"revision-status-{number}", "uid": f"uid-{number}"}},
        ready=fields.pop("ready", True),
        hash=content.hash,
        outcome=outcome,
        message="",
        quarantined=fields.pop("quarantined", frozenset()),
        parts=tuple(content.parts),
        copies={name: {"data": data} for name, data in content.parts.items()},
    )


def operand(node: str, number: int) -> OperandPod:
    return read(operand_pod(node, number))


def installer(node: str, number: int, stage: Stage) -> Installer:
    result = (
        Result(InstallerOutcome.INSTALLED, number, node, number) if stage is Stage.DONE else None
    )
    return Installer(
        name="i",
        node=node,
        revision=number,
        stage=stage,
        message="",
        problem="",
        waiting=None,
        result=result,
        permitted=True,
        swapping=False,
        created=None,
        staged=False,
        ended_at=None,
        deleting=False,
        pod={},
    )


def cluster(failed: int = 0, succeeded: int = 0) -> Snapshot:
    edited = kubescheduler(failedRevisionLimit=failed, succeededRevisionLimit=succeeded)
    return snapshot(kubescheduler=edited, nodes={"a": {}})


def step(
    history: tuple[Revision, ...],
    *statuses: NodeStatus,
    observation: Observation | None = None,
    seen: Snapshot | None = None,
) -> RolloutStep:
    revised = RevisionResult(history=history)
    return RolloutStep(seen or cluster(1, 1), revised, observation or Observation(), statuses)


def stay(
    history: Iterable[Revision],
    *entries: NodeStatus,
    limits: tuple[int, int] = (1, 1),
    pods: tuple[OperandPod, ...] = (),
    installers: tuple[Installer, ...] = (),
) -> set[int]:
    observation = Observation({pod.node: pod for pod in pods}, installers)
    seen = cluster(*limits)
    return set(protected(step(tuple(history), *entries, observation=observation, seen=seen)))


def numbers(*ranges: range | int) -> set[int]:
    return {n for r in ranges for n in ([r] if isinstance(r, int) else r)}


# --- the limits (as TestSync; a node's entry is current, target, last failed) ----------------


@pytest.mark.parametrize(
    ("limits", "latest", "nodes", "expected"),
    [
        pytest.param((1, 1), 4, [(2, 0, 0)], {2, 4}, id="one of each"),
        pytest.param((1, 1), 5, [(2, 3, 4)], {2, 3, 4, 5}, id="current, target, failed, latest"),
        pytest.param((1, 1), 1, [], None, id="no nodes: nothing is known"),
        pytest.param((2, 3), 10, [(4, 7, 0)], numbers(range(2, 11)), id="overlapping"),
        pytest.param(
            (2, 3),
            40,
            [(10, 30, 20)],
            numbers(range(8, 11), 19, 20, range(28, 31), range(38, 41)),
            id="apart",
        ),
        pytest.param(
            (0, 0),
            40,
            [(10, 30, 20)],
            numbers(range(6, 11), range(16, 21), range(26, 31), range(36, 41)),
            id="0 means 5",
        ),
        pytest.param((5, 5), 20, [(10, 15, 5)], numbers(range(1, 21)), id="limits that keep all"),
        pytest.param(
            (5, 5), 20, [(15, 0, 0), (10, 0, 5)], numbers(range(1, 21)), id="two nodes, all stay"
        ),
        pytest.param((-1, -1), 1, [(1, 0, 0)], None, id="unlimited"),
        pytest.param((1, -1), 5, [(1, 0, 0)], None, id="successful ones unlimited"),
        pytest.param((-1, 1), 5, [(1, 0, 0)], None, id="failed ones unlimited, a node behind"),
        pytest.param((-1, 1), 5, [(5, 0, 0)], {5}, id="failed ones unlimited, no node behind"),
    ],
)
def test_limits_keep_the_same_revisions_as_the_reference(
    limits: tuple[int, int],
    latest: int,
    nodes: list[tuple[int, int, int]],
    expected: set[int] | None,
) -> None:
    entries = [
        NodeStatus(f"n{index}", current=current, target=target, failed_revision=failed)
        for index, (current, target, failed) in enumerate(nodes)
    ]
    assert within_limits(entries, latest, *limits) == expected


# --- added ----------------------------------------------------------------------------------------


def test_incomplete_newer_revisions_stay() -> None:
    history = [*(revision(n) for n in range(1, 5)), revision(5, "", ready=False)]
    assert stay(history, NodeStatus("a", current=4)) == {3, 4, 5}


def test_a_revision_to_fall_back_to_always_stays() -> None:
    """The limit is one, and that one could begin to crash."""
    history = [revision(1), revision(2, FAILED), revision(3, REFUSED), revision(4)]
    assert stay(history, NodeStatus("a", current=4)) == {1, 4}


def test_the_revision_of_a_running_scheduler_stays() -> None:
    history = [revision(n) for n in range(1, 9)]
    assert 3 in stay(history, NodeStatus("a", current=8), pods=(operand("a", 3),))


@pytest.mark.parametrize(("stage", "kept"), [(Stage.PENDING, True), (Stage.DONE, False)])
def test_an_installer_that_has_not_ended_keeps_its_revision(stage: Stage, kept: bool) -> None:
    history = [revision(n) for n in range(1, 9)]
    found = stay(history, NodeStatus("a", current=8), installers=(installer("a", 3, stage),))
    assert (3 in found) is kept


def test_the_record_of_failed_content_stays_with_that_content() -> None:
    history = [
        revision(1, INSTALLED, "x"),
        revision(2, INSTALLED, "y"),
        revision(3, FAILED, "y"),
        *(revision(n, REFUSED) for n in range(4, 9)),
        revision(9),
    ]
    keep = stay(history, NodeStatus("a", current=9))
    assert keep == {1, 9}
    keep = stay(history, NodeStatus("a", current=9), pods=(operand("b", 2),))
    assert {2, 3} <= keep


def test_quarantined_content_keeps_the_revision_with_its_error() -> None:
    bad = revision(2, FAILED)
    history = [revision(1), bad, revision(3, quarantined=frozenset({bad.hash}))]
    assert stay(history, NodeStatus("a", current=3)) == {1, 2, 3}


def test_deletions_are_conditional_and_have_one_event() -> None:
    history = tuple(revision(n) for n in range(1, 6))
    actions = prune(step(history, NodeStatus("a", current=5)))
    assert [(type(a), a.obj["metadata"]["uid"]) for a in actions] == [
        (Delete, "uid-1"),
        (Delete, "uid-2"),
        (Delete, "uid-3"),
    ]
    (event,) = [event for action in actions for event in action.events]
    assert event.message == "Deleting revisions 1, 2, 3: no longer needed"


@pytest.mark.parametrize(("revisions", "pruned"), [(23, 0), (24, 21)])
def test_pruning_waits_for_a_rollout_unless_too_many_revisions_exist(
    revisions: int, pruned: int
) -> None:
    history = tuple(revision(n) for n in range(1, revisions + 1))
    status = NodeStatus("a", current=revisions - 1, target=revisions)
    assert len(prune(step(history, status))) == pruned


def test_nothing_is_deleted_without_known_nodes() -> None:
    history = tuple(revision(n) for n in range(1, 9))
    assert prune(step(history)) == ()


_outcomes = st.sampled_from([INSTALLED, REFUSED, FAILED, names.OUTCOME_SUPERSEDED, ""])


@given(
    outcomes=st.lists(st.tuples(_outcomes, st.sampled_from("abc")), min_size=1, max_size=12),
    current=st.integers(0, 12),
    limits=st.tuples(st.integers(-1, 3), st.integers(-1, 3)),
)
def test_pruning_never_changes_the_fallback_of_a_node(
    outcomes: list[tuple[str, str]], current: int, limits: tuple[int, int]
) -> None:
    history = tuple(revision(n, o, text) for n, (o, text) in enumerate(outcomes, start=1))
    current = min(current, len(history))
    keep = stay(history, NodeStatus("a", current=current), limits=limits)
    left = tuple(r for r in history if r.number in keep)
    for before in (current, len(history) + 1):
        good, still_good = last_good(history, before), last_good(left, before)
        assert (good and good.number) == (still_good and still_good.number)
    again = stay(left, NodeStatus("a", current=current), limits=limits)
    assert again == keep  # one pass does it all
