"""The last error of a container log, as one sentence."""

from __future__ import annotations

import os

import pytest

from kube_scheduler_operator.base import termination_message

T = "2025-11-21T09:00:00.123456789Z stderr"
INFO = "I1121 09:00:00.000001       1 serving.go:386] Generated self-signed cert in-memory"
EMPTY = "E1121 09:00:00.000001       1 options.go:205] The manifest file is empty, ignoring."
FAILED = (
    'E1121 09:00:00.000002       1 run.go:72] "command failed" '
    r'err="strict decoding error: unknown field \"profiles[0].x\""'
)


def cri(*lines, tag="F"):
    return "".join(f"{T} {tag} {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            cri(INFO, FAILED), 'strict decoding error: unknown field "profiles[0].x"', id="err"
        ),
        pytest.param(
            cri(FAILED, INFO),
            'strict decoding error: unknown field "profiles[0].x"',
            id="an error before the last line",
        ),
        pytest.param(
            cri('E1121 09:00:00.000002       1 run.go:72] "command failed" err=EOF'),
            "EOF",
            id="bare err",
        ),
        pytest.param(
            cri('E1121 09:00:00.000002       1 server.go:1] "leaderelection lost"'),
            "leaderelection lost",
            id="a message without err",
        ),
        pytest.param(
            cri("F1121 09:00:00.000002       1 a.go:1] plain words"), "plain words", id="fatal"
        ),
        pytest.param(
            cri(
                "panic: runtime error: index out of range",
                "",
                "goroutine 1 [running]:",
                "main.main()",
            ),
            "panic: runtime error: index out of range",
            id="panic",
        ),
        pytest.param(
            cri("Error: unknown flag: --nope", "Usage:", "  kube-scheduler [flags]"),
            "Error: unknown flag: --nope",
            id="flags",
        ),
        pytest.param(
            cri('{"ts":1,"msg":"command failed","err":"bad cipher"}'), "bad cipher", id="JSON"
        ),
        pytest.param(cri(EMPTY, INFO), INFO, id="what 1.36 logs at every start"),
        pytest.param(cri(INFO), INFO, id="no error: the last line"),
        pytest.param(cri("", "   "), "", id="blank lines"),
        pytest.param("", "", id="empty"),
        pytest.param("not in CRI format\n", "", id="another format"),
        pytest.param(
            f'{T} P E1121 09:00:00.000002       1 run.go:72] "command failed" err="one \n'
            f'{T} P and \n{T} F two"\n',
            "one and two",
            id="parts",
        ),
        pytest.param(
            "91Z stderr F half a line\n" + cri(FAILED),
            'strict decoding error: unknown field "profiles[0].x"',
            id="cut tail",
        ),
        pytest.param(
            cri('E1121 09:00:00.000002       1 run.go:72] "x" err="a\\n\\tb"'),
            "a b",
            id="on one line",
        ),
    ],
)
def test_extract(text, words):
    assert termination_message.last_error(text) == words


def test_long_messages_are_truncated():
    text = cri(f'E1121 09:00:00.000002       1 run.go:72] "x" err="{"y" * 9000}"')
    assert termination_message.last_error(text) == "y" * termination_message.LENGTH


def test_only_the_tail_of_a_big_log_is_read(tmp_path):
    path = tmp_path / "0.log"
    path.write_text(cri(FAILED) + cri(INFO) * 2000)
    assert termination_message.read_termination_message(path) == INFO


def test_missing_log_has_no_message(tmp_path):
    assert termination_message.read_termination_message(tmp_path / "0.log") == ""


def test_runs_are_those_of_the_static_pod_on_this_node_oldest_first(tmp_path):
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


def test_no_log_directory_means_no_runs(tmp_path):
    assert termination_message.logs(tmp_path / "absent", "x", "y") == []
