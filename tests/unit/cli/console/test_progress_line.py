"""The line of progress: late, in place, gone at the end, and never part of the output."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TextIO

import pytest

from kube_scheduler_operator.base.progress import Step, collect, step
from kube_scheduler_operator.cli.console import progress_line
from kube_scheduler_operator.cli.console.output import print_lines, print_remark
from kube_scheduler_operator.cli.console.progress_line import LINE
from kube_scheduler_operator.cli.console.visible_stream import guard_streams

from .terminal import Terminal, shown


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_line, "DELAY", 0.05)
    monkeypatch.setattr(progress_line, "_PERIOD", 0.01)
    yield made
    if not made.stream.closed:
        made.close()


def _guarded(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> TextIO | None:
    """Guard the streams of this test; pytest sets its own ones after fixtures."""
    monkeypatch.setattr(sys, "stdout", terminal.stream)
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    return guard_streams()


def _until(terminal: Terminal, text: str) -> None:
    end = time.monotonic() + 20
    while text not in terminal.text:
        assert time.monotonic() < end, terminal.text
        time.sleep(0.01)


def test_it_names_what_is_done_and_is_gone_at_the_end(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LINE.on(_guarded(terminal, monkeypatch)), step("reading pods") as reading:
        reading.done, reading.total, reading.about = 12000, 30000, True
        _until(terminal, "\r\x1b[Kreading pods 12,000 of about 30,000 (0 s)")
        reading.done = 13000
        _until(terminal, "reading pods 13,000")
        assert "\n" not in terminal.text
        assert shown(terminal.text).startswith("reading pods 13,000")
    assert shown(terminal.close()) == ""


def test_output_is_never_mixed_with_it(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        LINE.on(_guarded(terminal, monkeypatch)),
        step("asking kube-scheduler", 7, "questions", done=3),
    ):
        _until(terminal, "asking kube-scheduler 3 of 7 questions")
        print_lines("one", "two")
        print_remark("note: three")
        _until(terminal, "three\n\r\x1b[Kasking")
    assert shown(terminal.close()) == "one\ntwo\nnote: three\n"


def test_a_question_to_the_user_stays(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    with LINE.on(_guarded(terminal, monkeypatch)), step("waiting"):
        _until(terminal, "waiting")
        sys.stdout.write("Write these changes? [y/N] ")
        sys.stdout.flush()
        time.sleep(0.1)
        assert shown(terminal.text) == "Write these changes? [y/N] "


def test_it_is_one_line_of_visible_characters(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        LINE.on(_guarded(terminal, monkeypatch)),
        step("waiting for \x1b]0;title\x07 " + "界" * 60),
    ):
        _until(terminal, "…")
    line = terminal.close().split("\r\x1b[K")[1]
    assert line.startswith(r"waiting for \u001b]0;title\u0007 界")
    assert sum(2 if character == "界" else 1 for character in line) < 60


def test_short_work_shows_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_line, "DELAY", 60.0)
    with LINE.on(_guarded(terminal, monkeypatch)), step("quick"):
        time.sleep(0.1)
    assert terminal.close() == ""


def test_a_watch_that_waits_shows_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "_GAP", 0.05)
    with LINE.on(_guarded(terminal, monkeypatch)):
        with step("reading"):
            _until(terminal, "reading")
        _until(terminal, "s)\r\x1b[K")
        before = terminal.text
        time.sleep(0.1)
        assert terminal.text == before
        assert shown(before) == ""


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_without_escape_sequences_has_no_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    monkeypatch.setenv("TERM", term)
    assert _guarded(terminal, monkeypatch) is None


def test_a_script_has_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with LINE.on(guard_streams()), step("reading"):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_steps_are_nested_and_end() -> None:
    steps: list[Step] = []
    with collect(steps):
        with step("a"), step("b", inner=False), step("c", 2):
            assert [str(one) for one in steps] == ["a", "c 0 of 2"]
        assert steps == []
        with step("b", inner=False):
            assert [str(one) for one in steps] == ["b"]
    with step("not collected"):
        assert steps == []
