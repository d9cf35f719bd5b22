"""The proof that a directory is as an installer wrote it."""

from __future__ import annotations

from pathlib import Path

from kube_scheduler_operator.node.static_pod.revision_directory import (
    HASHES_FILE,
    Hashes,
    read_hashes,
)


def written(directory: Path, revision: int) -> Path:
    directory.mkdir()
    (directory / HASHES_FILE).write_bytes(Hashes(revision, "c", {}).serialise())
    return directory


def test_hashes_are_read_from_a_directory(tmp_path: Path) -> None:
    assert read_hashes(written(tmp_path / "own", 7)) == Hashes(7, "c", {})


def test_a_link_to_a_directory_or_to_its_hashes_proves_nothing(tmp_path: Path) -> None:
    written(tmp_path / "elsewhere", 99)
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / HASHES_FILE).symlink_to(tmp_path / "elsewhere" / HASHES_FILE)
    assert read_hashes(tmp_path / "linked") is None
    assert read_hashes(tmp_path / "own") is None
