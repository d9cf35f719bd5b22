"""docs/commands.yaml: what runs each block of commands on a page, or why nothing does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from cluster import paths

SOURCE: Final = paths.REPOSITORY / "docs" / "commands.yaml"
KEYS: Final = ("run", "similar", "script", "not_run")
_BLOCK: Final = re.compile(
    r"^(?: *<!-- commands: (?P<name>.+?) -->\n)?(?P<indent> *)```(?P<language>\w*)\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_SHELL: Final = frozenset({"", "console", "sh", "bash"})
_PROGRAMS: Final = (
    ".venv/bin/", "cp ", "eval ", "export ", "hack/", "helm ", "kind ", "kube-scheduler-operator ",
    "kubectl ", "kubectl-scheduler ", "make ", "pip ", "pipx ", "scp ", "skopeo ", "source ",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """A block of commands on a page."""

    name: str  # of the comment before it; empty without one
    commands: tuple[str, ...]  # without prompts, comments and outputs; a continued line is one


def blocks(text: str) -> list[Block]:
    """The blocks of a page that have a command."""
    return [
        Block(match["name"] or "", commands)
        for match in _BLOCK.finditer(text)
        if match["language"] in _SHELL and (commands := _commands(match["text"]))
    ]


def load(path: Path = SOURCE) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def _commands(text: str) -> tuple[str, ...]:
    joined = re.sub(r"\\\n\s*", "", text)
    # A quotation may go on in the next line.
    joined = re.sub(r"('\{[^'\n]*)\n\s*([^'\n]*\}')", r"\1\2", joined)
    lines = [line.strip() for line in joined.splitlines()]
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return tuple(line for line in prompted or lines if line.startswith(_PROGRAMS))
