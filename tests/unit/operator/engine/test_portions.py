"""Long lists in portions: what was read before stays, and what is gone goes."""

from __future__ import annotations

from kube_scheduler_operator.operator.engine.polling import KEPT, Portions


def test_a_value_stays_until_the_list_was_read_without_it() -> None:
    portions: Portions[str, int] = Portions()
    portions.take({"a": 1}, "more")
    portions.take({"b": 2}, "")
    assert (portions.values, portions.token, portions.unread) == ((1, 2), "", False)
    portions.take({}, "more")
    assert portions.keys == {"a", "b"}
    portions.take({"b": 3}, "")
    assert portions.values == (3,)


def test_a_list_is_unread_until_its_end_and_after_a_lost_token() -> None:
    portions: Portions[str, int] = Portions()
    assert not portions.unread
    portions.take({}, "more")
    assert portions.unread
    portions.take({}, "")
    assert not portions.unread
    portions.take({}, "more")
    assert not portions.unread, "it was read to its end a moment ago"
    portions.lost()
    assert (portions.unread, portions.token) == (True, "")
    portions.take({}, "")
    assert not portions.unread


def test_values_of_lists_that_never_end_are_forgotten() -> None:
    portions: Portions[str, int] = Portions()
    portions.take({"a": 1}, "more")
    portions.lost()
    portions.take({"b": 2}, "more")
    assert portions.values == (1, 2)
    portions.lost()
    assert portions.values == (2,)


def test_the_number_of_values_is_bounded() -> None:
    portions: Portions[int, int] = Portions()
    for first in range(0, 3 * KEPT, KEPT // 2):
        portions.take({number: number for number in range(first, first + KEPT // 2)}, "more")
        assert len(portions.values) <= KEPT
    assert 3 * KEPT - 1 in portions.values


def test_another_selector_begins_again() -> None:
    portions: Portions[str, int] = Portions()
    portions.select("x")
    portions.take({}, "more")
    portions.select("x")
    assert portions.token == "more"
    portions.select("y")
    assert portions.token == ""
