"""Tests of the tests: classic bugs of operators, planted one at a time, and each is caught.

What catches a bug is the invariant whose name is expected here, or that a history does not end as
it must.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base.settings import Rollout
from kube_scheduler_operator.kube.store import Known
from kube_scheduler_operator.operator.controlplane.revision import revise
from kube_scheduler_operator.operator.controlplane.revision.history import Revision, make_copies
from kube_scheduler_operator.operator.controlplane.revision.proof import known_numbers
from kube_scheduler_operator.operator.controlplane.rollout import (
    drift,
    observe,
    outcome,
    prune,
    roll_out,
)
from kube_scheduler_operator.operator.controlplane.rollout.installer_pods import Installer
from kube_scheduler_operator.operator.engine.executor import Executor
from kube_scheduler_operator.operator.engine.node_clocks import NodeClocks
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.engine.write_guard import WriteGuard
from kube_scheduler_operator.operator.model import api_outage, operand_pods
from kube_scheduler_operator.operator.model.plan import Create, Plan, Replace

from . import operator as process
from .histories import play
from .troubles import Troubles

HISTORIES = 200
"""The histories within which a bug must be found; most are found within ten."""

Patch = pytest.MonkeyPatch


def ready_comes_first(patch: Patch) -> None:
    """A revision is called ready before its copies are there."""

    def later(snapshot: Any, revision: Revision, content: Any) -> Any:
        return make_copies(snapshot, revision, content) if revision.ready else ()

    patch.setattr(revise, "make_copies", later)


def writes_are_unconditional(patch: Patch) -> None:
    """The resourceVersion of what was read is left out: the last writer wins."""
    original = Executor._perform

    async def careless(self: Executor, action: Any, recreate: bool) -> Any:
        if isinstance(action, Replace):
            metadata = {**action.obj["metadata"]}
            metadata.pop("resourceVersion", None)
            action = replace(action, obj={**action.obj, "metadata": metadata})
        return await original(self, action, recreate)

    patch.setattr(Executor, "_perform", careless)


def the_target_is_forgotten(patch: Patch) -> None:
    """Two nodes move at once: a running installer is ignored."""
    patch.setattr(Installer, "may_swap", property(lambda self: False))
    patch.setattr(roll_out, "_is_staged", lambda *_: True)


def one_node_does_not_wait_for_the_others(patch: Patch) -> None:
    """The first node moves before all have staged the revision."""
    patch.setattr(roll_out, "_is_staged", lambda *_: True)


def failures_are_forgotten(patch: Patch) -> None:
    """Content that failed is tried again and again."""
    patch.setattr(
        revise._Situation, "installable", property(lambda self: self.newest if self.whole else None)
    )


def attempts_have_no_back_off(patch: Patch) -> None:
    """The back-off has overflowed: a failing attempt is followed by the next one at once."""
    patch.setattr(Rollout, "delay", lambda self, attempt: -1.0)


def the_installers_word_is_enough(patch: Patch) -> None:
    """`currentRevision` is written together with the permission to roll out."""

    def assume(step: Any, status: Any) -> Any:
        current = max(status.current, status.target)
        return step.with_status(replace(status.without_failures(), current=current, target=0))

    patch.setattr(roll_out, "finished", lambda step, status, _i: assume(step, status))
    patch.setattr(roll_out, "wait", lambda step, status, _i: assume(step, status))


def pruning_looks_at_numbers_only(patch: Patch) -> None:
    """Old revisions go although a scheduler runs them."""
    patch.setattr(prune, "_in_use", lambda *_: set())
    patch.setattr(prune, "within_limits", lambda *_: frozenset())


def numbers_start_again_at_one(patch: Patch) -> None:
    """A revision gets the number of one that was deleted."""

    def reuse(snapshot: Any) -> Plan:
        plan = reconcile(snapshot)
        return replace(plan, actions=tuple(_renumbered(action) for action in plan.actions))

    def _renumbered(action: Any) -> Any:
        name = action.obj["metadata"]["name"]
        if not isinstance(action, Create) or not name.startswith("revision-status-"):
            return action
        number = max(int(name.rpartition("-")[2]) - 2, 1)
        metadata = {**action.obj["metadata"], "name": f"revision-status-{number}"}
        data = {**action.obj["data"], "revision": str(number)}
        return replace(action, obj={**action.obj, "metadata": metadata, "data": data})

    patch.setattr(process, "reconcile", reuse)


def nodes_that_are_not_ready_get_permission(patch: Patch) -> None:
    """Nodes that are not Ready are not skipped."""
    patch.setattr(observe, "readiness", lambda node: (True, ""))


def outages_count_as_failed_revisions(patch: Patch) -> None:
    """A scheduler that ends counts as failed, even without an API server."""
    long_ago = timedelta(days=1)
    for module in (api_outage, outcome):
        patch.setattr(module, "accountable_since", lambda snapshot: snapshot.now - long_ago)


def hand_edits_are_overlooked(patch: Patch) -> None:
    """What a node runs is known by its label alone."""
    patch.setattr(drift, "hand_edits", lambda *_: ())


def a_label_makes_a_number(patch: Patch) -> None:
    """The label of a mirror pod counts as a revision number."""

    def gullible(snapshot: Any, disks: Any) -> Any:
        numbers = known_numbers(snapshot, disks)
        shown = [operand_pods.read(pod).revision for pod in snapshot.operand_pods.values()]
        return replace(numbers, newest_on_disk=max([numbers.newest_on_disk, *shown]))

    patch.setattr(revise, "known_numbers", gullible)


def versions_are_trusted(patch: Patch) -> None:
    """A restore of etcd is not recognized: not by the Lease, an answer or a list."""
    patch.setattr(process.OperatorProcess, "start_over", lambda self, **_: None)
    patch.setattr(Known, "contradiction", lambda self, obj: "")


def writes_are_repeated_at_once(patch: Patch) -> None:
    """What the API server drops, or another client reverts, is written again without a delay."""
    patch.setattr(WriteGuard, "allows", lambda self, action, stored: True)


def clocks_of_nodes_are_trusted(patch: Patch) -> None:
    """Times that kubelets write are compared with the operator's clock."""
    patch.setattr(NodeClocks, "differences", property(lambda self: {}))


@pytest.mark.parametrize(
    "bug",
    [versions_are_trusted, writes_are_repeated_at_once, clocks_of_nodes_are_trusted],
    ids=lambda bug: bug.__name__,
)
@pytest.mark.timeout(1800)
def test_a_planted_bug_is_caught_among_troubles(
    bug: Callable[[Patch], None],
    monkeypatch: Patch,
    record_property: Callable[[str, object], None],
) -> None:
    bug(monkeypatch)
    for seed in range(HISTORIES):
        try:
            Troubles(seed).play()
        except AssertionError as error:
            print(f"{bug.__name__}: history {seed}: {str(error).splitlines()[0]}")
            record_property("planted bugs caught", 1)
            return
    raise AssertionError(f"{HISTORIES} histories did not notice it")


LIKELY: dict[Callable[[Patch], None], int] = {
    numbers_start_again_at_one: 1,
    nodes_that_are_not_ready_get_permission: 170,
}
"""Where to begin with what is rare, to save time."""


@pytest.mark.parametrize(
    ("bug", "caught_by"),
    [
        (writes_are_unconditional, "every write is conditional"),
        (ready_comes_first, "a revision is ready only when it is complete"),
        (numbers_start_again_at_one, ""),
        (nodes_that_are_not_ready_get_permission, "a node that is not Ready is skipped"),
        (the_target_is_forgotten, ""),
        (one_node_does_not_wait_for_the_others, "all nodes agree before one moves"),
        (failures_are_forgotten, ""),
        (attempts_have_no_back_off, "attempts are not made in a hurry"),
        (the_installers_word_is_enough, "currentRevision means healthy"),
        (outages_count_as_failed_revisions, "only a bad revision is marked as failed"),
        (pruning_looks_at_numbers_only, "only unused revisions are pruned"),
        (hand_edits_are_overlooked, "every hand edit is put back"),
        (a_label_makes_a_number, "revisions have no gaps"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.timeout(1800)
def test_a_planted_bug_is_caught(
    bug: Callable[[Patch], None],
    caught_by: str,
    monkeypatch: Patch,
    record_property: Callable[[str, object], None],
) -> None:
    bug(monkeypatch)
    first = LIKELY.get(bug, 0)
    for seed in range(first, first + HISTORIES):
        found = noticed(seed)
        if found:
            print(f"{bug.__name__}: history {seed}: {found.splitlines()[0]}")
            assert caught_by in found
            record_property("planted bugs caught", 1)
            return
    raise AssertionError(f"{HISTORIES} histories did not notice it")


def noticed(seed: int) -> str:
    """What is wrong in a history; empty if nothing is."""
    try:
        play(seed)
    except AssertionError as error:
        return str(error.__cause__)
    return ""
