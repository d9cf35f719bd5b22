"""Sentences in one line are the same ones again."""

from __future__ import annotations

from kube_scheduler_operator.base.sentences import from_one_line, in_one_line


def test_a_sentence_with_several_reasons_stays_one() -> None:
    lost = "1 running pod could no longer be placed: node(s) didn't match; had a taint (shop/ok)"
    text = in_one_line([lost, "", "3 waiting pods could be placed"])
    assert from_one_line(text) == [
        "1 running pod could no longer be placed: node(s) didn't match, had a taint (shop/ok)",
        "3 waiting pods could be placed",
    ]
    assert from_one_line("") == []
