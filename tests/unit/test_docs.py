"""What the documentation names exists, and what users meet is documented."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from kube_scheduler_operator.__main__ import FOR_PEOPLE
from kube_scheduler_operator.base import names
from kube_scheduler_operator.cli.programs import operator
from kube_scheduler_operator.migrate.changes import Severity
from kube_scheduler_operator.migrate.old_defaults import GONE
from kube_scheduler_operator.migrate.old_schema import SOURCES
from pages.text import shown_in

from .telemetry.exposition import served_metrics

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


def _section(title: str) -> str:
    return OPERATIONS.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_every_flag_of_the_operator_is_documented() -> None:
    commands = argparse.ArgumentParser().add_subparsers()
    operator.add_parser(commands)
    flags = {
        option
        for action in commands.choices["operator"]._actions
        for option in action.option_strings
        if option.startswith("--") and option != "--help"
    }
    assert set(re.findall(r"`(--[a-z-]+)`", _section("Settings of the operator"))) == flags


def test_every_command_for_people_is_documented() -> None:
    page = (ROOT / "docs" / "kubectl-scheduler.md").read_text()
    documented = re.findall(r"^## (.+)$", page, re.MULTILINE)
    commands = argparse.ArgumentParser().add_subparsers()
    for module in FOR_PEOPLE:
        module.add_parser(commands)
    names_ = [name for name in commands.choices if name != "rollout"]
    assert sorted(documented) == sorted([*names_, "rollout watch", "rollout undo"])


def _leaves(parser: argparse.ArgumentParser, name: str = "") -> dict[str, argparse.ArgumentParser]:
    """The parsers of commands, by what is typed; groups are left out."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return {name: parser} if not groups else {
        typed: leaf
        for group in groups
        for word, below in group.choices.items()
        for typed, leaf in _leaves(below, f"{name} {word}".strip()).items()
    }  # fmt: skip


def test_every_command_and_option_for_people_has_been_run_for_its_page() -> None:
    page = ROOT / "docs" / "kubectl-scheduler-output.md"
    assert page.exists(), "hack/cli-docs makes it"
    shown = shown_in(page.read_text())
    whole = argparse.ArgumentParser()
    commands = whole.add_subparsers()
    for module in FOR_PEOPLE:
        module.add_parser(commands)
    for typed, parser in _leaves(whole).items():
        command = f"kubectl scheduler {typed}"
        runs = [one for one in shown if one == command or one.startswith(f"{command} ")]
        assert [one for one in runs if not one.endswith("--help")], f"{typed} is not shown"
        told = shown[f"{command} --help"]
        options = {option for action in parser._actions for option in action.option_strings}
        assert options <= set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", told)), typed


def test_every_condition_is_documented() -> None:
    conditions = {
        value
        for value in vars(names).values()
        if isinstance(value, str)
        and re.fullmatch(
            r"[A-Z]\w+(Degraded|Progressing|Available|Upgradeable|Settings|Scheduler|Warnings|Holder)",
            value,
        )
        and value not in ("Degraded", "Progressing", "Available", "Upgradeable")
    }
    documented = set(re.findall(r"`([A-Z]\w+)`", _section("What the conditions mean")))
    assert documented == conditions


def test_the_table_of_metrics_is_what_the_operator_serves() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text().partition("## Alerts")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| .+ \|$", page, re.MULTILINE)
    documented = {
        name: (type_, set(re.findall(r"`(\w+)`", labels))) for name, type_, labels in rows
    }
    assert len(documented) == len(rows)
    assert documented == served_metrics()


def test_every_metric_that_is_named_elsewhere_exists() -> None:
    named = re.findall(r"`(kube_scheduler_operator_\w+)", OPERATIONS)
    assert named
    assert set(named) <= set(served_metrics())


def test_the_page_on_converting_has_every_version_and_severity() -> None:
    page = (ROOT / "docs" / "converting.md").read_text()
    table = page.partition("| From |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(v1\w*)`", table, re.MULTILINE)) == set(SOURCES)
    lost = page.partition("## What has no equivalent")[2].partition("## ")[0]
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", lost, re.MULTILINE)[1:]
    assert {severity for _old, _new, severity in rows} == {each.value for each in Severity}
    named = " ".join(old for old, _new, _severity in rows)
    assert [plugin for plugin in GONE if plugin not in named] == []


@pytest.mark.parametrize(
    "page",
    [
        "weak-spots.md",
        "reference-cases.md",
        "operations.md",
        "traps.md",
        "converting.md",
        "checking.md",
        "admission.md",
    ],
)
def test_every_test_that_is_named_exists(page: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / page).read_text()))
    found = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text())
    }
    assert named
    assert named - found == set()
