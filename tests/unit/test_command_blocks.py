"""Each block of commands on the site's pages is run by something, or states why it is not.

What is not run is parsed: its subcommands and flags, files and fields exist.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kube_scheduler_operator.__main__ import PLUGIN_COMMANDS, kubectl_plugin
from pages import commands, proofs, site_fields, site_navigation
from pages.text import shown_in

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = commands.load()
PAGES: Final = {
    str(page).removeprefix("docs/") if page.parts[0] == "docs" else f"../{page}": ROOT / page
    for page in site_navigation.load(site_fields.pages()).listed
    if (ROOT / page).is_file()
}
BLOCKS: Final = {
    name: found for name, path in PAGES.items() if (found := commands.blocks(path.read_text()))
}
ALL: Final = [
    pytest.param(command, id=f"{name}: {command[:60]}")
    for name, found in BLOCKS.items()
    for block in found
    for command in block.commands
]
PLUGIN: Final = re.compile(
    r"(?:^|[|;&] *)(?:\.venv/bin/)?kubectl[- ]scheduler (.*?)(?=$| \||&&| > | # |  #)"
)


def rows(name: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = DOCUMENT["pages"].get(name, [])
    return found


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_each_block_of_a_page_has_what_runs_it_or_a_reason(name: str) -> None:
    if name in DOCUMENT["generated"]:
        assert name not in DOCUMENT["pages"]
        return
    if test := DOCUMENT["named"].get(name.partition("/")[0]):
        assert [block.commands[0] for block in BLOCKS[name] if not block.name] == []
        assert (ROOT / test).is_file()
        return
    shown = [block.commands[0] for block in BLOCKS[name]]
    described = [row["block"] for row in rows(name)]
    assert len(described) == len(shown), f"{name} has {shown}, docs/commands.yaml {described}"
    for command, start in zip(shown, described, strict=True):
        assert command.startswith(start)


def test_nothing_is_described_that_is_not_on_a_page() -> None:
    assert set(DOCUMENT["pages"]) <= set(BLOCKS)
    assert all((ROOT / program).is_file() for program in DOCUMENT["generated"].values())
    used = {row.get("not_run") for name in BLOCKS for row in rows(name)}
    assert set(DOCUMENT["reasons"]) <= used


def test_what_runs_a_block_exists() -> None:
    known = proofs.tests(ROOT)
    for name in BLOCKS:
        for row in rows(name):
            (key,) = set(row) - {"block"}
            assert key in commands.KEYS
            if key in ("run", "similar"):
                assert row[key] in known, row
            elif key == "script":
                assert (ROOT / row[key]).is_file(), row
            else:
                assert row[key] in DOCUMENT["reasons"] or " " in row[key], row


def test_a_named_block_is_run_by_the_test_that_names_it() -> None:
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    for name, found in BLOCKS.items():
        for block, row in zip(found, rows(name), strict=False):
            if block.name and "run" in row:
                holding = [text for text in texts if f"def {row['run']}(" in text]
                assert any(block.name in text for text in holding), row


def test_a_block_that_made_the_output_page_is_on_it() -> None:
    page = shown_in((ROOT / "docs" / "kubectl-scheduler-output.md").read_text())
    for name, found in BLOCKS.items():
        for block, row in zip(found, rows(name), strict=False):
            if row.get("script") != "hack/cli-docs":
                continue
            for command in block.commands:
                for line in PLUGIN.findall(command):
                    words = " ".join(word for word in line.split()[:2] if word[0].isalpha())
                    known = words if words.startswith("rollout") else words.split()[0]
                    assert any(one.startswith(f"kubectl scheduler {known}") for one in page), line


@cache
def plugin_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kubectl scheduler")
    inner = parser.add_subparsers(required=True)
    for each in PLUGIN_COMMANDS:
        each.load().add_parser(inner)
    return parser


@pytest.mark.parametrize("command", ALL)
def test_flags_of_kubectl_scheduler_exist(command: str) -> None:
    for line in PLUGIN.findall(command):
        if "…" in line or "--help" in line:
            continue
        printed = io.StringIO()
        try:
            with contextlib.redirect_stderr(printed):
                plugin_parser().parse_args(shlex.split(line, comments=True))
        except (SystemExit, argparse.ArgumentError) as error:
            pytest.fail(f"kubectl scheduler {line}: {printed.getvalue()}{error}")


@pytest.mark.parametrize("command", ALL)
def test_files_of_the_repository_exist(command: str) -> None:
    for path in re.findall(r"(?<![\w/.-])((?:docs|deploy|crds|hack)(?:/[\w.-]+)*)", command):
        # What is converted is the reader's, also if a folder there has one of these names.
        if " convert " not in command and (path == "crds" or "/" in path):
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("command", ALL)
def test_fields_of_patches_exist(command: str) -> None:
    match = re.match(r"kubectl patch (\w+) (\S+) .*-p '(.*)'", command)
    if match is None or match[1] == "clusterversion":
        return
    assert unknown_fields(json.loads(match[3]), schemas()[match[1]]) == []


@cache
def schemas() -> dict[str, Any]:
    """The schemas of the kinds by their names in the singular."""
    found = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.*.yaml")]
    return {
        each["spec"]["names"]["singular"]: each["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]
        for each in found
    }


def unknown_fields(value: Any, schema: dict[str, Any]) -> list[str]:
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    known = schema.get("properties", {})
    return [
        name if name not in known else f"{name}.{below}"
        for name, each in value.items()
        for below in (unknown_fields(each, known[name]) if name in known else [""])
    ]


@pytest.mark.parametrize(
    "command",
    [
        command
        for name, found in BLOCKS.items()
        for block, row in zip(found, rows(name), strict=False)
        if row.get("run") == "test_commands_over_examples_end_well"
        for command in block.commands
    ],
)
def test_commands_over_examples_end_well(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in PLUGIN.findall(command):
        arguments = shlex.split(line, comments=True)
        if "docs/examples/" not in line:
            continue
        arguments = [re.sub(r"^docs/", f"{ROOT}/docs/", each) for each in arguments]
        assert kubectl_plugin(arguments) == 0


def test_the_blocks_of_getting_started_are_those_that_the_script_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a cluster, what follows the setup is run here as well."""
    first, second, *_ = BLOCKS["getting-started.md"]
    assert first.name == "getting started without a cluster"
    assert second.name == "getting started on this machine"
    program = (ROOT / "hack" / "getting-started").read_text()
    for block in (first, second):
        assert f'"{block.name.removeprefix("getting started ")}"' in program
    monkeypatch.chdir(ROOT)
    for command in first.commands:
        for line in PLUGIN.findall(command):
            assert kubectl_plugin(shlex.split(line)) == 0


def test_the_matrix_of_upgrades_is_that_of_versions() -> None:
    def table(page: str, heading: str) -> str:
        text = (ROOT / "docs" / page).read_text().partition(f"## {heading}\n\n")[2]
        return text.partition("\n## ")[0].strip()

    assert "| Release |" in table("versions.md", "Compatibility matrix")
    assert table("versions.md", "Compatibility matrix") == table("upgrading.md", "The matrix")
