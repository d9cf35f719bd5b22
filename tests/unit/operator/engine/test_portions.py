"""Long lists in portions: what was read before stays, and what is gone goes."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from kube_scheduler_operator.operator.engine.polling import KEPT, Portions


class Item(NamedTuple):
    number: int
    namespace: str = "n"


A, B, C = Item(1), Item(2), Item(3)


def test_a_value_stays_until_the_list_was_read_without_it() -> None:
    portions: Portions[str, Item] = Portions()
    portions.take({"a": A}, "more")
    portions.take({"b": B}, "")
    assert (portions.values, portions.token, portions.unread) == ((A, B), "", False)
    portions.take({}, "more")
    assert portions.keys == {"a", "b"}
    portions.take({"b": C}, "")
    assert portions.values == (C,)


def test_a_list_is_unread_until_its_end_and_after_a_lost_token() -> None:
    portions: Portions[str, Item] = Portions()
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
    portions: Portions[str, Item] = Portions()
    portions.take({"a": A}, "more")
    portions.lost()
    portions.take({"b": B}, "more")
    assert portions.values == (A, B)
    portions.lost()
    assert portions.values == (B,)


def test_the_number_of_values_is_bounded() -> None:
    portions: Portions[int, Item] = Portions()
    for first in range(0, 3 * KEPT, KEPT // 2):
        portions.take({number: Item(number) for number in range(first, first + KEPT // 2)}, "more")
        assert len(portions.values) <= KEPT
    assert Item(3 * KEPT - 1) in portions.values


def test_a_namespace_displaces_only_its_own_values() -> None:
    portions: Portions[Item, Item] = Portions()
    for namespace, count in (("shop", 3), ("atk", KEPT + 50), ("team", 2)):
        portions.take({Item(n, namespace): Item(n, namespace) for n in range(count)}, "more")
    kept = Counter(item.namespace for item in portions.values)
    assert kept == {"shop": 3, "team": 2, "atk": KEPT - 5}


def test_another_selector_begins_again() -> None:
    portions: Portions[str, Item] = Portions()
    portions.select("x")
    portions.take({}, "more")
    portions.select("x")
    assert portions.token == "more"
    portions.select("y")
    assert portions.token == ""
