"""Limits of a spec, and the cache of their results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import spec_limits
from kube_scheduler_operator.base.json_text import exceeds_depth
from kube_scheduler_operator.base.limits import DEPTH, OBJECT_DEPTH, SPEC_BYTES
from kube_scheduler_operator.base.spec_limits import data_bytes, limit_problems
from kube_scheduler_operator.operator.model import snapshot as snapshots
from kube_scheduler_operator.operator.model.snapshot import bounded_snapshot

from ....builders import kubescheduler, profile, snapshot
from ....odd_json import nested
from ....odd_objects import unlimited


@pytest.mark.parametrize(
    ("spec", "reason", "path", "message"),
    [
        pytest.param({"a": [1, {"b": "é"}]}, "", (), "", id="fine"),
        pytest.param(unlimited(nested(DEPTH)), "", (), "", id="deepest"),
        pytest.param(
            {"x": 1, "y": unlimited(nested(DEPTH))},
            "TooDeep",
            ("y", "a", "a", "a", "a", "a"),
            "this is nested in more than 64 levels; use fewer levels, or remove it",
            id="too-deep",
        ),
        pytest.param(
            {"a": "x" * SPEC_BYTES},
            "TooLarge",
            (),
            "this has 524296 bytes as JSON, and the limit is 524288; shorten it",
            id="too-large",
        ),
        pytest.param(
            {"a": ["é" * (SPEC_BYTES // 2)]},
            "TooLarge",
            (),
            "524298 bytes",
            id="too-large-in-utf-8",
        ),
        pytest.param(
            {"a": [float("nan")]}, "InvalidValue", ("a", 0), "nan is not a number", id="nan"
        ),
        pytest.param({"a": float("inf")}, "InvalidValue", ("a",), "inf is not a", id="infinite"),
        pytest.param({"a": "\ud800"}, "InvalidValue", ("a",), "surrogate", id="surrogate"),
        pytest.param({"\udc00": 1}, "InvalidValue", (), "'\\udc00' is not text", id="key"),
    ],
)
def test_a_spec_beyond_a_limit_has_a_problem(
    spec: Any, reason: str, path: tuple[Any, ...], message: str
) -> None:
    found = limit_problems(spec)
    assert [(one.reason, one.path) for one in found] == ([(reason, path)] if reason else [])
    assert all(message in one.message for one in found)


def test_a_snapshot_within_the_limits_stays_the_same() -> None:
    given = snapshot(kubescheduler=kubescheduler(), scheduler_profiles={"a": profile("a")})
    assert bounded_snapshot(given) == given
    assert bounded_snapshot(given) is given, "known from the last time"


def test_an_object_that_is_too_deep_is_cut_and_still_too_deep() -> None:
    deep = profile("a", pluginConfig=[{"name": "X", "args": unlimited(nested(5_000))}])
    given = snapshot(scheduler_profiles={"a": deep, "b": profile("b")})
    for _ in range(2):
        found = (bounded_snapshot(given).scheduler_profiles or {})["a"]
        assert not exceeds_depth(found, OBJECT_DEPTH)
        assert [one.reason for one in limit_problems(found["spec"])] == ["TooDeep"]
        assert found["metadata"] == deep["metadata"]


def test_results_of_objects_that_are_gone_are_not_kept() -> None:
    for number in range(50):
        made = profile("a", schedulerName=f"x{number}")
        bounded_snapshot(snapshot(scheduler_profiles={"a": made}))
    assert len(snapshots._bounded) == 1
    assert len(spec_limits._checked) == 1
    gone = replace(snapshot(), scheduler_profiles=None)
    assert bounded_snapshot(gone) == gone
    assert not snapshots._bounded


def test_the_size_of_a_config_map_counts_keys_and_bytes() -> None:
    assert data_bytes({"a": "é", "bc": ""}) == 5
