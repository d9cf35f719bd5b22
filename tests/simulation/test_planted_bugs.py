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
from kube_scheduler_operator.controlplane.revision import revise
from kube_scheduler_operator.controlplane.revision.history import Revision
from kube_scheduler_operator.controlplane.rollout import observe, outcome, prune, step
from kube_scheduler_operator.controlplane.rollout.installer_pods import Installer
from kube_scheduler_operator.engine.executor import Executor
from kube_scheduler_operator.model import api_outage
from kube_scheduler_operator.model.plan import Create, Plan, Replace

from . import operator as process
from .histories import play

HISTORIES = 200
"""So many histories must be enough to notice a bug; most are noticed within ten."""

Patch = pytest.MonkeyPatch


def ready_comes_first(patch: Patch) -> None:
    """A revision is called ready before its copies are there."""
    original = revise.make_copies

    def later(snapshot: Any, revision: Revision, content: Any) -> Any:
        return original(snapshot, revision, content) if revision.ready else ()

    patch.setattr(revise, "make_copies", later)


def writes_are_unconditional(patch: Patch) -> None:
    """The resourceVersion of what was read is left out: the last writer wins."""
    original = Executor._perform

    async def careless(self: Executor, action: Any) -> bool:
        if isinstance(action, Replace):
            metadata = {**action.obj["metadata"]}
            metadata.pop("resourceVersion", None)
            action = replace(action, obj={**action.obj, "metadata": metadata})
        return await original(self, action)

    patch.setattr(Executor, "_perform", careless)


def the_target_is_forgotten(patch: Patch) -> None:
    """Two nodes are on their way at once: nobody looks whether an installer still works."""
    patch.setattr(Installer, "busy", property(lambda self: False))
    patch.setattr(step, "_said_yes", lambda *_: True)


def nobody_asks_the_others(patch: Patch) -> None:
    """The first node moves although another one has not said yes."""
    patch.setattr(step, "_said_yes", lambda *_: True)


def failures_are_forgotten(patch: Patch) -> None:
    """Content that failed is tried again and again."""
    patch.setattr(revise, "_installable", lambda snapshot, ready, running: ready[-1])


def nobody_waits_between_attempts(patch: Patch) -> None:
    """The back-off has overflowed: a failing attempt is followed by the next one at once."""
    patch.setattr(Rollout, "delay", lambda self, attempt: -1.0)


def the_installers_word_is_enough(patch: Patch) -> None:
    """`currentRevision` is written as soon as the go-ahead is given."""

    def believe(snapshot: Any, revised: Any, out: Any, entry: Any, found: Any, *_: Any) -> Any:
        return replace(entry.forgiven(), current=max(entry.current, entry.target), target=0)

    patch.setattr(step, "finished", believe)
    patch.setattr(step, "wait", lambda s, o, e, f: believe(s, None, o, e, f))


def pruning_looks_at_numbers_only(patch: Patch) -> None:
    """Old revisions go although a scheduler runs them."""
    patch.setattr(prune, "_in_use", lambda *_: set())
    patch.setattr(prune, "within_limits", lambda *_: frozenset())


def numbers_begin_anew(patch: Patch) -> None:
    """A revision gets the number of one that was deleted."""
    original = process.reconcile

    def reuse(snapshot: Any) -> Plan:
        plan = original(snapshot)
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


def the_dead_get_their_turn(patch: Patch) -> None:
    """Nobody looks whether a node is Ready."""
    patch.setattr(observe, "readiness", lambda node: (True, ""))


def outages_are_blamed_on_revisions(patch: Patch) -> None:
    """A scheduler that ends has itself to blame, whatever the API server did."""
    long_ago = timedelta(days=1)
    for module in (api_outage, outcome):
        patch.setattr(module, "accountable_since", lambda snapshot: snapshot.now - long_ago)


LIKELY = {numbers_begin_anew: 1, the_dead_get_their_turn: 170}
"""Where to begin with what is rare, to save time."""


@pytest.mark.parametrize(
    ("bug", "caught_by"),
    [
        (writes_are_unconditional, "every write is conditional"),
        (ready_comes_first, "a revision is ready only when it is complete"),
        (numbers_begin_anew, ""),
        (the_dead_get_their_turn, "a node that is not Ready is skipped"),
        (the_target_is_forgotten, ""),
        (nobody_asks_the_others, "all say yes before one moves"),
        (failures_are_forgotten, ""),
        (nobody_waits_between_attempts, "attempts are not made in a hurry"),
        (the_installers_word_is_enough, "currentRevision means healthy"),
        (outages_are_blamed_on_revisions, "only what is bad is blamed"),
        (pruning_looks_at_numbers_only, "only what nobody needs is pruned"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.timeout(600)
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
