"""The commands of the pages: code blocks after a comment `<!-- commands: NAME -->`.

Placeholders of the image are replaced by that of this checkout; everything else runs as written.
"""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_FOLDERS = (".", "guides", "migrate")
PAGES = (
    REPOSITORY / "README.md",
    *(page for one in _FOLDERS for page in sorted((REPOSITORY / "docs" / one).glob("*.md"))),
)
_BLOCK = re.compile(r"<!-- (?:commands|file): (.+?) -->\n```\w*\n(.*?)```", re.DOTALL)
_OLDER = re.compile(
    r"^(.*)deploy/[\w-]+ +# Kubernetes [\d.]+ to [\d.]+: (deploy/[\w-]+)$", re.MULTILINE
)
"""A command with another folder for older versions of Kubernetes, without mutating policies."""


def has_no_policies(version: str) -> bool:
    """Whether a version of Kubernetes (v1.35.4) is one of those older versions."""
    return int(version.split(".")[1]) < 36


def blocks() -> dict[str, str]:
    """Every named block by its name."""
    found: dict[str, str] = {}
    for page in PAGES:
        for name, text in _BLOCK.findall(page.read_text()):
            assert name not in found, f"{name} is there twice, also in {page.name}"
            found[name] = text
    return found


def commands(name: str, *, older: bool = False) -> str:
    """The commands of a block; `older` chooses what older versions of Kubernetes need."""
    text = blocks()[name]
    if older:
        text = _OLDER.sub(r"\1\2", text)
    return text.replace("REGISTRY/", "localhost/").replace("tag=v0.1.0", "tag=dev")
