"""docs/proofs.md: the claims of the documentation and the tests that prove them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from cluster import paths

SOURCE: Final = paths.REPOSITORY / "docs" / "proofs.yaml"
PAGE: Final = paths.REPOSITORY / "docs" / "proofs.md"
_HEAD = """\
# Proofs

Which test shows that a claim of the documentation holds. `hack/proofs` makes this page from
[proofs.yaml](proofs.yaml); a test checks that it is up to date and that every test exists.
`make test-all` and, where it takes hours, `make soak` run them; `make test` runs the fastest
ones ([the rule](../CONTRIBUTING.md#tests)).
"""


def tests(root: Path) -> dict[str, Path]:
    """The file of every test function; the first file, if several have a test of that name."""
    found: dict[str, Path] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        for name in re.findall(r"^\s*(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE):
            found.setdefault(name, path.relative_to(root))
    return found


def unknown_tests(sections: list[dict[str, Any]], known: Mapping[str, Path]) -> list[str]:
    """Tests that are named and do not exist."""
    named = (name for section in sections for row in section["rows"] for name in row["tests"])
    return sorted(set(named) - known.keys())


def load() -> list[dict[str, Any]]:
    sections: list[dict[str, Any]] = yaml.safe_load(SOURCE.read_text())
    return sections


def page(sections: list[dict[str, Any]], known: Mapping[str, Path]) -> str:
    return _HEAD + "".join("\n".join(_section(section, known)) for section in sections)


def _section(section: Mapping[str, Any], known: Mapping[str, Path]) -> Iterator[str]:
    yield f"\n## {section['title']}\n"
    if text := section.get("text", ""):
        yield f"{text}\n"
    if "page" in section:
        yield f"Claimed by [{section['page']}]({section['page']}).\n"
    columns = [*section.get("columns", ["Claim"]), "Tests"]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for row in section["rows"]:
        claim = row["claim"] if isinstance(row["claim"], list) else [row["claim"]]
        links = ", ".join(f"[`{name}`](../{known[name]})" for name in row["tests"])
        yield f"| {' | '.join([*claim, links])} |"
    yield ""
