"""Answers of agents: what is valid, what the message of an error names, and the limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base.limits import Size
from kube_scheduler_operator.cli.simulation.agent_answer import (
    AnswerError,
    parse_agent_answer,
    read_agent_answer,
)

FILTER = {
    "at": "2026-01-01T00:00:00.000Z",
    "nodes": 2,
    "rejected": [{"node": "a", "reason": "r", "unresolvable": False}],
}
PRIORITIZE = {
    "at": "2026-01-01T00:00:00.000Z",
    "weights": {"p": 1},
    "nodes": [{"node": "a", "score": 7, "policies": {"p": 7}}, {"node": "b", "score": 1.5,
                                                               "unknown": True}],
}  # fmt: skip
NOW = {"x": {"p": [{"node": "a", "used": {"cpu": 1.5, "memory": None}, "table": [[1, 2], [3, 4]]}]}}
WHOLE = {
    "pod": "shop/web",
    "uid": "u-1",
    "agents": [{"agent": "x", "filter": FILTER, "prioritize": PRIORITIZE}, {"agent": "y"}],
    "now": NOW,
}
NUMBER = "this must be a number"


def with_rows(*rows: Any) -> Any:
    return {"agents": [], "now": {"x": {"p": list(rows)}}}


@pytest.mark.parametrize("answer", [WHOLE, {"agents": []}, {"agents": [{"agent": "x"}]}])
def test_a_valid_answer_is_printed_as_it_was(answer: Any) -> None:
    found = read_agent_answer(answer, "shop/web").document()
    assert json.dumps(found) == json.dumps(answer), "also the order of keys"


def test_keys_that_are_not_known_are_left_out() -> None:
    found = read_agent_answer({"agents": [{"agent": "x", "run": "this"}], "note": "n"}, "a/b")
    assert found.document() == {"agents": [{"agent": "x"}]}


def decisions(**fields: Any) -> Any:
    return {"agents": [{"agent": "x", **fields}]}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "this must be an object with agents, pod, uid or now"),
        ({}, "agents: this is missing"),
        ({"agents": {}}, "agents: this must be a list"),
        ({"agents": [1]}, "agents[0]: this must be an object with agent, filter or prioritize"),
        ({"agents": [{"agent": 5}]}, "agents[0].agent: this must be a string"),
        ({"agents": [{"agent": "x" * 254}]}, "agent: this must have at most 253 characters"),
        ({"agents": [{"agent": "\ud800"}]}, "agents[0].agent: this must be Unicode"),
        ({"agents": [{"agent": "x"}] * 257}, "agents: this must have at most 256 entries"),
        ({"agents": [], "pod": "a/other"}, 'pod: this must be "shop/web"'),
        (decisions(filter=[]), "filter: this must be an object with at, nodes or rejected"),
        (decisions(filter={**FILTER, "nodes": -1}), "filter.nodes: -1 is not 0 or more"),
        (decisions(filter={**FILTER, "nodes": True}), "nodes: this must be an integer 0 or more"),
        (decisions(filter={**FILTER, "rejected": "a"}), "filter.rejected: this must be a list"),
        (
            decisions(filter={**FILTER, "rejected": [{"node": "a", "unresolvable": True}]}),
            "filter.rejected[0].reason: this is missing",
        ),
        (
            decisions(filter={**FILTER, "rejected": [{"node": "a", "reason": "r",
                                                      "unresolvable": 1}]}),
            "filter.rejected[0].unresolvable: this must be true or false",
        ),
        (
            decisions(prioritize={**PRIORITIZE, "weights": {"p": "1"}}),
            f"prioritize.weights.p: {NUMBER}",
        ),
        (
            decisions(prioritize={**PRIORITIZE, "weights": {str(n): 1 for n in range(33)}}),
            "prioritize.weights: this must have at most 32 keys",
        ),
        (
            decisions(prioritize={**PRIORITIZE, "nodes": [{"node": "a", "score": float("nan")}]}),
            "prioritize.nodes[0].score: nan is not a number",
        ),
        (
            decisions(prioritize={**PRIORITIZE, "nodes": [{"node": "a", "score": 2**63}]}),
            "prioritize.nodes[0].score: this number is too large",
        ),
        ({"agents": [], "now": []}, "now: this must be an object"),
        (with_rows(1), "now.x.p[0]: this must be an object"),
        (with_rows({"k": float("inf")}), "now.x.p[0].k: inf is not a number"),
        (with_rows({"k" * 254: 1}), "a key is not valid: this must have at most 253 characters"),
        (with_rows({str(n): 1 for n in range(33)}), "now.x.p[0]: this must have at most 32 keys"),
        (with_rows(*({str(n): 1} for n in range(33))), "at most 32 different keys"),
        (with_rows({"k": [0] * 257}), "now.x.p[0].k: this must have at most 256 entries"),
        (with_rows(*[{}] * 20_001), "now.x.p: this must have at most 20000 entries"),
    ],
)  # fmt: skip
def test_the_message_has_the_path_and_what_was_expected(answer: Any, problem: str) -> None:
    with pytest.raises(AnswerError) as error:
        read_agent_answer(answer, "shop/web")
    assert str(error.value).endswith(problem)


def test_long_texts_end_early() -> None:
    rejected = [{"node": "a", "reason": "r" * 5000, "unresolvable": False}]
    found = read_agent_answer(decisions(filter={**FILTER, "rejected": rejected}), "shop/web")
    decision = found.agents[0].filter
    assert decision is not None
    assert decision.rejected[0].reason == "r" * 1023 + "…"
    document = read_agent_answer(with_rows({"k": "v" * 5000}), "shop/web").document()
    assert document["now"]["x"]["p"] == [{"k": "v" * 1023 + "…"}]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"x" * 101, "more than 100 bytes"),
        (b"[" + b"1," * 10 + b"1]", "more than 10 values"),
        (b"{" * 11, "more than 10 values"),
        (b"no", "it is not JSON: "),
        (b"\xff\xff", "it is not JSON: "),
        (b"", "it is not JSON: "),
    ],
)
def test_an_answer_is_read_within_its_limits(text: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_agent_answer(text, "shop/web", Size(100, 10))


@pytest.mark.parametrize("depth", [17, 900, 100_000])
def test_a_nested_answer_is_refused(depth: int) -> None:
    text = b"[" * depth + b"]" * depth
    with pytest.raises(ValueError, match="nested"):
        parse_agent_answer(text, "shop/web", Size(10**6, 10**6))


def test_an_answer_within_its_limits_is_read() -> None:
    text = json.dumps(WHOLE).encode()
    whole = parse_agent_answer(text, "shop/web", Size(len(text), 100))
    assert whole == read_agent_answer(WHOLE, "shop/web")


def test_texts_are_one_line_of_visible_characters() -> None:
    rejected = [{"node": "a\x1b[2J", "reason": "x\nerror: y", "unresolvable": False}]
    found = read_agent_answer(decisions(filter={**FILTER, "rejected": rejected}), "shop/web")
    decision = found.agents[0].filter
    assert decision is not None
    (row,) = decision.rejected
    assert (row.node, row.reason) == ("a\\u001b[2J", "x\\nerror: y")
    details = read_agent_answer(with_rows({"k\n": "v\n"}), "shop/web").document()
    assert details["now"]["x"]["p"] == [{"k\\n": "v\\n"}]
