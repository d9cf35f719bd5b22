"""ARCHITECTURE.md and the docstrings of packages match the code."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "hack" / "architecture"
PACKAGE = ROOT / "operator" / "kube_scheduler_operator"
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


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


@pytest.mark.parametrize("package", PACKAGES)
def test_the_docstring_of_each_package_has_its_place(
    architecture: ModuleType, package: str
) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text())) or ""
    assert architecture.import_rule(package) in " ".join(text.split()), "see hack/architecture"


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
