"""The journal of a swap, which installers of other versions read as well."""

from __future__ import annotations

import json

import pytest

from kube_scheduler_operator.node.static_pod.layout import Journal, Phase

JOURNAL = Journal(
    revision=7,
    retry=1,
    phase=Phase.ROLLBACK,
    reason="OperandFailed",
    last_error="address already in use",
    boot_id="b",
    placed=1.5,
    steps={"remove": 0.2},
)


def test_a_journal_is_read_as_it_was_written() -> None:
    assert Journal.parse(JOURNAL.serialise()) == JOURNAL


def test_the_keys_in_the_file_do_not_change() -> None:
    assert set(json.loads(JOURNAL.serialise())) == {
        "away_since",
        "boot_id",
        "last_words",  # words: allow last words - the key in the file
        "phase",
        "placed",
        "placed_at",
        "reason",
        "retry",
        "revision",
        "steps",
    }


@pytest.mark.parametrize("data", [None, b"", b"[]", b"{}", b'{"phase": "sideways"}'])
def test_an_invalid_journal_is_ignored(data: bytes | None) -> None:
    assert Journal.parse(data) is None
