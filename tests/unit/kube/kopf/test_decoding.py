"""kopf's lists and watches with objects that are nested deeper than Python's decoder allows."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kopf._cogs.clients import api, fetching

from kube_scheduler_operator.base.json_text import exceeds_depth
from kube_scheduler_operator.base.limits import OBJECT_DEPTH
from kube_scheduler_operator.kube.kopf import decoding

REMEDY = "pin kopf>=1.45.2,<1.46 in pyproject.toml, or adapt kube/kopf/decoding.py"


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def body(name: str, arguments: str) -> str:
    return f'{{"apiVersion":"x.dev/v1","metadata":{{"name":"{name}"}},"spec":{arguments}}}'


class Content:
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def iter_any(self) -> AsyncIterator[bytes]:
        for begin in range(0, len(self._data), 65536):
            yield self._data[begin : begin + 65536]


class Response:
    content_type = "application/json"
    connection = None

    def __init__(self, text: str) -> None:
        self.content_length = len(text.encode())
        self.content = Content(text.encode())

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(self, *_: object) -> None: ...


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "get", api.get)
    monkeypatch.setattr(api, "json", json)
    monkeypatch.setattr(api, "iter_jsonlines", api.iter_jsonlines)
    decoding.install_decoder()


def test_kopf_reads_lists_and_watches_where_the_decoder_is_replaced() -> None:
    assert "api.get(" in inspect.getsource(fetching.fetch_objs), REMEDY
    assert "json.loads(" in inspect.getsource(api.stream), REMEDY
    assert "iter_jsonlines(" in inspect.getsource(api.stream), REMEDY
    assert vars(fetching)["api"] is api, REMEDY


@pytest.mark.parametrize("levels", [10, 600, 1_500, 5_000])
async def test_a_list_has_all_objects_whatever_one_of_them_contains(
    installed: None, monkeypatch: pytest.MonkeyPatch, levels: int
) -> None:
    items = ",".join(body(name, nested(levels if name == "b" else 3)) for name in "abc")

    async def request(**_: Any) -> Response:
        return Response(f'{{"items":[{items}]}}')

    monkeypatch.setattr(api, "request", request)
    found = await api.get("/", settings=None, logger=None)  # type: ignore[arg-type]
    assert [item["metadata"]["name"] for item in found["items"]] == ["a", "b", "c"]


@pytest.mark.parametrize("levels", [10, 600, 1_500, 5_000])
def test_an_event_of_a_custom_resource_has_no_more_levels_than_can_be_processed(
    installed: None, levels: int
) -> None:
    text = f'{{"type":"ADDED","object":{body("a", nested(levels))}}}'
    event = decoding.event_within_limits(vars(api)["json"].loads(text))
    assert event["type"] == "ADDED"
    assert event["object"]["metadata"] == {"name": "a"}
    assert not exceeds_depth(event["object"], OBJECT_DEPTH)
    assert exceeds_depth(event["object"], OBJECT_DEPTH - 1) == (levels > OBJECT_DEPTH)


def test_an_event_of_a_built_in_kind_is_passed_on_as_it_is() -> None:
    event = {"type": "ADDED", "object": {"apiVersion": "v1", "metadata": {"name": "a"}}}
    assert decoding.event_within_limits(event) is event
