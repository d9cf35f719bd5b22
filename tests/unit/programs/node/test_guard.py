"""The guard: when a kubeconfig counts as changed, and how the guard reports it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kube_scheduler_operator.programs.node import guard
from kube_scheduler_operator.programs.node.exit_codes import EXIT_CHANGED
from kube_scheduler_operator.programs.node.guard import GuardOptions
from kube_scheduler_operator.programs.node.kubeconfig import fingerprint


class StoppedError(Exception):
    """There is nothing more in the script."""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.conf"
    path.write_text("first")
    return path


def play(monkeypatch, script) -> None:
    """Do one thing during each of the guard's pauses."""
    steps = iter(script)

    def sleep(_seconds: float) -> None:
        try:
            next(steps)()
        except StopIteration:
            raise StoppedError from None

    monkeypatch.setattr(guard.time, "sleep", sleep)


def nothing() -> None:
    pass


def test_fingerprint_is_short_and_differs_by_content(conf):
    first = fingerprint(conf)
    assert len(first) == 16
    assert fingerprint(conf) == first
    conf.write_text("second")
    assert fingerprint(conf) not in ("", first)


@pytest.mark.parametrize("content", [None, ""])
def test_missing_or_empty_file_has_no_fingerprint(conf, content):
    conf.unlink() if content is None else conf.write_text(content)
    assert fingerprint(conf) == ""


def test_unchanged_file_is_not_reported(monkeypatch, conf):
    play(monkeypatch, [nothing] * 5)
    with pytest.raises(StoppedError):
        guard.wait_for_change(conf, fingerprint(conf), 5.0)


def test_changed_file_is_reported_after_two_equal_reads(monkeypatch, conf):
    half = iter(["sec", "second", "second"])
    play(
        monkeypatch,
        [nothing, lambda: conf.write_text(next(half))] + 2 * [lambda: conf.write_text(next(half))],
    )
    found = guard.wait_for_change(conf, fingerprint(conf), 5.0)
    assert found == fingerprint(conf)
    assert next(half, "") == "", "not before it is complete"


def test_replaced_file_is_reported(monkeypatch, conf):
    known = fingerprint(conf)

    def replace() -> None:
        other = conf.with_suffix(".new")
        other.write_text("second")
        other.replace(conf)

    play(monkeypatch, [replace, nothing])
    assert guard.wait_for_change(conf, known, 5.0) == fingerprint(conf)


def test_temporarily_missing_file_is_not_reported(monkeypatch, conf):
    known = fingerprint(conf)
    play(monkeypatch, [conf.unlink, nothing, lambda: conf.write_text("first"), nothing, nothing])
    with pytest.raises(StoppedError):
        guard.wait_for_change(conf, known, 5.0)


def test_without_known_fingerprint_the_first_one_is_the_baseline(monkeypatch, conf):
    conf.unlink()
    play(
        monkeypatch,
        [
            nothing,
            lambda: conf.write_text("first"),
            nothing,
            lambda: conf.write_text("second"),
            nothing,
        ],
    )
    found = guard.wait_for_change(conf, "", 5.0)
    assert found == fingerprint(conf)
    assert conf.read_text() == "second"


def test_change_before_the_start_is_reported(monkeypatch, conf):
    play(monkeypatch, [nothing] * 3)
    assert guard.wait_for_change(conf, "another", 5.0) == fingerprint(conf)


def test_new_fingerprint_is_the_termination_message(monkeypatch, conf, tmp_path):
    monkeypatch.setattr(guard.signal, "signal", lambda *_: None)
    play(monkeypatch, [nothing] * 3)
    log = tmp_path / "log"
    assert guard.main(GuardOptions(conf, known="another", termination_log=log)) == EXIT_CHANGED
    assert log.read_text() == fingerprint(conf)


@pytest.mark.parametrize(
    ("watched", "words"), [(True, "Watching"), (False, "No kubeconfig to watch")]
)
def test_sigterm_ends_the_guard(conf, tmp_path, watched, words):
    command = [sys.executable, "-u", "-m", "kube_scheduler_operator", "guard"]
    process = subprocess.Popen(
        [
            *command,
            *([f"--kubeconfig={conf}"] if watched else []),
            f"--termination-log={tmp_path / 'log'}",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        assert words in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert not (tmp_path / "log").exists()
