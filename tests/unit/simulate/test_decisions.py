"""Scores are read out of a log that any program may have written."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.simulate import decisions
from kube_scheduler_operator.simulate.decisions import ScoreLog


def scored(plugin: str, score: str) -> bytes:
    text = f'I1 "Plugin scored node for pod" pod="x/p" plugin="{plugin}" node="n" score={score}\n'
    return text.encode()


def total(node: str, score: str) -> bytes:
    text = f'I1 "Calculated node\'s final score for pod" pod="x/p" node="{node}" score={score}\n'
    return text.encode()


def test_the_last_score_of_a_plugin_counts() -> None:
    log = ScoreLog()
    for line in (scored("Fit", "7"), scored("Fit", "-3"), total("n", "5"), b"score=1"):
        log.take(line)
    assert log.scores == {"x/p": {"n": {"Fit": -3}}}
    assert log.totals == {"x/p": {"n": 5}}


def test_a_log_that_is_not_utf_8_or_has_endless_digits_is_read() -> None:
    log = ScoreLog()
    log.take(scored("Fit", "9" * 5000))
    log.take(total("n", "9" * 5000))
    log.take(scored("?", "1").replace(b"?", b"\xff"))
    assert log.scores == {"x/p": {"n": {"\N{REPLACEMENT CHARACTER}": 1}}}
    assert log.totals == {}


def test_the_scores_that_are_kept_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "_LARGEST", 10 * len(scored("Fit0", "1")))
    log = ScoreLog()
    for number in range(1000):
        log.take(scored(f"Fit{number}", "1"))
        log.take(total(f"n{number}", "1"))
    log.take(scored("Fit0", "2"))
    assert len(log.scores["x/p"]["n"]) + len(log.totals["x/p"]) <= 11
    assert log.scores["x/p"]["n"]["Fit0"] == 2
