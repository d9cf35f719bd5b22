"""Results are parsed from their termination messages unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base.foreign_text import one_line
from kube_scheduler_operator.node.protocol import message
from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result

texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6000)
results = st.builds(
    Result,
    result=st.sampled_from(InstallerOutcome),
    revision=st.integers(1, 10**6),
    node=st.text("abc-.", min_size=1, max_size=253),
    last_good_revision=st.integers(0, 10**6),
    retry=st.integers(0, 1000),
    reason=texts,
    last_error=texts,
    steps=st.dictionaries(
        st.sampled_from(["stage", "remove", "release", "write", "ready"]),
        st.floats(0, 1000).map(lambda f: round(f, 3)),
    ),
    strangers=st.lists(st.text(max_size=30), max_size=200).map(tuple),
)


@given(results)
def test_result_fits_and_keeps_machine_readable_fields(result: Any) -> None:
    text = result.serialise()
    assert len(text.encode()) <= message.LIMIT
    parsed = Result.parse(text)
    assert parsed is not None
    for name in ("result", "revision", "node", "last_good_revision", "retry"):
        assert getattr(parsed, name) == getattr(result, name)


@given(
    results.filter(
        lambda r: len(r.reason) + len(r.last_error) < 600 and sum(map(len, r.strangers)) < 300
    )
)
def test_short_result_round_trips(result: Any) -> None:
    shown = replace(
        result,
        reason=one_line(result.reason),
        last_error=one_line(result.last_error),
        strangers=tuple(map(one_line, result.strangers)),
    )
    assert Result.parse(result.serialise()) == shown


def test_shortening_keeps_both_ends() -> None:
    text = Result(
        InstallerOutcome.ROLLED_BACK, 3, "n", 2, reason="begin " + "x" * 5000 + " end"
    ).serialise()
    parsed = Result.parse(text)
    assert parsed is not None
    assert parsed.reason.startswith("begin x")
    assert parsed.reason.endswith("x end")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "E1121 09:00:00.000000 1 run.go:72] boom",
        "null",
        "[]",
        "{}",
        '{"result":"Perhaps","revision":1,"node":"n","lastGoodRevision":0}',
        '{"result":"Installed","revision":"x","node":"n","lastGoodRevision":0}',
        '{"result":"Installed","revision":1,"node":"n","lastGoodRevision":0,"steps":[1]}',
        '{"result":"Installed","revision":Infinity,"node":"n","lastGoodRevision":0}',
        '{"result":"Installed","revision":9223372036854775807,"node":"n","lastGoodRevision":0}',
        '{"result":"Installed","revision":-1,"node":"n","lastGoodRevision":0}',
        '{"result":"Installed","revision":1,"node":"n","lastGoodRevision":0,"retry":Infinity}',
        '{"result":"Installed","revision":' + "9" * 5000 + ',"node":"n","lastGoodRevision":0}',
        "[" * 100_000,
    ],
)
def test_other_text_is_not_a_result(text: Any) -> None:
    assert Result.parse(text) is None


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [
        (InstallerOutcome.INSTALLED, False),
        (InstallerOutcome.ROLLED_BACK, True),
        (InstallerOutcome.UNHEALTHY, True),
        (InstallerOutcome.SUPERSEDED, False),
    ],
)
def test_failed_outcomes(outcome: Any, failed: Any) -> None:
    assert Result(outcome, 1, "n", 0).failed is failed
