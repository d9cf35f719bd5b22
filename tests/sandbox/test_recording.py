"""Recordings of kube-scheduler's requests: as sent, except for random values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster import recording, releases

FOLDER = Path(__file__).resolve().parents[1] / "unit/scheduling/extender/recordings"
FILES = [f"v1.{minor}-{form}" for minor in releases.PINNED for form in ("names", "nodes")]


def test_bytes_are_those_that_go_writes() -> None:
    body = {"note": "a < b && c > d, größer \u2028\u2029", "Nodes": None}
    note = "a \\u003c b \\u0026\\u0026 c \\u003e d, größer \\u2028\\u2029"
    expected = f'{{"note":"{note}","Nodes":null}}'
    assert recording.wire(body) == expected.encode()
    assert json.loads(recording.wire(body)) == body


def test_random_values_are_replaced_by_constant_distinct_ones() -> None:
    one, other = "0f0f0f0f-1111-4222-8333-444444444444", "abababab-1111-4222-8333-444444444444"
    body = {"uid": one, "owner": other, "again": one, "resourceVersion": "517"}
    body |= {"at": "2026-11-23T00:33:06Z", "volume": "kube-api-access-x9k2p"}
    scrubbed = recording._scrub([{"verb": "bind", "headers": {}, "body": body}])[0]["body"]
    assert scrubbed["uid"] == scrubbed["again"] != scrubbed["owner"]
    assert scrubbed["resourceVersion"] == "1000"
    assert scrubbed["at"] == "2026-01-01T00:00:00Z"
    assert scrubbed["volume"] == "kube-api-access-abcde"


@pytest.mark.parametrize("name", FILES)
def test_every_release_is_recorded_in_both_forms(name: str) -> None:
    text = (FOLDER / f"{name}.json").read_text()
    recorded = json.loads(text)
    requests = recorded["requests"]
    assert recording.document(recorded["kubernetes"], recorded["form"], requests) == text
    assert {request["verb"] for request in requests} == set(recording.VERBS)
    (first, *_) = (one["body"] for one in requests if one["verb"] == "filter")
    sent, missing = (
        ("NodeNames", "Nodes") if recorded["form"] == "names" else ("Nodes", "NodeNames")
    )
    assert first[sent]
    assert first[missing] is None
    assert b"\\u003c" in b"".join(recording.wire(one["body"]) for one in requests)
    violations = [
        victims["NumPDBViolations"]
        for one in requests
        if one["verb"] == "preempt"
        for key in ("NodeNameToVictims", "NodeNameToMetaVictims")
        for victims in (one["body"][key] or {}).values()
    ]
    assert set(violations) == {0, 1}
