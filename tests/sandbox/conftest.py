"""The sandbox is a developers' program, not part of the package: make it importable here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hack"))


@pytest.fixture
def state_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for sandboxes' records that is only this test's."""
    from cluster import paths

    monkeypatch.setattr(paths, "state_root", lambda: tmp_path)
    return tmp_path
