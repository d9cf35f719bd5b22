"""The notes of a release: its section of CHANGELOG.md."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cluster.console import SandboxError

UNRELEASED = "Unreleased"


def notes(changelog: str, version: str) -> str:
    """The changes of a version, without its heading; before `prepare`, the unreleased ones.

    Raises:
        SandboxError: the changelog has neither.
    """
    for title in (re.escape(version) + r"(?: - \S+)?", UNRELEASED):
        found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
        if found and found[1].strip():
            return found[1].strip() + "\n"
    raise SandboxError(
        f"CHANGELOG.md has no section {version} and no unreleased changes; add them below "
        "## Unreleased"
    )


def changes(text: str) -> Iterable[tuple[str, str]]:
    """The entries of notes: the kind of change (`added`, `changed` …) and the text in one line."""
    kind, entry = "", ""
    for line in [*text.splitlines(), ""]:
        if entry and line.startswith("  ") and not line.lstrip().startswith("- "):
            entry += f" {line.strip()}"
            continue
        if entry:
            yield kind, entry
            entry = ""
        if heading := re.match(r"### (\w+)", line):
            kind = heading[1].lower()
        elif line.startswith("- "):
            entry = line[2:].strip()
