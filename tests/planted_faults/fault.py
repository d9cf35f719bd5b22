"""A planted fault: a patch of the product, which behaviour it breaks, and the tests that catch it.

A file in `faults/` begins with lines `Fault:` (continued by indented lines) and `Caught-by:` (one
line for each test, as pytest names it without parameters), then a unified diff.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
FAULTS: Final = Path(__file__).with_name("faults")
PRODUCT: Final = ("operator", "templates", "bindata", "deploy", "crds")
"""The directories that a fault may change."""

WHOLE_DIRECTORIES: Final = ("tests/unit/", "tests/sandbox/", "tests/monitoring/")
"""All of their tests belong to `make test`; elsewhere those with a marker of PRESUBMIT do."""


class PatchError(Exception):
    """A patch does not apply, or is not in the format of this module."""


PRESUBMIT: Final = frozenset({"presubmit", "presubmit_first"})
"""The markers of tests, or of some of their parameters, that belong to `make test`."""


@dataclass(frozen=True)
class Hunk:
    """A replacement in one file; lines end with a newline."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Fault:
    """A planted fault."""

    name: str  # the name of its file, without the extension
    description: str  # the behaviour that it breaks
    caught_by: tuple[str, ...]  # `path::test`, without parameters
    hunks: tuple[Hunk, ...]  # its changes

    def patched(self, root: Path) -> dict[Path, str]:
        """The contents of the changed files below `root`, by path.

        Line numbers do not count: the old lines must occur exactly once in the file.

        Raises:
            PatchError: a file or the old lines do not exist, or occur more than once.
        """
        contents: dict[Path, str] = {}
        for hunk in self.hunks:
            path = root / hunk.path
            if not path.is_file():
                raise PatchError(f"{self.name}: {hunk.path} does not exist")
            content = contents.get(path) or path.read_text(encoding="utf-8")
            places = list(re.finditer(f"^{re.escape(hunk.old)}", content, re.MULTILINE))
            if len(places) != 1:
                raise PatchError(
                    f"{self.name}: {hunk.path} has {len(places)} times the lines\n{hunk.old}"
                )
            start, end = places[0].span()
            contents[path] = f"{content[:start]}{hunk.new}{content[end:]}"
        return contents


def all_faults() -> list[Fault]:
    return [read_fault(path) for path in sorted(FAULTS.glob("*.patch"))]


def read_fault(path: Path) -> Fault:
    """The fault in a file.

    Raises:
        PatchError: it is not in the format of this module.
    """
    header, separator, diff = path.read_text(encoding="utf-8").partition("--- a/")
    fields = re.findall(r"^(Fault|Caught-by): (.+(?:\n[ \t]+.+)*)$", header, re.MULTILINE)
    descriptions = [" ".join(text.split()) for field, text in fields if field == "Fault"]
    tests = tuple(text for field, text in fields if field == "Caught-by")
    if len(descriptions) != 1 or not tests or not separator:
        raise PatchError(f"{path.name}: needs one Fault, a Caught-by for each test, and a diff")
    return Fault(path.stem, descriptions[0], tests, _hunks(f"{separator}{diff}", path.name))


def _hunks(diff: str, name: str) -> tuple[Hunk, ...]:
    hunks: list[Hunk] = []
    for part in re.split(r"^--- a/", diff, flags=re.MULTILINE)[1:]:
        source, _, rest = part.partition("\n")
        target, _, body = rest.partition("\n")
        if target != f"+++ b/{source}":
            raise PatchError(
                f"{name}: {source}: a fault changes files and neither adds nor removes one"
            )
        for lines in re.split(r"^@@ .*\n", body, flags=re.MULTILINE)[1:]:
            hunks.append(_hunk(source, lines, name))
    return tuple(hunks)


def _hunk(path: str, lines: str, name: str) -> Hunk:
    sides: Mapping[str, tuple[str, ...]] = {" ": ("old", "new"), "-": ("old",), "+": ("new",)}
    texts = {"old": "", "new": ""}
    for line in lines.splitlines(keepends=True):
        mark, text = (" ", "\n") if line == "\n" else (line[0], line[1:])
        if mark not in sides:
            raise PatchError(f"{name}: {path}: not a line of a unified diff: {line}")
        for side in sides[mark]:
            texts[side] += text
    return Hunk(path, texts["old"], texts["new"])


def belongs_to_presubmit(test: str) -> bool:
    """Whether `make test` runs the test `path::name`.

    Raises:
        LookupError: it does not exist.
    """
    path, _, name = test.partition("::")
    markers = _markers_of_tests(path)
    if name not in markers:
        raise LookupError(f"{test} does not exist")
    return path.startswith(WHOLE_DIRECTORIES) or not markers[name].isdisjoint(PRESUBMIT)


@lru_cache
def _markers_of_tests(path: str) -> Mapping[str, frozenset[str]]:
    """The names of pytest markers by the name of the test function, of the file at `path`."""
    file = REPOSITORY / path
    if not file.is_file():
        return {}
    module = ast.parse(file.read_text(encoding="utf-8"))
    of_module = frozenset(
        marker
        for node in module.body
        if isinstance(node, ast.Assign) and "pytestmark" in map(ast.unparse, node.targets)
        for marker in _marker_names(node.value)
    )
    return {
        node.name: of_module.union(*map(_marker_names, node.decorator_list))
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _marker_names(expression: ast.expr) -> set[str]:
    return set(re.findall(r"\bpytest\.mark\.(\w+)", ast.unparse(expression)))
