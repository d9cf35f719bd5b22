"""Nodes that do not exist yet, as text."""

from __future__ import annotations

from kube_scheduler_operator.cli.simulation.new_nodes import lines, short
from kube_scheduler_operator.simulate.new_nodes import (
    BLOCKED,
    CANNOT,
    FITS,
    SIZE_UNKNOWN,
    UNKNOWN,
    ComingNode,
    NewNode,
)

CANNOT_MAKE = NewNode("NodePool gpu", CANNOT, ("a taint",), command="kubectl describe nodepool gpu")
FITTING = NewNode("NodePool a", FITS, like="node n (m5)", daemons="1 of cpu", command="kubectl a")
FULL = NewNode("node group g", BLOCKED, ("5 of 5",), like="node n", command="kubectl g")
OPEN = NewNode("NodePool b", SIZE_UNKNOWN, ("not known",), command="kubectl b")
DARK = NewNode("node group z", UNKNOWN, ("no node",), command="kubectl z")
MADE = ComingNode("NodeClaim c", "2026", "not Registered", FITS, command="kubectl c")


def test_without_anything_there_is_no_text() -> None:
    assert list(lines([], [])) == []
    assert short([], []) == ""


def test_what_fits_comes_first_each_with_its_causes_and_the_next_command() -> None:
    assert list(lines([CANNOT_MAKE, DARK, FULL, OPEN, FITTING], [MADE])) == [
        "Nodes that are being made:",
        "  NodeClaim c since 2026: not Registered; the Pod fits on it, unless others take its room",
        "    next: kubectl c",
        "Nodes that do not exist yet (each was tried as an empty node):",
        "  NodePool a can make a node on which it fits, like node n (m5)",
        "    DaemonSets take 1 of cpu there",
        "    next: kubectl a",
        "  NodePool b may make a node on which it fits",
        "    not known",
        "    next: kubectl b",
        "  node group g makes no node now (on one like node n it would fit)",
        "    5 of 5",
        "    next: kubectl g",
        "  node group z: whether the Pod fits on a node of it is not known",
        "    no node",
        "    next: kubectl z",
        "  NodePool gpu makes no node on which it fits",
        "    a taint",
        "    next: kubectl describe nodepool gpu",
    ]


def test_many_are_counted() -> None:
    text = list(lines([FITTING] * 10, [MADE] * 8))
    assert "  2 more nodes that are being made (-o json)" in text
    assert text[-1] == "  4 more that could make nodes (-o json)"


def test_the_short_answer_is_the_most_important_one() -> None:
    assert short([CANNOT_MAKE], [MADE]) == (
        "NodeClaim c is being made since 2026 (not Registered); next: kubectl c"
    )
    assert short([CANNOT_MAKE, FULL], []) == (
        "node group g makes no node now (on one like node n it would fit): 5 of 5; 1 more (kubectl "
        "scheduler why); next: kubectl g"
    )
