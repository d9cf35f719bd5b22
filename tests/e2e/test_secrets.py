"""No log, object, metric or file of any end-to-end test contains a key, token or Secret value."""

from __future__ import annotations

import pytest

from .ledger import Ledger

pytestmark = pytest.mark.audit


def test_everything_was_searched(ledger: Ledger) -> None:
    assert ledger.search.clusters
    assert ledger.search.secrets > 0
    assert sorted(ledger.search.places) == ["files and screens", "logs", "objects", "scrapes"]
    assert ledger.search.unread == []


def test_no_secret_is_outside_its_place(ledger: Ledger) -> None:
    assert ledger.search.found == []
