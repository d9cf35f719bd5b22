"""Of a List, the objects remain that may configure a scheduler."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.cli.upgrade.lists import without_bulk


def item(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


ITEMS = [
    item("Node", "a"),
    item("Pod", "web", containers=[{"name": "c", "image": "web"}], schedulerName="x"),
    item("Pod", "cp", containers=[{"name": "c", "image": "kube-scheduler:v1.35.4"}]),
    item("ConfigMap", "c"),
]
LIST = {"apiVersion": "v1", "kind": "List", "items": ITEMS, "metadata": {"resourceVersion": ""}}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(LIST),
        json.dumps(LIST, indent=2),
        yaml.safe_dump(LIST),
        "# a comment\n---\n" + yaml.safe_dump(LIST, sort_keys=False),
    ],
    ids=["JSON", "indented JSON", "YAML", "YAML in another order"],
)
def test_what_configures_no_scheduler_is_left_out(text: str) -> None:
    made = without_bulk(text.encode())
    assert yaml.safe_load(made) == {**LIST, "items": ITEMS[2:]}


@pytest.mark.parametrize(
    "text",
    ["", "{", "kind: Pod\n", '{"kind": "Pod"}', "items:\n- &a {kind: Node}\n- *a\n", "[1]"],
)
def test_another_file_stays_as_it_is(text: str) -> None:
    assert without_bulk(text) == text


def test_two_lists_of_one_file_keep_their_ends() -> None:
    text = f"{yaml.safe_dump(LIST)}---\n{yaml.safe_dump(LIST)}"
    made = without_bulk(text)
    assert list(yaml.safe_load_all(made)) == [{**LIST, "items": ITEMS[2:]}] * 2
