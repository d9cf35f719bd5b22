"""What all tests before left behind: no key, no token and no other value of a Secret is in it."""

from __future__ import annotations

import pytest

from .conftest import SEARCH, retire_all


@pytest.fixture(scope="module", autouse=True)
def _everything_is_over() -> None:
    retire_all()


def test_everything_was_searched() -> None:
    assert SEARCH.clusters
    assert SEARCH.secrets > 0
    assert sorted(SEARCH.places) == ["files and screens", "logs", "objects", "scrapes"]
    assert SEARCH.unread == []


def test_no_secret_has_left_its_place() -> None:
    assert SEARCH.found == []
