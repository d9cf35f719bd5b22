"""What all tests before left behind: no key, no token and no other value of a Secret is in it."""

from __future__ import annotations

from .ledger import Ledger


def test_everything_was_searched(ledger: Ledger) -> None:
    assert ledger.search.clusters
    assert ledger.search.secrets > 0
    assert sorted(ledger.search.places) == ["files and screens", "logs", "objects", "scrapes"]
    assert ledger.search.unread == []


def test_no_secret_has_left_its_place(ledger: Ledger) -> None:
    assert ledger.search.found == []
