"""How a change of an object is written as edits of its fields."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.field_types import document_of
from kube_scheduler_operator.simulate.edits import Edit, edits


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("spec.a", 1, 2)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, [("spec.a.c", 2, None)]),
        ({}, {"a": [1]}, [("spec.a", None, [1])]),
        ({"m": {"x/y": "1"}}, {"m": {}}, [("spec.m[x/y]", "1", None)]),
        ({"l": [{"a": 1}, {"a": 2}]}, {"l": [{"a": 1}, {"a": 3}]}, [("spec.l[1].a", 2, 3)]),
        ({"l": [1, 2, 3]}, {"l": [1, 3]}, [("spec.l[1]", 2, None)]),
        # In this order, no edit moves what a later one names.
        ({"l": [1, 2, 3]}, {"l": [3]}, [("spec.l[1]", 2, None), ("spec.l[0]", 1, None)]),
        ({"l": [1, 2]}, {"l": [3]}, [("spec.l[1]", 2, None), ("spec.l[0]", 1, None),
                                     ("spec.l[0]", None, 3)]),
        ({"l": [1, 2]}, {"l": [1, 2, 3]}, [("spec.l[2]", None, 3)]),
        ({"l": [1, 1]}, {"l": [1, 1, 1]}, [("spec.l[2]", None, 1)]),
        ({"l": [1]}, {"l": "1"}, [("spec.l", [1], "1")]),
    ],
)  # fmt: skip
def test_only_what_differs_is_edited(
    before: Any, after: Any, expected: list[tuple[str, Any, Any]]
) -> None:
    found = edits("Pod shop/web", "", {"spec": before}, {"spec": after})
    assert found == tuple(Edit("Pod shop/web", *each) for each in expected)


def test_an_edit_has_the_path_in_the_object_that_its_owner_edits() -> None:
    before, after = ({"metadata": {"labels": labels}} for labels in ({"a": "1"}, {}))
    (found,) = edits("Deployment shop/web", "spec.template.", before, after)
    assert document_of(found) == {
        "object": "Deployment shop/web",
        "field": "spec.template.metadata.labels.a",
        "from": "1",
        "to": None,
    }
