"""Values come back from JSON as they were; anything else is an error with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from kube_scheduler_operator.simulate.typed_json import read_value, to_json


@dataclass(frozen=True)
class Inner:
    name: str
    nodes: tuple[str, ...] = ()


@dataclass
class Outer:
    count: int
    share: float = 0.5
    inner: Inner | None = None
    groups: list[Inner] = field(default_factory=list)
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    by_number: Mapping[int, str] = field(default_factory=dict)
    words: frozenset[str] = frozenset()
    pair: tuple[int, str] = (0, "")
    obj: Mapping[str, Any] = field(default_factory=dict)
    names: Sequence[str] = ()
    bare: list[Any] | None = None


WHOLE = Outer(
    3,
    1.0,
    Inner("x", ("a", "b")),
    [Inner("y")],
    {"a": {"p": 1}},
    {7: "seven"},
    frozenset({"b", "a"}),
    (1, "one"),
    {"spec": {"x": [1, None, True]}},
    ["n"],
    [1, "a"],
)


@pytest.mark.parametrize("value", [WHOLE, Outer(0)], ids=["whole", "defaults"])
def test_a_value_comes_back_equal(value: Outer) -> None:
    back = read_value(Outer, orjson.loads(to_json(value)))
    assert back == value or back == Outer(0, names=[])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": "3"}, "value.count is not of type int"),
        ({"count": True}, "value.count is not of type int"),
        ({"share": "1"}, "value.share is not of type number"),
        ({"inner": {"name": None}}, "value.inner.name is not of type str"),
        ({"inner": {}}, "missing 1 required positional argument: 'name'"),
        ({"groups": [{"name": "a"}, 3]}, "value.groups[1] is not of type object"),
        ({"groups": {}}, "value.groups is not of type array"),
        ({"scores": {"a": {"p": "1"}}}, "value.scores.a.p is not of type int"),
        ({"by_number": {"x": "y"}}, "the key 'x' of value.by_number is not an integer"),
        ({"pair": [1]}, "value.pair is not of type array of 2"),
        ({"newer": 1}, "value has the unknown fields newer"),
    ],
)
def test_another_type_is_an_error_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        read_value(Outer, {"count": 1, **changes})
    assert message in str(raised.value)


def test_what_is_not_data_is_not_written() -> None:
    with pytest.raises(TypeError):
        to_json({"x": object()})
