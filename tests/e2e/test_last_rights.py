"""What all tests before did at the API: nothing was refused, and no right is there for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import AUDIT, retire_all

CONFLICT = "test_a_plan_that_is_out_of_date_ends_and_what_is_there_is_read"
SELDOM = {
    **{(written, "get"): CONFLICT for written in (
        "clusteroperators", "clusterrolebindings", "kubeschedulers", "poddisruptionbudgets",
        "rolebindings", "roles", "schedulerprofiles", "secondaryschedulers", "secrets",
        "serviceaccounts", "services",
    )},
    ("poddisruptionbudgets", "delete"): "test_all_but_one_stay",
    ("poddisruptionbudgets", "update"): "test_all_but_one_stay",
    ("secrets", "delete"): "test_a_secret_of_another_type_is_made_again",
    ("serviceaccounts", "update"): "test_a_token_for_the_installer_is_taken_away_again",
}  # fmt: skip
"""Rights whose use needs an accident that no test has on a real node, and the test that has it."""


@pytest.fixture(scope="module", autouse=True)
def _everything_is_over() -> None:
    retire_all()


def test_what_is_seldom_has_a_test() -> None:
    texts = [path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert [n for n in SELDOM.values() if not any(f"def {n}(" in text for text in texts)] == []


@pytest.mark.core
def test_nothing_was_refused() -> None:
    assert AUDIT.requests > 0
    assert [str(right) for right in sorted(AUDIT.refused)] == []


def test_no_right_is_there_for_nothing(request: pytest.FixtureRequest) -> None:
    unused = [right for right in AUDIT.unused() if (right.resource, right.verb) not in SELDOM]
    ran = {item.path.name for item in request.session.items}
    missing = {path.name for path in Path(__file__).parent.glob("test_*.py")} - ran
    if missing:
        pytest.skip(f"this is about all end-to-end tests, and without {sorted(missing)}")
    assert [str(right) for right in unused] == []
