"""Objects that are too large to be decoded are named, once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base.json_text import TooLargeError
from kube_scheduler_operator.kube.api import LeftOut
from kube_scheduler_operator.kube.oversized import (
    LEFT_OUT,
    Notices,
    first_of_list,
    without_content,
)

ERROR = TooLargeError("more than 100000 values", 5)
METADATA = {
    "annotations": {"name": "no", "metadata": '{"name":"no"}'},
    "labels": {},
    "managedFields": [{"name": "no", "fieldsV1": {"f:metadata": {"name": "no"}}}],
    "name": 'a"\\ö',
    "namespace": "n",
    "resourceVersion": "7",
    "uid": "u",
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_is_reduced_to_the_end_of_what_is_known(type_: str, indent: int | None) -> None:
    obj = {"apiVersion": "v1", "kind": "Pod", "spec": {"name": "no"}, "metadata": METADATA}
    line = json.dumps({"type": type_, "object": obj}, indent=indent).encode()
    event, left_out = without_content(line, ERROR)
    identity = {key: METADATA[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    exists = {} if type_ == "DELETED" else {LEFT_OUT: "more than 100000 values"}
    assert event == {
        "type": "DELETED",
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": identity, **exists},
    }
    assert left_out == LeftOut("Pod", "n", 'a"\\ö', "u", "more than 100000 values")


@pytest.mark.parametrize(
    "line", [b"", b"{", b'{"object":{"metadata":{}}}', b"[[[", b'"name"', b"}]"]
)
def test_an_event_without_a_name_is_an_error(line: bytes) -> None:
    with pytest.raises(TooLargeError):
        without_content(line, ERROR)


@pytest.mark.parametrize("sort_keys", [False, True])
def test_a_page_of_one_object_is_reduced_to_its_name_and_the_next_page(*, sort_keys: bool) -> None:
    page: dict[str, Any] = {
        "metadata": {"resourceVersion": "9", "continue": "more"},
        "kind": "List",
        "items": [{"metadata": METADATA}],
    }
    found = first_of_list("Pod", json.dumps(page, sort_keys=sort_keys).encode(), "a size")
    assert (found.resource_version, found.more, found.items) == ("9", "more", [])
    assert found.left_out == (LeftOut("Pod", "n", 'a"\\ö', "u", "a size"),)


def test_what_is_left_out_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    notices, one = Notices(), LeftOut("Pod", "n", "a", "u", "more than 5 values")
    for _ in range(3):
        notices.report((one,))
    assert [record.getMessage() for record in caplog.records] == [
        "Pod n/a has more than 5 values and is left out"
    ]


def test_the_names_that_are_remembered_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    notices = Notices(lambda: now)
    for number in range(1100):
        notices.report((LeftOut("Pod", "n", str(number), "u", "x"),))
    now = 600.0
    caplog.clear()
    notices.report((LeftOut("Pod", "n", "1099", "u", "x"),))
    assert caplog.records == []
    notices.report((LeftOut("Pod", "n", "0", "u", "x"),))
    assert len(caplog.records) == 1


def test_of_thousands_at_a_time_few_are_named_and_the_others_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    notices = Notices(lambda: now)
    for _ in range(3):  # lists
        notices.report(LeftOut("Pod", "n", str(number), "u", "too much") for number in range(2000))
    assert len(caplog.records) == 20
    now = 60.0
    notices.report((LeftOut("Pod", "n", "last", "u", "too much"),))
    assert caplog.records[-1].getMessage() == (
        "Pod n/last has too much and is left out, and so are 5980 more objects"
    )
