"""Node statuses: read, matched with the nodes, and written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.operator.controlplane.rollout.node_statuses import (
    NodeStatus,
    match_nodes,
    read_node_status,
    readiness,
    write_node_status,
)

from .....builders import node

RAW = {
    "nodeName": "a",
    "nodeUID": "u",
    "currentRevision": 3,
    "targetRevision": 4,
    "lastFailedRevision": 4,
    "lastFailedCount": 2,
    "lastFallbackCount": 1,
    "lastFailedTime": "2026-01-01T00:00:00Z",
    "lastFailedReason": "InstallerFailed",
    "lastFailedRevisionErrors": ["boom"],
}


def test_unknown_fields_survive() -> None:
    assert write_node_status(read_node_status(RAW)) == RAW
    assert write_node_status(read_node_status({**RAW, "someDay": "new"})) == {
        **RAW,
        "someDay": "new",
    }


@given(
    st.fixed_dictionaries({}, optional={k: st.just(v) for k, v in RAW.items() if k != "nodeName"})
)
def test_reading_and_writing_are_inverse(raw: dict[str, Any]) -> None:
    entry = {"nodeName": "a", **raw}
    assert write_node_status(read_node_status(entry)) == entry


def test_a_current_revision_of_zero_is_kept_because_the_api_does_not_let_it_be_unset() -> None:
    raw = {"nodeName": "a", "currentRevision": 0, "targetRevision": 0}
    assert write_node_status(read_node_status(raw)) == {"nodeName": "a", "currentRevision": 0}
    entry = read_node_status(raw)
    assert entry.current == 0


def test_attempts_count_failures_of_the_target_only() -> None:
    assert read_node_status(RAW).attempts(4) == 3
    assert read_node_status(RAW).attempts(5) == 0


def test_failures_of_another_revision_begin_a_new_record() -> None:
    entry = NodeStatus("a", target=4).failed(4, "InstallerFailed", "x", "t1", fallback=False)
    entry = entry.failed(4, "OperandFailedFallback", "y", "t2", fallback=True)
    assert (entry.failed_count, entry.fallback_count, entry.failed_errors) == (1, 1, ("y",))
    entry = entry.failed(5, "InstallerFailed", "z", "t3", fallback=False)
    assert (entry.failed_revision, entry.failed_count, entry.fallback_count) == (5, 1, 0)
    assert write_node_status(entry.without_failures()) == {"nodeName": "a", "targetRevision": 4}


@pytest.mark.parametrize(
    ("entries", "nodes", "expected"),
    [
        pytest.param([], {"b": "2", "a": "1"}, [("a", "1", 0), ("b", "2", 0)], id="new, by name"),
        pytest.param(
            [("b", "2", 3)], {"b": "2", "a": "1"}, [("b", "2", 3), ("a", "1", 0)], id="known first"
        ),
        pytest.param([("a", "1", 3), ("b", "2", 3)], {"b": "2"}, [("b", "2", 3)], id="removed"),
        pytest.param([("a", "", 3)], {"a": "1"}, [("a", "1", 3)], id="uid learned"),
        pytest.param(
            [("a", "1", 3), ("b", "2", 3)],
            {"a": "9", "b": "2"},
            [("b", "2", 3)],
            id="replaced: it goes now and comes in the next pass",
        ),
    ],
)
def test_node_statuses_follow_the_nodes(
    entries: list[tuple[str, str, int]], nodes: dict[str, str], expected: list[tuple[str, str, int]]
) -> None:
    before = [NodeStatus(name, uid, current) for name, uid, current in entries]
    after = match_nodes(before, {name: node(name, uid=uid) for name, uid in nodes.items()})
    assert [(entry.node, entry.uid, entry.current) for entry in after] == expected


@pytest.mark.parametrize(
    ("conditions", "ready", "why"),
    [
        ([{"type": "Ready", "status": "True"}], True, ""),
        (
            [
                {
                    "type": "Ready",
                    "status": "Unknown",
                    "lastTransitionTime": "t",
                    "reason": "R",
                    "message": "M",
                }
            ],
            False,
            'node "a" not ready since t because R (M)',
        ),
        ([], False, 'node "a" not ready, no Ready condition found in status block'),
        (
            [{"type": "MemoryPressure", "status": "True"}],
            False,
            'node "a" not ready, no Ready condition found in status block',
        ),
    ],
    ids=["ready", "unknown", "no conditions", "other conditions"],
)
def test_readiness(conditions: list[dict[str, Any]], ready: bool, why: str) -> None:
    assert readiness({**node("a"), "status": {"conditions": conditions}}) == (ready, why)


def test_a_current_revision_that_cannot_be_begins_a_new_element() -> None:
    # The API lets it neither decrease nor be unset.
    largest = read_node_status({"nodeName": "a", "currentRevision": 2**63 - 1})
    assert match_nodes((largest,), {"a": node("a")}) == ()
    assert [status.node for status in match_nodes((), {"a": node("a")})] == ["a"]


@pytest.mark.parametrize("key", ["targetRevision", "lastFailedRevision"])
def test_other_revisions_that_cannot_be_are_dropped(key: str) -> None:
    status = read_node_status({"nodeName": "a", "currentRevision": 3, key: 2**63 - 1})
    assert write_node_status(status) == {"nodeName": "a", "currentRevision": 3}
