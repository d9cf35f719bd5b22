"""Which revisions are pruned: the reference's rows (prune controller, TestSync) and ours."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.controlplane.revision.content import Content
from kube_scheduler_operator.controlplane.revision.history import Revision, last_good
from kube_scheduler_operator.controlplane.rollout.installer_pods import Installer, Stage
from kube_scheduler_operator.controlplane.rollout.node_statuses import Entry
from kube_scheduler_operator.controlplane.rollout.prune import protected, prune, within_limits
from kube_scheduler_operator.controlplane.rollout.result import Stepped
from kube_scheduler_operator.model.operand_pods import Operand, read
from kube_scheduler_operator.model.plan import Delete
from kube_scheduler_operator.model.snapshot import Snapshot
from kube_scheduler_operator.programs.node.result import Result, Verdict

INSTALLED, REFUSED, FAILED = names.OUTCOME_INSTALLED, names.OUTCOME_REFUSED, names.OUTCOME_FAILED


def revision(number: int, outcome: str = INSTALLED, text: str = "", **fields: Any) -> Revision:
    content = Content({name: {"key": text or f"of {number}"} for name in (names.CONFIG, names.POD)})
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


def operand(node: str, number: int) -> Operand:
    labels = {names.REVISION_LABEL: str(number)}
    return read({"metadata": {"name": node, "labels": labels}, "spec": {"nodeName": node}})


def installer(node: str, number: int, stage: Stage) -> Installer:
    result = Result(Verdict.INSTALLED, number, node, number) if stage is Stage.DONE else None
    return Installer(
        name="i",
        node=node,
        revision=number,
        stage=stage,
        message="",
        problem="",
        waiting=None,
        result=result,
        go_ahead=True,
        swapping=False,
        created=None,
        staged=False,
        ended=None,
        leaving=False,
        pod={},
    )


def cluster(failed: int = 0, succeeded: int = 0) -> Snapshot:
    spec = {"failedRevisionLimit": failed, "succeededRevisionLimit": succeeded}
    kubescheduler = {"metadata": {"name": "cluster"}, "spec": spec}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Snapshot(now, KUBEADM, Settings(), kubescheduler=kubescheduler, nodes={"a": {}})


def stay(
    history: Iterable[Revision],
    *entries: Entry,
    limits: tuple[int, int] = (1, 1),
    pods: tuple[Operand, ...] = (),
    installers: tuple[Installer, ...] = (),
) -> set[int]:
    stepped = Stepped(
        entries=entries, operands={pod.node: pod for pod in pods}, installers=installers
    )
    return set(protected(cluster(*limits), tuple(history), stepped))


def numbers(*ranges: range | int) -> set[int]:
    return {n for r in ranges for n in ([r] if isinstance(r, int) else r)}


# --- the limits (theirs: TestSync; a node's entry is current, target, last failed) ----------------


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
        pytest.param((5, 5), 20, [(10, 15, 5)], numbers(range(1, 21)), id="so many that all stay"),
        pytest.param(
            (5, 5), 20, [(15, 0, 0), (10, 0, 5)], numbers(range(1, 21)), id="two nodes, all stay"
        ),
        pytest.param((-1, -1), 1, [(1, 0, 0)], None, id="unlimited"),
        pytest.param((1, -1), 5, [(1, 0, 0)], None, id="successful ones unlimited"),
        pytest.param((-1, 1), 5, [(1, 0, 0)], None, id="failed ones unlimited, a node behind"),
        pytest.param((-1, 1), 5, [(5, 0, 0)], {5}, id="failed ones unlimited, no node behind"),
    ],
)
def test_limits_keep_what_the_reference_keeps(
    limits: tuple[int, int],
    latest: int,
    nodes: list[tuple[int, int, int]],
    expected: set[int] | None,
) -> None:
    entries = [
        Entry(f"n{index}", current=current, target=target, failed_revision=failed)
        for index, (current, target, failed) in enumerate(nodes)
    ]
    assert within_limits(entries, latest, *limits) == expected


# --- ours -----------------------------------------------------------------------------------------


def test_what_is_newer_than_the_latest_complete_revision_stays() -> None:
    history = [*(revision(n) for n in range(1, 5)), revision(5, "", ready=False)]
    assert stay(history, Entry("a", current=4)) == {3, 4, 5}


def test_there_is_always_something_to_go_back_to() -> None:
    """The limit says one, and that one could begin to crash."""
    history = [revision(1), revision(2, FAILED), revision(3, REFUSED), revision(4)]
    assert stay(history, Entry("a", current=4)) == {1, 4}


def test_what_a_scheduler_evidently_runs_stays_whatever_its_entry_says() -> None:
    history = [revision(n) for n in range(1, 9)]
    assert 3 in stay(history, Entry("a", current=8), pods=(operand("a", 3),))


@pytest.mark.parametrize(("stage", "kept"), [(Stage.PENDING, True), (Stage.DONE, False)])
def test_an_installer_that_has_not_ended_keeps_its_revision(stage: Stage, kept: bool) -> None:
    history = [revision(n) for n in range(1, 9)]
    found = stay(history, Entry("a", current=8), installers=(installer("a", 3, stage),))
    assert (3 in found) is kept


def test_that_content_failed_is_remembered_as_long_as_it_could_be_taken_for_good() -> None:
    history = [
        revision(1, INSTALLED, "x"),
        revision(2, INSTALLED, "y"),
        revision(3, FAILED, "y"),
        *(revision(n, REFUSED) for n in range(4, 9)),
        revision(9),
    ]
    keep = stay(history, Entry("a", current=9))
    assert keep == {1, 9}
    keep = stay(history, Entry("a", current=9), pods=(operand("b", 2),))
    assert {2, 3} <= keep


def test_what_is_quarantined_keeps_the_revision_that_says_why() -> None:
    bad = revision(2, FAILED)
    history = [revision(1), bad, revision(3, quarantined=frozenset({bad.hash}))]
    assert stay(history, Entry("a", current=3)) == {1, 2, 3}


def test_deletions_name_what_was_read_and_say_so_once() -> None:
    history = tuple(revision(n) for n in range(1, 6))
    stepped = Stepped(entries=(Entry("a", current=5),))
    actions = prune(cluster(1, 1), history, stepped)
    assert [(type(a), a.obj["metadata"]["uid"]) for a in actions] == [
        (Delete, "uid-1"),
        (Delete, "uid-2"),
        (Delete, "uid-3"),
    ]
    (event,) = [event for action in actions for event in action.events]
    assert event.message == "Deleting revisions 1, 2, 3: nothing refers to them any more"


@pytest.mark.parametrize(("revisions", "pruned"), [(23, 0), (24, 21)])
def test_a_rollout_comes_first_unless_too_many_wait(revisions: int, pruned: int) -> None:
    history = tuple(revision(n) for n in range(1, revisions + 1))
    stepped = Stepped(entries=(Entry("a", current=revisions - 1, target=revisions),))
    assert len(prune(cluster(1, 1), history, stepped)) == pruned


def test_nothing_is_deleted_while_no_node_is_known() -> None:
    assert prune(cluster(1, 1), tuple(revision(n) for n in range(1, 9)), Stepped()) == ()


_outcomes = st.sampled_from([INSTALLED, REFUSED, FAILED, names.OUTCOME_SUPERSEDED, ""])


@given(
    outcomes=st.lists(st.tuples(_outcomes, st.sampled_from("abc")), min_size=1, max_size=12),
    current=st.integers(0, 12),
    limits=st.tuples(st.integers(-1, 3), st.integers(-1, 3)),
)
def test_pruning_never_changes_what_a_node_would_go_back_to(
    outcomes: list[tuple[str, str]], current: int, limits: tuple[int, int]
) -> None:
    history = tuple(revision(n, o, text) for n, (o, text) in enumerate(outcomes, start=1))
    current = min(current, len(history))
    keep = stay(history, Entry("a", current=current), limits=limits)
    left = tuple(r for r in history if r.number in keep)
    for before in (current, len(history) + 1):
        good, still_good = last_good(history, before), last_good(left, before)
        assert (good and good.number) == (still_good and still_good.number)
    again = stay(left, Entry("a", current=current), limits=limits)
    assert again == keep  # one pass does it all
