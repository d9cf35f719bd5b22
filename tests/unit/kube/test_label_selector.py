"""LabelSelectors match as in Kubernetes; two overlap exactly if labels exist that both match."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from kube_scheduler_operator.kube.label_selector import can_both_match, matches, written


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {}, True),
        ({}, {"a": "1"}, True),
        ({"matchLabels": None, "matchExpressions": None}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchLabels": {"a": ""}}, {}, False),
        ({"matchLabels": {"a": ""}}, {"a": ""}, True),
        ({"matchLabels": {"a": "1", "b": "2"}}, {"a": "1"}, False),
        (expression("a", "In", "1", "2"), {"a": "2"}, True),
        (expression("a", "In", "1", "2"), {}, False),
        (expression("a", "NotIn", "1"), {}, True),
        (expression("a", "NotIn", "1"), {"a": "1"}, False),
        (expression("a", "Exists"), {"a": ""}, True),
        (expression("a", "Exists"), {"b": ""}, False),
        (expression("a", "DoesNotExist"), {"b": ""}, True),
        (expression("a", "DoesNotExist"), {"a": ""}, False),
        (expression("a", "Like", "1"), {"a": "1"}, False),
    ],
)
def test_a_selector_matches_as_in_kubernetes(
    selector: Any, labels: dict[str, str], expected: bool
) -> None:
    assert matches(selector, labels) is expected


SELECTORS = [
    {},
    {"matchLabels": {"a": "1"}},
    {"matchLabels": {"a": "2", "b": "1"}},
    expression("a", "In", "1", "2"),
    expression("a", "NotIn", "1"),
    expression("a", "NotIn", "1", "2"),
    expression("a", "Exists"),
    expression("a", "DoesNotExist"),
    expression("b", "DoesNotExist"),
    {**expression("a", "NotIn", "2"), "matchLabels": {"b": "1"}},
]
EVERY_LABELS = [
    {key: value for key, value in (("a", a), ("b", b)) if value}
    for a, b in product(("", "1", "2", "3"), repeat=2)
]


@pytest.mark.parametrize(("one", "other"), list(product(SELECTORS, repeat=2)))
def test_two_overlap_exactly_if_labels_exist_that_both_match(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    expected = any(matches(one, labels) and matches(other, labels) for labels in EVERY_LABELS)
    assert can_both_match(one, other) is expected


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({}, ""),
        ({"matchLabels": {"a": "1", "b": ""}}, "a=1,b="),
        (expression("a", "In", "1", "2"), "a in (1,2)"),
        (expression("a", "NotIn", "1"), "a notin (1)"),
        (expression("a", "Exists"), "a"),
        (expression("a", "DoesNotExist"), "!a"),
    ],
)
def test_a_selector_is_written_as_kubectl_writes_it(selector: Any, text: str) -> None:
    assert written(selector) == text
