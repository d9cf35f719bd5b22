"""hack/bench has no command that nothing runs, and no module that no command uses."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BENCHMARKS = REPOSITORY / "hack" / "benchmarks"
RUN_BY = ("Makefile", "hack/test-parts", "docs/benchmarks.md", "CONTRIBUTING.md")
STARTED = re.compile(r'"benchmarks\.(\w+)"|benchmarks/(\w+)\.py')
"""Modules that run as a process of their own."""


def commands() -> list[str]:
    done = subprocess.run(
        [sys.executable, "hack/bench", "--help"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r"^    ([a-z][a-z-]+)(?: |$)", done.stdout, re.MULTILINE)


def test_every_command_is_run_by_a_target_or_for_the_page_of_benchmarks() -> None:
    text = "\n".join((REPOSITORY / name).read_text() for name in RUN_BY)
    found = commands()
    assert "rollout" in found
    assert [one for one in found if not re.search(rf"hack/bench {one}\b(?!-)", text)] == []


def used(file: Path) -> Iterator[str]:
    """The modules of benchmarks that a file imports or starts."""
    text = file.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "benchmarks":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks."):
            yield str(node.module).partition(".")[2]
    yield from (one or other for one, other in STARTED.findall(text))


def test_every_module_belongs_to_a_command() -> None:
    modules = {path.stem: path for path in BENCHMARKS.glob("*.py") if path.stem != "__init__"}
    left = [REPOSITORY / "hack" / "bench"]
    seen: set[str] = set()
    while left:
        for name in set(used(left.pop())) & set(modules) - seen:
            seen.add(name)
            left.append(modules[name])
    assert set(modules) - seen == set()
