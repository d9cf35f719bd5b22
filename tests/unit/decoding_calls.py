"""Where a package decodes JSON and YAML."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

DECODERS: Final = {
    "json": {"load", "loads", "JSONDecoder"},
    "orjson": {"loads"},
    "yaml": {
        "compose", "compose_all", "full_load", "load", "load_all", "parse", "safe_load",
        "safe_load_all", "scan", "unsafe_load",
    },
}  # fmt: skip
"""Module -> what decodes; passing such a function on counts as well."""

METHODS: Final = {"json", "raw_decode"}
"""Methods of responses and decoders, when they are called."""


def decoding(package: Path) -> Iterator[tuple[str, str]]:
    """The file and the function of every decoder that is named in a package."""
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text())
        name = path.relative_to(package).as_posix()
        modules = dict(_imported(tree))
        yield from ((name, function) for function in _uses(tree, "", modules))


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Local name -> module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name, each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module in DECODERS:
            for each in node.names:
                if each.name in DECODERS[node.module]:
                    yield f"{each.asname or each.name}()", node.module


def _uses(node: ast.AST, function: str, modules: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = modules.get(node.value.id, "")
        if node.attr in DECODERS.get(module, ()):
            yield function
    if isinstance(node, ast.Name) and f"{node.id}()" in modules:
        yield function
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in METHODS
    ):
        yield function
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, function, modules)
