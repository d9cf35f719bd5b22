"""What several processes wrote down is added up, and nothing of it gets lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from pathlib import Path

from ..e2e.audit import Record, Right
from ..e2e.ledger import Ledger
from ..e2e.remains import Search


def right(verb: str) -> Right:
    return Right("ours:operator", "", "", "pods", verb)


def ledger(name: str) -> Ledger:
    audit = Record([name], 1, {right(f"use {name}")}, {right(f"try {name}")}, {right("get")})
    search = Search(
        [name], 2, Counter({"logs": 3, name: 4}), 5, [f"found {name}"], [f"unread {name}"]
    )
    return Ledger(audit, search, {f"test_{name}.py"})


def test_it_is_the_sum_of_all_processes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ledger(name).save(tmp_path / "new" / name)
    total = Ledger()
    for name in ("a", "b"):
        total.take(tmp_path / "new" / name)
    assert total.files == {"test_a.py", "test_b.py"}
    assert total.audit == Record(
        ["a", "b"],
        2,
        {right("use a"), right("use b")},
        {right("try a"), right("try b")},
        {right("get")},
    )
    assert total.search == Search(
        ["a", "b"],
        4,
        Counter({"logs": 6, "a": 4, "b": 4}),
        10,
        ["found a", "found b"],
        ["unread a", "unread b"],
    )


def test_a_new_attribute_is_not_forgotten() -> None:
    """A new attribute must be added to merge and to the test above."""
    assert len(fields(Record)) == 5
    assert len(fields(Search)) == 7, "with the followers, which end with their process"
