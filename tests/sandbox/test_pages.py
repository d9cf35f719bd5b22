"""Pages that are made from a cluster: what is left out, what is hidden, how it becomes Markdown."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cluster import teardown
from cluster.packing import PROFILES, WORKLOADS, Workload
from kube_scheduler_operator.__main__ import PLUGIN_COMMANDS
from pages import kubectl_scheduler, packing, stage, terminal
from pages.text import (
    WIDTH,
    Keep,
    Section,
    Shown,
    anchor,
    block,
    fenced,
    human,
    index,
    page,
    places_in,
    shorten,
    shown_in,
    tree,
    without_places,
)

TEN = "\n".join(str(number) for number in range(10))


# --- shortening -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "keep", "short"),
    [
        (TEN, Keep(10), TEN),
        (TEN, Keep(9), TEN),  # replacing one line by one line gains nothing
        (TEN, Keep(8), "0\n1\n2\n3\n4\n5\n6\n7\n… 2 lines more"),
        (TEN, Keep(1, 2), "0\n… 7 lines more\n8\n9"),
        (TEN, Keep(0, 1), "… 9 lines more\n9"),
        ("", Keep(5), ""),
        ("a  \n\nb\n\n", Keep(5), "a\n\nb"),
        ("\x1b[1mbold\x1b[0m", Keep(5), "bold"),
    ],
)
def test_what_is_left_out_of_an_output_is_counted(text: str, keep: Keep, short: str) -> None:
    assert shorten(text, keep) == short


def test_a_very_long_line_loses_its_end() -> None:
    assert shorten("x" * (WIDTH + 7)) == f"{'x' * WIDTH} … 7 characters more"
    assert shorten("x" * WIDTH) == "x" * WIDTH


def test_a_tree_has_sizes_and_the_first_files_of_every_folder() -> None:
    sizes = {f"report/logs/{number}.log": 1024 for number in range(7)}
    sizes |= {"report/timestamp": 21, "report/nodes/a.yaml": 2048}
    assert tree(sizes).splitlines() == [
        "report/  9 files, 9.0 KiB",
        "  logs/  7 files, 7.0 KiB",
        "    0.log  1.0 KiB",
        "    1.log  1.0 KiB",
        "    2.log  1.0 KiB",
        "    3.log  1.0 KiB",
        "    … 3 files more",
        "  nodes/  1 file, 2.0 KiB",
        "    a.yaml  2.0 KiB",
        "  timestamp  21 B",
    ]


def test_a_tree_leaves_out_folders_as_well() -> None:
    lines = tree({f"pods/{name}/log": 1 for name in "abcdefg"}, most=2).splitlines()
    assert lines[-1] == "  … 5 folders more"
    assert len([line for line in lines if line.endswith("log  1 B")]) == 2


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 20, "3.0 MiB"), (5 << 30, "5.0 GiB")],
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert human(size) == text


# --- this machine -----------------------------------------------------------------------------
PLACES = {"/tmp/x-1": ".", "/home/me": "~", "/home/me/src": "kube-scheduler-operator"}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("wrote /tmp/x-1/heap.pprof", "wrote heap.pprof"),
        ("in /tmp/x-1", "in ."),
        ("/home/me/src/hack", "kube-scheduler-operator/hack"),
        ("/home/me/.kube", "~/.kube"),
        ("/home/melinda", "/home/melinda"),
        ("/tmp/x-10/a", "/tmp/x-10/a"),
    ],
)
def test_folders_of_this_machine_are_replaced_by_known_names(text: str, clean: str) -> None:
    assert without_places(text, PLACES) == clean
    assert places_in(clean, PLACES) == []


def test_a_place_that_is_left_is_found() -> None:
    assert places_in("see /home/me/.kube/config", PLACES) == ["/home/me"]


# --- Markdown ---------------------------------------------------------------------------------
def test_a_console_shows_commands_outputs_and_how_they_ended() -> None:
    shown = block([Shown("kubectl edit", ""), Shown("kubectl scheduler status", "PROBLEM  a", 1)])
    assert shown.splitlines() == [
        "```console",
        "$ kubectl edit",
        "$ kubectl scheduler status",
        "PROBLEM  a",
        "(exit code 1)",
        "```",
    ]


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fenced("````\n````").startswith("`````text\n")


@pytest.mark.parametrize(
    ("title", "fragment"),
    [("A node that is off", "a-node-that-is-off"), ("Don't, at all!", "dont-at-all")],
)
def test_headings_can_be_linked_to(title: str, fragment: str) -> None:
    assert anchor(title) == fragment


def test_the_index_links_to_the_sections_of_a_command() -> None:
    sections = [
        Section("One", "", ((Shown("k diff 1 2", "x"), Shown("k status", "x")),)),
        Section("Two", "", ("a tree", (Shown("k diff", "x"), Shown("k status --help", "x")))),
    ]
    assert index(["diff", "status", "stat"], sections, "k").splitlines()[2:] == [
        "| `diff` | [One](#one), [Two](#two) |",
        "| `status` | [One](#one) |",
        "| `stat` |  |",
    ]


def test_what_a_page_shows_can_be_read_back() -> None:
    shown = (Shown("a --b", "one\ntwo"), Shown("c", "", 2))
    document = page("Title", "Text.", [Section("S", "Why.", (shown, "no console"))])
    assert document.startswith("# Title\n\nText.\n\n## S\n\nWhy.\n\n```console\n")
    assert shown_in(document) == {"a --b": "one\ntwo", "c": "(exit code 2)"}


# --- the commands -----------------------------------------------------------------------------
def test_the_page_is_about_every_command() -> None:
    commands = argparse.ArgumentParser()
    subparsers = commands.add_subparsers()
    for command in PLUGIN_COMMANDS:
        command.load().add_parser(subparsers)
    assert sorted(kubectl_scheduler.COMMANDS) == sorted(_typed(commands))


def _typed(parser: argparse.ArgumentParser, name: str = "") -> list[str]:
    """What is typed for the commands of a parser; groups are none."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    below = [
        typed
        for group in groups
        for choice, word in _first_names(group.choices).items()
        for typed in _typed(choice, f"{name} {word}".strip())
    ]
    return below or [name]


def _first_names(
    choices: Mapping[str, argparse.ArgumentParser],
) -> dict[argparse.ArgumentParser, str]:
    """The name of each command; aliases come after it."""
    names: dict[argparse.ArgumentParser, str] = {}
    for name, parser in choices.items():
        names.setdefault(parser, name)
    return names


def test_a_group_is_explained_before_its_commands() -> None:
    assert kubectl_scheduler.with_groups(["status", "rollout watch", "rollout undo"]) == [
        "status",
        "rollout",
        "rollout watch",
        "rollout undo",
    ]


# --- the stage --------------------------------------------------------------------------------
GOOD = [
    {"type": "NodeInstallerProgressing", "status": "False"},
    {"type": "StaticPodsAvailable", "status": "True"},
    {"type": "NodeControllerDegraded", "status": "False"},
]


@pytest.mark.parametrize(
    ("entries", "conditions", "rests"),
    [
        ([{"nodeName": "a", "currentRevision": 1}], GOOD, True),
        ([], GOOD, False),
        ([{"nodeName": "a", "currentRevision": 1, "targetRevision": 2}], GOOD, False),
        ([{"nodeName": "a"}], GOOD, False),
        ([{"nodeName": "a", "currentRevision": 1}], GOOD[:1], False),
        ([{"nodeName": "a", "currentRevision": 1}],
         [*GOOD, {"type": "StaticPodsDegraded", "status": "True"}], False),
    ],
)  # fmt: skip
def test_a_settled_cluster(
    entries: list[dict[str, object]], conditions: list[dict[str, str]], rests: bool
) -> None:
    assert stage.at_rest({"nodeStatuses": entries, "conditions": conditions}) is rests


def test_a_kubeconfig_with_a_token() -> None:
    made = stage.kubeconfig("https://127.0.0.1:6443", b"PEM", "t")
    assert made["users"][0]["user"] == {"token": "t"}
    assert made["clusters"][0]["cluster"]["certificate-authority-data"] == "UEVN"


# --- leaving nothing behind -------------------------------------------------------------------
@pytest.fixture
def _in_the_foreground() -> Iterator[None]:
    """What is started in the background, as tests may be, ignores SIGINT, and so would this."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_in_the_foreground")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_sandbox_is_taken_down_also_after_a_signal(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    calls = []

    def down(name: str) -> None:
        calls.append(name)
        if len(calls) == 2:
            os.kill(os.getpid(), number)  # a second one does not stop the cleaning

    monkeypatch.setattr(teardown, "down", down)

    def work() -> None:
        with terminal.thrown_away("x"):
            os.kill(os.getpid(), number)
            signal.pause()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert calls == ["x", "x"]


def test_files_and_their_sizes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("123")
    assert terminal.sizes(tmp_path) == {"a/b": 3}


# --- packing ------------------------------------------------------------------------------------
def test_the_page_about_packing_has_a_row_for_each_workload() -> None:
    keys = [(workload.name, name) for workload in WORKLOADS for name in PROFILES]
    simulation = dict.fromkeys(keys, (2.0, 3.0, 4.0))
    text = packing.written(packing.PAGE.read_text(), simulation, dict.fromkeys(keys, (1, 1, 1)))
    rows = [line for line in text.splitlines() if line.endswith("| 3 (2 to 4) / 1 |")]
    assert [row.split(" | ")[0][2:] for row in rows] == [workload.text for workload in WORKLOADS]
    assert packing.written(text, simulation, dict.fromkeys(keys, (1, 1, 1))) == text


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_workload_has_as_many_pods_as_its_objects(workload: Workload) -> None:
    objects = workload.objects("packed")
    counts = [obj["spec"].get("replicas") or obj["spec"]["completions"] for obj in objects]
    assert sum(counts) == workload.pods
    assert {obj["spec"]["template"]["spec"]["schedulerName"] for obj in objects} == {"packed"}
