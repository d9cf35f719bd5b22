"""JSON of any depth and with any number, read and cut."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import pytest

from kube_scheduler_operator.base.json_text import (
    TooLargeError,
    bounded,
    count_values,
    exceeds_depth,
    most_values,
    parse_json,
    read_json,
)
from kube_scheduler_operator.base.limits import DOCUMENT_DEPTH, Size

from ...odd_json import DEPTHS, nested, odd_json
from ...odd_objects import unlimited


def depth(value: Any) -> int:
    level, levels = [value], 0
    while level := [one for one in level if isinstance(one, (dict, list))]:
        levels += 1
        level = [
            child for one in level for child in (one.values() if isinstance(one, dict) else one)
        ]
    return levels


def test_ordinary_json_is_read_like_pythons_own_decoder_reads_it() -> None:
    text = '{"a": [1, 2.5, "x", null, true, {"b": "\\u00e9\\ud83d\\ude00"}], "a": {}}'
    assert read_json(text) == read_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize("levels", DEPTHS)
@pytest.mark.parametrize("lists", [True, False])
def test_what_surrounds_a_deep_value_is_read(levels: int, lists: bool) -> None:
    deep = nested(levels, '"]}\\""', key='"[{', lists=lists)
    found = read_json(f'[{{"name": "a"}}, {{"x": {deep}, "y": 1}}, {{"name": "b"}}]')
    assert [one.get("name") for one in found] == ["a", None, "b"]
    assert found[1]["y"] == 1
    assert depth(found[1]["x"]) == levels or depth(found) == DOCUMENT_DEPTH


def test_any_generated_value_is_read_in_a_list() -> None:
    rng = random.Random(1)
    for _ in range(300):
        value = odd_json(rng)
        found = read_json(f'{{"items":[1,{value},2]}}')["items"]
        assert (found[0], found[2], len(found)) == (1, 2, 3)


def test_an_integer_with_more_digits_than_python_converts_is_a_number() -> None:
    assert read_json(f'{{"a":1,"n":{"9" * 5_000}}}') == {"a": 1, "n": float("inf")}


@pytest.mark.parametrize(
    "text",
    ["", "[", "{", "[" * 3_000, "{" * 3_000, "[" * 3_000 + "]" * 2_999, '"' + "[" * 3_000, b"\xff"],
)
def test_what_is_not_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its subclasses differ
        read_json(text)


def test_text_of_other_clients_that_is_too_deep_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        parse_json(nested(5_000))
    assert parse_json(nested(100)) == json.loads(nested(100))


@pytest.mark.parametrize("levels", DEPTHS)
def test_an_object_keeps_as_many_levels_as_allowed(levels: int) -> None:
    value = unlimited(nested(levels))
    kept = bounded(value, 70)
    assert depth(kept) == min(levels, 70)
    assert (kept is value) == (levels <= 70)
    assert exceeds_depth(value, 70) == (levels > 70)
    assert depth(value) == levels, "the argument is not changed"


@pytest.mark.parametrize("value", [None, 1, "x", [], {}])
def test_a_value_without_levels_exceeds_no_limit(value: Any) -> None:
    assert not exceeds_depth(value, 1)
    assert bounded(value, 1) is value


# --- size -----------------------------------------------------------------------------------------

SMALL = Size(bytes=1000, values=10)


@pytest.mark.parametrize("read", [read_json, parse_json])
@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize(
    ("text", "excess"),
    [
        ("[" + "0," * 9 + "0]", "more than 10 values"),
        ("[" + "{}," * 9 + "0]", "more than 10 values"),
        ("[" * 11 + "]" * 11, "more than 10 values"),
        ('{"a":' * 11 + "1" + "}" * 11, "more than 10 values"),
        ('"' + "x" * 1000 + '"', "more than 1000 bytes"),
        ("[" + "[]," * 1_000_000 + "0]", "more than 1000 bytes"),
        ('{"' + "x" * 30 + '":[' + "1," * 9 + '"]"]}', "more than 10 values"),
    ],
)
def test_a_document_that_is_too_large_is_not_decoded(
    read: Any, text: str, excess: str, *, encoded: bool
) -> None:
    def never(_: object) -> Any:
        raise AssertionError("it was decoded")

    with pytest.raises(TooLargeError, match=f"the document has {excess}") as raised:
        read(text.encode() if encoded else text, SMALL, never)
    assert raised.value.excess == excess


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "[" + "0," * 8 + "0]",
        '["' + "," * 900 + '"]',  # a table in a ConfigMap is one value
        '["' + '\\"[{,' * 100 + '"]',
        '{"[[[[[[[[[[[[[[[": ",,,,,,,,,,,,,,,,,,,"}',
    ],
)
def test_separators_in_strings_do_not_count(text: str, *, encoded: bool) -> None:
    assert read_json(text.encode() if encoded else text, SMALL) == json.loads(text)


def test_strings_without_values_count_at_some_number() -> None:
    """Such a document is not JSON, but is searched for strings before that is known."""
    assert count_values('""' * 22, 10) == 10
    assert count_values('""' * 19, 10) == 0
    assert count_values('[",,,", "[', 10) == 2, "the beginning of a document"


def test_the_values_of_any_document_are_at_most_what_is_counted() -> None:
    rng = random.Random(7)
    for _ in range(300):
        text = odd_json(rng)
        with contextlib.suppress(ValueError, RecursionError):
            assert number_of_values(json.loads(text)) <= most_values(text)


def number_of_values(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + (sum(map(number_of_values, value)) if isinstance(value, list) else 0)
