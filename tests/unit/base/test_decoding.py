"""The decoder: what declarations accept, and the path and fix of every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import orjson
import pytest

from kube_scheduler_operator.base.decoding import (
    REFUSED,
    Converted,
    DecodeError,
    DecodingRun,
    FirstProblem,
    ListOf,
    MapOf,
    Number,
    String,
    decode,
)
from kube_scheduler_operator.base.field_types import PYTHON, named, type_of
from kube_scheduler_operator.base.findings import Problem
from kube_scheduler_operator.simulate.questions import to_json


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
    text_or_number: str | int = ""


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
    5,
)


@pytest.mark.parametrize("value", [WHOLE, Outer(0)], ids=["whole", "defaults"])
def test_a_value_comes_back_from_json_equal(value: Outer) -> None:
    back = decode(type_of(Outer, PYTHON), orjson.loads(to_json(value)))
    assert back == value or back == Outer(0, names=[])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": "3"}, "count: this must be an integer"),
        ({"count": True}, "count: this must be an integer"),
        ({"count": None}, "count: this must be an integer"),
        ({"count": 1.5}, "count: 1.5 is not an integer"),
        ({"share": "1"}, "share: this must be a number"),
        ({"share": float("inf")}, "share: inf is not a number"),
        ({"inner": {"name": None}}, "inner.name: this must be a string"),
        ({"inner": {}}, "inner.name: this is missing"),
        ({"groups": [{"name": "a"}, 3]}, "groups[1]: this must be an object with name or nodes"),
        ({"groups": {}}, "groups: this must be a list"),
        ({"scores": {"a": {"p": "1"}}}, "scores.a.p: this must be an integer"),
        ({"by_number": {"x": "y"}}, "by_number: a key is not valid: this must be an integer"),
        ({"words": "abc"}, "words: this must be a list"),
        ({"pair": [1]}, "pair: this must be a list of 2"),
        ({"text_or_number": []}, "text_or_number: this must be a string"),
        ({"newer": 1}, "newer: unknown field; use count, share"),
        ({"cuont": 1}, 'cuont: unknown field; did you mean "count"?'),
    ],
)
def test_a_problem_has_the_path_of_its_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decode(type_of(Outer, PYTHON), {"count": 1, **changes})
    (problem,) = raised.value.problems
    assert str(raised.value).startswith(message)
    assert problem.path[0] == next(iter(changes))


FIELDS = "hostName, port, caFile, mode, weights, tags or backup"
Port = Annotated[int, Number(whole=True, least=1, most=65535)]


def server_of(name: str) -> Server:
    return Server(name)


@dataclass(frozen=True)
class Server:
    host_name: str = "localhost"
    port: Port = 80
    ca_file: str = named("caFile", "")
    mode: Literal["Fast", "Safe"] = "Fast"
    weights: Mapping[str, Annotated[float, Number(least=0, above=True)]] = field(
        default_factory=dict
    )
    tags: Annotated[tuple[str, ...], ListOf(String(longest=3), tuple, most=2)] = ()
    backup: Annotated[Any, Converted(String(), server_of)] = None

    def inconsistencies(self) -> Iterator[Problem]:
        if self.mode == "Safe" and not self.ca_file:
            yield Problem("MissingField", ("caFile",), "mode Safe needs it", "set it")


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ({}, Server()),
        ({"hostName": "a", "port": 443}, Server("a", 443)),
        ({"hostName": None, "port": None}, Server()),
        ({"port": 443.0, "mode": "Safe", "caFile": "x"}, Server("localhost", 443, "x", "Safe")),
        ({"weights": {"a": 1}}, Server(weights={"a": 1.0})),
        ({"tags": ["a", "b"], "backup": "c"}, Server(tags=("a", "b"), backup=Server("c"))),
    ],
)
def test_names_and_nulls_are_those_of_kubernetes(document: Any, value: Server) -> None:
    assert decode(type_of(Server), document) == value


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        ([], [f"this must be an object with {FIELDS}"]),
        ({"port": 0}, ["port: 0 is not between 1 and 65535"]),
        ({"port": "x"}, ["port: this must be an integer between 1 and 65535"]),
        ({"mode": "fast"}, ['mode: "fast" is not known; did you mean "Fast"?']),
        ({"mode": "other"}, ['mode: "other" is not known; use Fast or Safe']),
        ({"weights": {"a": 0}}, ["weights.a: 0 is not greater than 0"]),
        ({"tags": ["long"]}, ["tags[0]: this must have at most 3 characters"]),
        ({"tags": ["a"] * 3}, ["tags: this must have at most 2 entries"]),
        ({"mode": "Safe"}, ["caFile: mode Safe needs it; set it"]),
        (
            {"port": 0, "hostName": 1, "x": 2, "weights": {"a": "b", "c": -1}},
            [
                "port: 0 is not between 1 and 65535",
                "hostName: this must be a string",
                f"x: unknown field; use {FIELDS}",
                "weights.a: this must be a number greater than 0",
                "weights.c: -1 is not greater than 0",
            ],
        ),
    ],
)
def test_all_problems_are_reported_together(document: Any, problems: list[str]) -> None:
    with pytest.raises(DecodeError) as raised:
        decode(type_of(Server), document)
    assert [DecodeError([problem]).args[0] for problem in raised.value.problems] == problems


def test_paths_begin_where_the_document_does() -> None:
    with pytest.raises(DecodeError, match=r"spec\.servers\[1\]\.port: 0 is not"):
        decode(ListOf(type_of(Server)), [{}, {"port": 0}], ("spec", "servers"))


def test_a_run_may_end_with_its_first_problem() -> None:
    with pytest.raises(DecodeError) as raised:
        decode(type_of(Server), {"port": 0, "x": 1}, run=FirstProblem())
    assert len(raised.value.problems) == 1


def test_a_run_may_ignore_unknown_fields() -> None:
    run = FirstProblem(ignore_unknown=True)
    assert decode(type_of(Server), {"x": 1}, run=run) == Server()


def test_problems_of_a_conversion_have_paths_in_its_value() -> None:
    def convert(value: Mapping[str, Any]) -> Any:
        raise DecodeError([Problem("InvalidValue", ("a", 0), "no")])

    with pytest.raises(DecodeError, match=r"x\.a\[0\]: no"):
        decode(MapOf(Converted(MapOf(ListOf(Number())), convert)), {"x": {"a": [1]}})


def test_a_value_with_problems_is_not_made() -> None:
    run = DecodingRun()
    assert type_of(Inner)({"nodes": []}, (), run) is REFUSED
    assert [problem.reason for problem in run.problems] == ["MissingField"]


def test_a_type_that_documents_do_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be read"):
        type_of(complex)
