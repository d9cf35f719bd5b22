"""The part of docs/openshift-comparison.md about requests: specifications, unit tables and habits.

`openshift_requests.yaml` has the results and the tests that show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

SOURCE: Final = Path(__file__).with_suffix(".yaml")
_BEGIN: Final = "<!-- generated: requests -->"
_END: Final = "<!-- end: requests -->"
_HEAD: Final = """\
## The same requests

Every specification, unit table and habit, with the tests that show the result. A difference
has its reason; [openshift-differences.md](openshift-differences.md) explains it by subject."""


def load() -> list[dict[str, Any]]:
    """The groups of requests."""
    groups: list[dict[str, Any]] = yaml.safe_load(SOURCE.read_text())
    return groups


def is_same(row: Mapping[str, Any]) -> bool:
    """Whether the request has the same result here."""
    return not row["here"] or row["here"].startswith("same")


def mistakes(groups: Sequence[Mapping[str, Any]], known: Mapping[str, Path]) -> list[str]:
    """What is wrong with the source: tests that do not exist, and rows without test or reason."""
    found = []
    for group in groups:
        for row in group["rows"]:
            where = f"{group['title']}: {row['item']}"
            found += [f"{where}: no test {name}" for name in row["tests"] if name not in known]
            if not row["tests"]:
                found.append(f"{where}: no test")
            if not is_same(row) and not row["here"].startswith("different"):
                found.append(f"{where}: neither the same nor different")
            if row["here"] in ("same", "different"):
                found.append(f"{where}: no reason")
    return found


def section(groups: Sequence[Mapping[str, Any]], known: Mapping[str, Path]) -> str:
    """The part of the page, with its marks."""
    rows = [row for group in groups for row in group["rows"]]
    same = sum(map(is_same, rows))
    counts = f"{same} rows are the same, {len(rows) - same} differ."
    parts = [f"{_HEAD} {counts}", *("\n".join(_group(group, known)) for group in groups)]
    return f"{_BEGIN}\n" + "\n\n".join(parts) + f"\n{_END}"


def replaced(page: str, new: str) -> str:
    """The page with a new part.

    Raises:
        ValueError: the page has none.
    """
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"the page has no part between {_BEGIN} and {_END}")
    return f"{before}{new}{after}"


def _group(group: Mapping[str, Any], known: Mapping[str, Path]) -> Iterator[str]:
    yield f"### {group['title']}\n\n{group['text']}\n"
    yield "| Request | | Why | Tests |"
    yield "|---|---|---|---|"
    for row in group["rows"]:
        outcome, _, why = (row["here"] or "same").partition(": ")
        if not why and outcome != "same":
            outcome, why = "same", outcome.removeprefix("same").lstrip(", ")
        links = ", ".join(f"[`{name}`](../{known[name]})" for name in row["tests"])
        item = row["item"].replace("|", "\\|")
        yield f"| {item} | {outcome} | {why} | {links} |"
