"""ARCHITECTURE.md, its decisions and the docstrings of packages match the code."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "hack" / "architecture"
PACKAGE = ROOT / "operator" / "kube_scheduler_operator"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PACKAGES = sorted(
    str(path.parent.relative_to(PACKAGE))
    for pattern in ("*/__init__.py", "*/*/__init__.py")
    for path in PACKAGE.glob(pattern)
)


@pytest.fixture(scope="module")
def architecture() -> ModuleType:
    loader = SourceFileLoader("architecture", str(SCRIPT))
    spec = importlib.util.spec_from_loader("architecture", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_pictures_are_up_to_date() -> None:
    subprocess.run([sys.executable, str(SCRIPT), "--check"], check=True)


def test_the_page_is_short_enough_to_be_read_first() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 200


def test_the_index_lists_every_decision_with_its_title() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text().partition("## Decisions")[2]
    listed = re.findall(r"^\* \[(\d{3}) (.+)\]\(docs/decisions/(.+)\)$", page, re.MULTILINE)
    titles = [path.read_text().splitlines()[0].removeprefix("# ") for path in DECISIONS]
    assert [name for _, _, name in listed] == [path.name for path in DECISIONS]
    assert [title for _, title, _ in listed] == titles
    assert [int(number) for number, _, _ in listed] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.name)
def test_a_decision_is_a_page_with_its_context_and_consequences(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert len(text.splitlines()) <= 60
    assert all(section.partition("\n")[2].strip() for section in text.split("\n## ")[1:])


@pytest.mark.parametrize("package", PACKAGES)
def test_the_docstring_of_each_package_states_its_purpose(package: str) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text())) or ""
    assert text.split("\n")[0].endswith("."), f"{package}: docs/packages.md shows this sentence"


def test_no_modules_import_each_other(architecture: ModuleType) -> None:
    known = architecture.modules()
    graph = {name: architecture.imports(name, path, known) for name, path in known.items()}
    assert architecture.cycles(graph) == []


def test_no_two_public_classes_share_a_name() -> None:
    found: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
