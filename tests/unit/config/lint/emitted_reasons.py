"""The reasons that the modules of `validate` can give to findings, read from their source."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kube_scheduler_operator

ROOT = Path(kube_scheduler_operator.__file__).parent
PACKAGE = kube_scheduler_operator.__name__
START = (
    f"{PACKAGE}.config.lint.validate",
    f"{PACKAGE}.config.lint.reports.report_settings",
)
OF_FINDINGS = ("FileFinding", "Problem", "Finding")
"""The classes whose attribute `reason` a report shows."""
OTHER_CLASSES = ("Event", "Recognition", "Remembered", "SchedulerRequest")
"""Classes with an attribute `reason` of another meaning."""


def emitted_reasons() -> dict[str, set[str]]:
    """Reason -> the places that set it: `module:line`.

    A place is a call of a class of OF_FINDINGS, or of a function with a parameter `reason`, which
    passes it on. A value that is neither a constant nor passed on raises an AssertionError.
    """
    trees = {module: ast.parse(file.read_text()) for module, file in modules().items()}
    takers: dict[str, set[int]] = defaultdict(set)
    private: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for module, tree in trees.items():
        for name, index in _takers(tree):
            (private[module] if name.startswith("_") else takers)[name].add(index)
    found: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call):
                for value in _reasons(call, {**takers, **private[module]}):
                    for reason in _resolve(module, value):
                        found[reason].add(f"{module.removeprefix(f'{PACKAGE}.')}:{call.lineno}")
    return dict(found)


def modules() -> dict[str, Path]:
    """The modules that `validate` can import, also later, with their files."""
    found: dict[str, Path] = {}
    left = list(START)
    while left:
        module = left.pop()
        file = _file(module)
        if module not in found and file is not None:
            found[module] = file
            left += _imports(module, file)
    return found


def _file(module: str) -> Path | None:
    path = ROOT.parent.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


def _imports(module: str, file: Path) -> Iterator[str]:
    parts = module.split(".") + ["__init__"] * (file.name == "__init__.py")
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join([*parts[: -node.level], *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _takers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(function or class, index of its parameter `reason`)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
            names = names[names[:1] in (["self"], ["cls"]) :]
            if "reason" in names:
                yield node.name, names.index("reason")
            elif "reason" in [one.arg for one in node.args.kwonlyargs]:
                yield node.name, -1
        elif isinstance(node, ast.ClassDef) and node.name not in OTHER_CLASSES:
            fields = [
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            ]
            if "reason" in fields:
                assert node.name in OF_FINDINGS, node.name
                yield node.name, fields.index("reason")


def _reasons(call: ast.Call, takers: dict[str, set[int]]) -> Iterator[ast.expr]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    called = call.func.id if isinstance(call.func, ast.Name) else called
    for index in takers.get(called, ()):
        if 0 <= index < len(call.args):
            yield call.args[index]
    if called in takers:
        yield from (each.value for each in call.keywords if each.arg == "reason")


def _resolve(module: str, value: ast.expr) -> set[str]:
    if isinstance(value, ast.IfExp):
        return _resolve(module, value.body) | _resolve(module, value.orelse)
    if isinstance(value, ast.Constant):
        return {str(value.value)}
    if (isinstance(value, ast.Name) and value.id == "reason") or (
        isinstance(value, ast.Attribute) and value.attr == "reason"
    ):
        return set()  # passed on
    names = ast.unparse(value).split(".")
    constant: Any = importlib.import_module(module)
    for name in names:
        constant = getattr(constant, name, None)
    assert isinstance(constant, str), f"{module}:{value.lineno}: {ast.unparse(value)}"
    return {constant}
