"""Problems and states are coloured on a terminal only, and the words stay."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base.foreign_text import visible
from kube_scheduler_operator.cli.console.colour import coloured
from kube_scheduler_operator.cli.console.output import (
    format_table,
    print_document,
    print_lines,
    print_remark,
)
from kube_scheduler_operator.cli.console.visible_stream import guard_streams

from .terminal import Terminal

RED, YELLOW, GREEN, BOLD, END = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[1m", "\x1b[0m"
_SGR = re.compile(r"\x1b\[[0-9]+m")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("PROBLEM  X (Y)", f"{RED}PROBLEM{END}  X (Y)"),
        ("error: no", f"{RED}error{END}: no"),
        ("a.yaml:1:2: warning: b", f"a.yaml:1:2: {YELLOW}warning{END}: b"),
        ("ok           crds    8 kinds", f"{GREEN}ok{END}           crds    8 kinds"),
        ("  not checked  nodes  why", f"  {YELLOW}not checked{END}  nodes  why"),
        ("failed       nodes  why", f"{RED}failed{END}       nodes  why"),
        (
            "Scheduler  Available=False  Degraded=False  Upgradeable=Unknown",
            f"Scheduler  {RED}Available=False{END}  {GREEN}Degraded=False{END}  "
            f"{YELLOW}Upgradeable=Unknown{END}",
        ),
        (
            "Revision   3 was refused, 2 failed; the nodes stay at 1",
            f"Revision   3 {RED}was refused{END}, 2 {RED}failed{END}; the nodes stay at 1",
        ),
        (
            "3    2026-01-03T10:00:00Z  failed",
            f"3    2026-01-03T10:00:00Z  {RED}failed{END}",
        ),
        ("5 pods without a node:", f"{YELLOW}5 pods without a node{END}:"),
        ("It fits on none of 3 nodes:", f"It fits on {RED}none{END} of 3 nodes:"),
        ("Context prod", f"{BOLD}Context prod{END}"),
        ("a sentence about what failed", "a sentence about what failed"),
    ],
)
def test_a_line(line: str, expected: str) -> None:
    assert coloured(line) == expected


def test_cells_of_a_table_by_their_heading() -> None:
    rows = [
        ("NODE", "READY", "STATE", "IMAGE"),
        ("no", "no", "Accepted", "no"),
        ("b", "yes", "LastAcceptedInUse", ""),
        ("c", "1/2", "", ""),
    ]
    text = coloured("\n".join([*format_table(rows), "", "no  no  no"]))
    _, first, second, third, *rest = text.split("\n")
    assert first == f"no    {RED}no{END}     Accepted           no"
    assert second == f"b     yes    {YELLOW}LastAcceptedInUse{END}"
    assert third == f"c     {RED}1/2{END}"
    assert rest == ["", "no  no  no"]


@pytest.mark.parametrize(
    ("heading", "cell", "colour"),
    [
        ("STATE", "open", ""),
        ("STATE", "tainted", YELLOW),
        ("STATE", "unschedulable", YELLOW),
        ("STATE", "not ready", RED),
        ("CPU", "2 of 4 (50 %)", ""),
        ("CPU", "3600m of 4 (90 %)", YELLOW),
        ("MEMORY", "8Gi of 8Gi (100 %)", RED),
        ("CPU FREE", "10", ""),
        ("CPU FREE", "0", RED),
        ("MEMORY FREE", "0", RED),
        ("MEMORY FREE", "not known", ""),
        ("PODS", "109 of 110", ""),
        ("PODS", "110 of 110", RED),
        ("FITS", "0", RED),
        ("FITS", "4", ""),
        ("LOAD", "cpu 42 %, memory 91 % (30 s ago)", YELLOW),
        ("LOAD", "cpu 120 %, memory not known (30 s ago)", RED),
        ("TAINTS", "-", ""),
        ("TAINTS", "spot:PreferNoSchedule", ""),
        ("TAINTS", "spot:PreferNoSchedule, gpu:NoSchedule", YELLOW),
        ("TAINTS", "a:NoExecute, b:NoSchedule, c:NoSchedule, … and 2 more", YELLOW),
        ("TAINTS", "gpu:NoSchedule, node.kubernetes.io/memory-pressure:NoSchedule", RED),
        ("TAINTS", "example.com/memory-pressure:NoSchedule", YELLOW),
    ],
)
def test_a_cell_of_the_table_of_nodes(heading: str, cell: str, colour: str) -> None:
    rows = [("NODE", heading, "ZONE"), ("CPU FREE 0", cell, "0 of 0 (100 %)")]
    _, line = coloured("\n".join(format_table(rows))).split("\n")
    painted = f"{colour}{cell}{END}" if colour else cell
    assert line == f"CPU FREE 0  {painted}{' ' * max(0, len(heading) - len(cell))}  0 of 0 (100 %)"


@given(st.text(alphabet=st.sampled_from("PROBLEM error:failed ok  \n\x1b[31mé\x9b0123Z-/")))
def test_colours_change_no_word_and_are_the_only_escapes(text: str) -> None:
    shown = visible(text)
    assert _SGR.sub("", coloured(shown)) == shown
    assert "\x1b" not in _SGR.sub("", coloured(shown))


def _written(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal.stream)
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    guard_streams()
    print_lines("PROBLEM  \x1b[32mfine\x1b[0m")
    print_remark("error: x")
    print_document({"failed  x": "error: y"}, "json")
    return terminal.close()


def test_a_terminal_gets_colours_and_none_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    text, error, *document = _written(monkeypatch).split("\n")
    assert text == rf"{RED}PROBLEM{END}  \u001b[32mfine\u001b[0m"
    assert error == f"{RED}error{END}: x"
    assert "\x1b" not in "".join(document)


@pytest.mark.parametrize(
    ("environment", "plain"),
    [
        ({"NO_COLOR": "1"}, True),
        ({"NO_COLOR": "0"}, True),
        ({"NO_COLOR": ""}, False),
        ({"TERM": "dumb"}, True),
        ({"TERM": ""}, True),
    ],
)
def test_users_may_refuse_colours(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], *, plain: bool
) -> None:
    text = _written(monkeypatch, **environment)
    assert ("\x1b" not in text) is plain
    assert "PROBLEM" in text


def test_a_pipe_gets_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    guard_streams()
    print_lines("PROBLEM  x")
    print_remark("error: y")
    assert capsys.readouterr() == ("PROBLEM  x\n", "error: y\n")
