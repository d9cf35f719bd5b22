"""The error of a container's log or termination message, as one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kube_scheduler_operator.base import termination_message
from kube_scheduler_operator.base.termination_message import last_error, last_line, message_error

T = "2025-11-21T09:00:00.123456789Z stderr"
INFO = "I1121 09:00:00.000001       1 serving.go:386] Generated self-signed cert in-memory"
EMPTY = "E1121 09:00:00.000001       1 options.go:205] The manifest file is empty, ignoring."
FAILED = (
    'E1121 09:00:00.000002       1 run.go:72] "command failed" '
    r'err="strict decoding error: unknown field \"profiles[0].x\""'
)
WARNED = 'W1121 09:00:00.000001       1 auth.go:1] "Unable to reach" err="connection refused"'

# What kube-scheduler 1.35.4 and 1.37.2 log with an address that the node does not have, between
# these and the error up to some seconds on a busy node.
FLAGS = (
    'I1126 10:36:02.241237   28253 flags.go:64] FLAG: --allow-metric-labels="[]"',
    'I1126 10:36:02.241313   28253 flags.go:64] FLAG: --allow-metric-labels-manifest=""',
)
JSON_FLAGS = (
    r'{"ts":1795689373424.6194,"caller":"flag/flags.go:64",'
    r'"msg":"FLAG: --allow-metric-labels=\"[]\"","v":1}',
    r'{"ts":1795689373424.7307,"caller":"flag/flags.go:64",'
    r'"msg":"FLAG: --allow-metric-labels-manifest=\"\"","v":1}',
)
JSON_INFO = (
    '{"ts":1795689374591.236,"caller":"options/serving.go:386",'
    '"msg":"Generated self-signed cert in-memory","v":0}'
)
UNBOUND = (
    "failed to create listener: failed to listen on 192.0.2.1:10259: listen tcp 192.0.2.1:10259: "
    "bind: cannot assign requested address"
)
BIND = f'E1126 10:36:09.754537   28253 run.go:72] "command failed" err="{UNBOUND}"'
JSON_BIND = (
    f'{{"ts":1795689374591.8777,"caller":"cli/run.go:72","msg":"command failed","err":"{UNBOUND}"}}'
)


def cri(*lines: str, tag: str = "F") -> str:
    return "".join(f"{T} {tag} {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        pytest.param(
            (INFO, FAILED), 'strict decoding error: unknown field "profiles[0].x"', id="err"
        ),
        pytest.param((*FLAGS, INFO, BIND), UNBOUND, id="a log from its first line on"),
        pytest.param((*JSON_FLAGS, JSON_INFO, JSON_BIND), UNBOUND, id="as JSON"),
        pytest.param((BIND, *FLAGS), UNBOUND, id="an error before the last line"),
        pytest.param((WARNED, FAILED, WARNED), last_error([FAILED]), id="an error among warnings"),
        pytest.param(
            ('E1121 09:00:00.000002       1 run.go:72] "command failed" err=EOF',),
            "EOF",
            id="bare err",
        ),
        pytest.param(
            ('E1121 09:00:00.000002       1 server.go:1] "leaderelection lost"',),
            "leaderelection lost",
            id="a message without err",
        ),
        pytest.param(
            ("F1121 09:00:00.000002       1 a.go:1] plain words",), "plain words", id="fatal"
        ),
        pytest.param(
            (FAILED, "panic: runtime error: index out of range [1]", "", "goroutine 1 [running]:",
             "main.main()", "\t/x.go:7 +0x1d"),
            "panic: runtime error: index out of range [1]",
            id="panic",
        ),
        pytest.param(
            ("fatal error: all goroutines are asleep - deadlock!", "", "goroutine 1:"),
            "fatal error: all goroutines are asleep - deadlock!",
            id="fatal error",
        ),
        pytest.param(
            ("Error: unknown flag: --nope", "Usage:", "  kube-scheduler [flags]"),
            "Error: unknown flag: --nope",
            id="flags",
        ),
        pytest.param(
            (r'E1121 09:00:00.000002       1 run.go:72] "x" err="a:\n\tb \\n c"',),
            r"a:; b \n c",
            id="on one line",
        ),
        pytest.param(
            ('and failed" err="the reason"', INFO), "the reason", id="an error that was cut off"
        ),
        pytest.param((WARNED,), "", id="a warning"),
        pytest.param((INFO, 'main.go err="of another line"'), "", id="a line without a header"),
        pytest.param((EMPTY, INFO), "", id="what 1.36 logs at every start"),
        pytest.param((*FLAGS, INFO), "", id="no error"),
        pytest.param((*JSON_FLAGS, JSON_INFO), "", id="no error, as JSON"),
        pytest.param(('{"msg": ',), "", id="a line that was cut off"),
        pytest.param(('["err"]', '{"err": null}'), "", id="other JSON"),
        pytest.param(("", "   "), "", id="blank lines"),
        pytest.param((), "", id="empty"),
    ],
)  # fmt: skip
def test_the_error_of_a_log(lines: tuple[str, ...], error: str) -> None:
    assert last_error(lines) == error


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        pytest.param((*FLAGS, INFO, ""), INFO, id="the last line"),
        pytest.param((INFO, *FLAGS), INFO, id="flags after it"),
        pytest.param((*FLAGS,), "", id="flags"),
        pytest.param(('it-stream="false"', *FLAGS), "", id="flags whose beginning was cut off"),
        pytest.param(('st=\\"[]\\"","v":1}', *JSON_FLAGS), "", id="flags as JSON, cut off"),
        pytest.param((*JSON_FLAGS,), "", id="flags as JSON"),
        pytest.param((*JSON_FLAGS, JSON_INFO), JSON_INFO, id="JSON"),
        pytest.param((), "", id="empty"),
    ],
)
def test_the_last_line_of_a_log_is_never_a_flag(lines: tuple[str, ...], line: str) -> None:
    assert last_line(lines) == line


@pytest.mark.parametrize(
    ("message", "error"),
    [
        pytest.param("\n".join((*FLAGS, INFO, BIND)), UNBOUND, id="error"),
        pytest.param("\n".join((*FLAGS, INFO)), INFO, id="no error"),
        pytest.param("\n".join(FLAGS), "", id="flags"),
        pytest.param("no space left on device\n", "no space left on device", id="plain words"),
        pytest.param(
            ' scheduler name default-scheduler: ScorePlugin \\"Nope\\" does not exist"\n',
            'scheduler name default-scheduler: ScorePlugin \\"Nope\\" does not exist"',
            id="an error whose beginning was cut off",
        ),
        pytest.param("\n \n", "", id="blank"),
    ],
)
def test_the_error_of_a_termination_message(message: str, error: str) -> None:
    assert message_error(message) == error


@pytest.mark.parametrize("pick", [last_error, last_line])
def test_long_lines_are_truncated(pick: Callable[[Sequence[str]], str]) -> None:
    line = f'E1121 09:00:00.000002       1 run.go:72] "x" err="{"y" * 9000}"'
    assert len(pick([line])) == termination_message.LENGTH


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(cri(INFO, FAILED), (INFO, FAILED), id="lines"),
        pytest.param("not in CRI format\n", (), id="another format"),
        pytest.param(f"{T} P one \n{T} P and \n{T} F two\n", ("one and two",), id="parts"),
        pytest.param("rr F half a line\n" + cri(FAILED), (FAILED,), id="cut tail"),
        pytest.param("", (), id="empty"),
    ],
)
def test_lines_of_a_log_file(text: str, lines: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(text)
    assert termination_message.read_tail(path) == lines


def test_only_the_tail_of_a_big_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(cri(FAILED) + cri(INFO) * 2000)
    assert set(termination_message.read_tail(path)) == {INFO}


def test_a_missing_log_has_no_lines(tmp_path: Path) -> None:
    assert termination_message.read_tail(tmp_path / "0.log") == ()


def test_runs_are_those_of_the_static_pod_on_this_node_oldest_first(tmp_path: Path) -> None:
    prefix = "kube-system_kube-scheduler-cp-1_"
    for number, name in enumerate(
        [
            f"{prefix}aaa/kube-scheduler/1.log",
            f"{prefix}aaa/kube-scheduler/0.log",
            f"{prefix}bbb/kube-scheduler/0.log",
            f"{prefix}bbb/other/0.log",
            f"{prefix}bbb/kube-scheduler/0.log.20251121",
            "kube-system_kube-scheduler-cp-2_ccc/kube-scheduler/0.log",
        ]
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (100 - number, 100 - number))
    found = [str(log.path.relative_to(tmp_path)) for log in
             termination_message.logs(tmp_path, prefix, "kube-scheduler")]  # fmt: skip
    assert found == [
        f"{prefix}bbb/kube-scheduler/0.log",
        f"{prefix}aaa/kube-scheduler/0.log",
        f"{prefix}aaa/kube-scheduler/1.log",
    ]


def test_no_log_directory_means_no_runs(tmp_path: Path) -> None:
    assert termination_message.logs(tmp_path / "absent", "x", "y") == []
