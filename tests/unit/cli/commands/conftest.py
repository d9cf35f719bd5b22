"""`validate` as users and pipelines run it: on files of the working directory."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from kube_scheduler_operator.__main__ import main


class WriteFile(Protocol):
    """Writes a file into the working directory; returns its name."""

    def __call__(self, text: str, name: str = "a.yaml") -> str: ...


@pytest.fixture
def write_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteFile:
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "a.yaml") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def validate(*arguments: str) -> int:
    """Run `validate`; returns its exit code."""
    return main(["validate", *arguments])
