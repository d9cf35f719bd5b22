"""Files and directories are replaced completely or not at all.

The tables are those of openshift/library-go (atomicdir, TestSync and TestSwap), with one
difference: a missing target is renamed into place, so it is never empty.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base import files
from kube_scheduler_operator.base.files import (
    Disk,
    File,
    FileTooLargeError,
    UnsafeNameError,
    ensure_file,
    holds,
    read,
    replace_directory,
    replace_file,
    replace_link,
)

CERTIFICATE, KEY = b"a certificate", b"a key"


def content(directory: Any) -> Any:
    """Path -> (bytes, mode) of everything in `directory`."""
    return {
        path.relative_to(directory).as_posix(): (
            path.read_bytes(),
            stat.S_IMODE(path.stat().st_mode),
        )
        for path in directory.rglob("*")
        if path.is_file()
    }


def fill(directory: Any, files: Any) -> None:
    directory.mkdir()
    for name, (data, mode) in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)


PAIR = {"tls.crt": (CERTIFICATE, 0o600), "tls.key": (KEY, 0o600)}


@pytest.mark.parametrize(
    ("before", "desired", "changed"),
    [
        pytest.param(None, {}, True, id="missing, desired empty"),
        pytest.param(None, PAIR, True, id="missing"),
        pytest.param({}, PAIR, True, id="empty"),
        pytest.param({}, {}, False, id="empty, desired empty"),
        pytest.param(PAIR, PAIR, False, id="same"),
        pytest.param({**PAIR, "tls.crt": (b"old", 0o600)}, PAIR, True, id="one changed"),
        pytest.param(
            {"tls.crt": (b"1", 0o600), "tls.key": (b"2", 0o600)}, PAIR, True, id="all changed"
        ),
        pytest.param(
            {"old.crt": (CERTIFICATE, 0o600), "tls.key": (KEY, 0o600)}, PAIR, True, id="renamed"
        ),
        pytest.param({"tls.crt": (CERTIFICATE, 0o600)}, PAIR, True, id="added"),
        pytest.param({**PAIR, "more": (b"x", 0o600)}, PAIR, True, id="deleted"),
        pytest.param(PAIR, {}, True, id="emptied"),
        pytest.param({**PAIR, "tls.key": (KEY, 0o644)}, PAIR, True, id="mode changed"),
        pytest.param(
            None, {"a/b/c.yaml": (b"1", 0o600), "run.sh": (b"2", 0o755)}, True, id="nested"
        ),
        pytest.param({"a/b": (b"1", 0o600)}, {"a": (b"1", 0o600)}, True, id="file for directory"),
    ],
)
def test_a_directory_gets_exactly_its_files(
    tmp_path: Path, before: Any, desired: Any, changed: Any
) -> None:
    target = tmp_path / "target"
    if before is not None:
        fill(target, before)
    files = {name: File(data, mode) for name, (data, mode) in desired.items()}
    assert replace_directory(Disk(), target, files, tmp_path / "staging") is changed
    assert content(target) == desired
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_an_empty_directory_is_a_difference(tmp_path: Path) -> None:
    fill(tmp_path / "target", PAIR)
    (tmp_path / "target" / "stray").mkdir()
    files = {name: File(data, mode) for name, (data, mode) in PAIR.items()}
    assert replace_directory(Disk(), tmp_path / "target", files, tmp_path / "staging")
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == ["tls.crt", "tls.key"]


def test_remains_of_a_killed_process_are_replaced(tmp_path: Path) -> None:
    fill(tmp_path / "staging", {"stray": (b"x", 0o600)})
    replace_directory(Disk(), tmp_path / "target", {"a": File(b"1")}, tmp_path / "staging")
    assert content(tmp_path / "target") == {"a": (b"1", 0o600)}


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        replace_file(Disk(), tmp_path / "run.sh", File(b"x", 0o755), tmp_path / "scratch")
    finally:
        os.umask(before)
    assert content(tmp_path) == {"run.sh": (b"x", 0o755)}


class FailingDisk(Disk):
    """Fails at the n-th call of one operation."""

    def __init__(self, operation: Any, count: Any) -> None:
        self.operation, self.count = operation, count

    def __getattribute__(self, name: Any) -> Any:
        if name == object.__getattribute__(self, "operation"):
            count = object.__getattribute__(self, "count") - 1
            object.__setattr__(self, "count", count)
            if count == 0:
                raise OSError(f"{name} failed")
        return object.__getattribute__(self, name)


@pytest.mark.parametrize(
    ("operation", "count", "new"),
    [
        pytest.param("mkdir", 1, False, id="make staging"),
        pytest.param("write", 1, False, id="first write"),
        pytest.param("write", 2, False, id="second write"),
        pytest.param("sync", 1, False, id="sync staging"),
        pytest.param("exchange", 1, False, id="switch"),
        pytest.param("sync", 2, True, id="sync the target's parent"),
        pytest.param("sync", 3, True, id="sync the staging directory's parent"),
        pytest.param("remove_tree", 2, True, id="remove staging"),
    ],
)
def test_a_failure_leaves_the_old_or_the_new_directory(
    tmp_path: Path, operation: Any, count: Any, new: Any
) -> None:
    (tmp_path / "elsewhere").mkdir()
    fill(tmp_path / "target", {"tls.crt": (b"old", 0o600)})
    disk = FailingDisk(operation, count)
    files = {name: File(data, mode) for name, (data, mode) in PAIR.items()}
    with pytest.raises(OSError, match="failed"):
        replace_directory(disk, tmp_path / "target", files, tmp_path / "elsewhere" / "staging")
    assert content(tmp_path / "target") == (PAIR if new else {"tls.crt": (b"old", 0o600)})


@pytest.mark.parametrize("operation", ["mkdir", "write", "sync", "rename"])
def test_a_failure_leaves_no_partial_new_directory(tmp_path: Path, operation: Any) -> None:
    with pytest.raises(OSError, match="failed"):
        replace_directory(
            FailingDisk(operation, 1), tmp_path / "target", {"a": File(b"1")}, tmp_path / "staging"
        )
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "name", ["../up", "/etc/passwd", "a/../../up", "", ".", "a//b", "a/", "a\0b"]
)
def test_names_outside_the_directory_are_refused(tmp_path: Path, name: Any) -> None:
    fill(tmp_path / "target", PAIR)
    with pytest.raises(UnsafeNameError):
        replace_directory(
            Disk(), tmp_path / "target", {"ok": File(b""), name: File(b"")}, tmp_path / "staging"
        )
    assert content(tmp_path / "target") == PAIR


@pytest.mark.parametrize("relative", [True, False], ids=["relative", "absolute"])
@pytest.mark.parametrize(
    ("first", "second"),
    [({"a": (b"1", 0o600)}, {"b": (b"2", 0o600)}), ({}, {}), ({}, {"b": (b"2", 0o600)})],
    ids=["both filled", "both empty", "one empty"],
)
def test_directories_are_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: Any, first: Any, second: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    base = Path() if relative else tmp_path
    fill(tmp_path / "first", first)
    fill(tmp_path / "second", second)
    Disk().exchange(base / "first", base / "second")
    assert content(tmp_path / "first") == second
    assert content(tmp_path / "second") == first


@pytest.mark.parametrize("present", [(), ("first",), ("second",)], ids=["both", "second", "first"])
def test_a_missing_directory_is_exchanged_with_none(tmp_path: Path, present: Any) -> None:
    for name in present:
        (tmp_path / name).mkdir()
    with pytest.raises(FileNotFoundError):
        Disk().exchange(tmp_path / "first", tmp_path / "second")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(present)


def test_a_link_is_replaced_in_one_step(tmp_path: Path) -> None:
    replace_link(Disk(), tmp_path / "link", "one", tmp_path / "scratch")
    replace_link(Disk(), tmp_path / "link", "two", tmp_path / "scratch")
    assert str((tmp_path / "link").readlink()) == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


# --- symbolic links and other things in place of files --------------------------------------------


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Another directory, with a file that has the same content as ours."""
    path = tmp_path / "victim"
    fill(path, PAIR)
    return path


FILES = {name: File(data) for name, (data, _) in PAIR.items()}


def plant(target: Path, victim: Path, where: str) -> None:
    """Put a link to the victim in place of the target, of a directory in it, or of a file."""
    match where:
        case "target":
            target.symlink_to(victim)
        case "dangling target":
            target.symlink_to(victim / "nothing")
        case "file":
            fill(target, PAIR)
            (target / "tls.key").unlink()
            (target / "tls.key").symlink_to(victim / "tls.key")
        case "staging":
            (target.parent / "staging").symlink_to(victim)


@pytest.mark.parametrize("where", ["target", "dangling target", "file", "staging"])
def test_a_planted_link_is_replaced_and_nothing_is_written_through_it(
    tmp_path: Path, victim: Path, where: Any
) -> None:
    target = tmp_path / "target"
    plant(target, victim, where)
    before = content(victim)
    assert replace_directory(Disk(), target, FILES, tmp_path / "staging")
    assert content(victim) == before
    assert content(target) == PAIR
    assert not any(path.is_symlink() for path in (target, *target.rglob("*")))
    assert not (tmp_path / "staging").is_symlink()


@pytest.mark.parametrize("where", ["target", "file"])
def test_a_link_to_the_same_content_does_not_count_as_the_content(
    tmp_path: Path, victim: Path, where: Any
) -> None:
    plant(tmp_path / "target", victim, where)
    assert not holds(tmp_path / "target", FILES)


def test_a_linked_subdirectory_does_not_count(tmp_path: Path, victim: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "sub").symlink_to(victim)
    assert not holds(target, {f"sub/{name}": file for name, file in FILES.items()})
    assert not holds(target, {})


def test_a_directory_is_not_made_through_a_link(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "link").symlink_to(victim)
    with pytest.raises(NotADirectoryError, match="must be a directory, not a link"):
        Disk().mkdir(tmp_path / "link")


def test_a_file_is_not_written_through_a_link_that_is_planted_at_the_last_moment(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(victim)
    unlink = Path.unlink

    def planting(path: Path, *arguments: Any) -> None:
        unlink(path, *arguments)
        path.symlink_to(victim / "tls.key")

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(Path, "unlink", planting)
    with pytest.raises(FileExistsError):
        Disk().write(tmp_path / "file", File(b"new"))
    assert content(victim) == before


def test_a_file_is_not_written_through_a_link(tmp_path: Path, victim: Path) -> None:
    before = content(victim)
    (tmp_path / "scratch").symlink_to(victim / "tls.key")
    (tmp_path / "file").symlink_to(victim / "tls.crt")
    replace_file(Disk(), tmp_path / "file", File(b"new"), tmp_path / "scratch")
    assert content(victim) == before
    assert (tmp_path / "file").read_bytes() == b"new"
    assert not (tmp_path / "file").is_symlink()


@pytest.mark.parametrize("follow", [True, False])
def test_only_regular_files_are_read(tmp_path: Path, follow: Any) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for a writer
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "directory").mkdir()
    for name in ("pipe", "zero", "directory", "nothing", "pipe/below"):
        assert read(tmp_path / name, follow=follow) is None


def test_a_link_to_a_file_is_read_only_where_links_are_expected(
    tmp_path: Path, victim: Path
) -> None:
    (tmp_path / "link").symlink_to(victim / "tls.key")
    assert read(tmp_path / "link") == KEY
    assert read(tmp_path / "link", follow=False) is None


def test_a_huge_file_is_not_read_into_memory(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(files.LARGEST_FILE + 1)
    with pytest.raises(FileTooLargeError, match="is larger than"):
        read(tmp_path / "huge")


class Recorder(Disk):
    """Records what is renamed and what was synced before."""

    def __init__(self) -> None:
        self.synced: set[Path] = set()
        self.problems: list[str] = []
        self.open: set[Path] = set()

    def write(self, path: Path, file: File) -> None:
        super().write(path, file)  # which syncs the content
        self.open.add(path.parent)

    def sync(self, path: Path) -> None:
        super().sync(path)
        self.synced.add(path)
        self.open.discard(path)

    def _check(self, source: Path) -> None:
        left = [path for path in self.open if path == source or source in path.parents]
        self.problems += [f"{path} is not synced before {source} counts" for path in left]
        self.open.add(source.parent)

    def rename(self, source: Path, target: Path) -> None:
        self._check(source)
        super().rename(source, target)

    def exchange(self, first: Path, second: Path) -> None:
        self._check(first)
        super().exchange(first, second)


@pytest.mark.parametrize("exists", [True, False])
def test_files_and_directories_are_synced_before_a_rename_counts_and_it_after(
    tmp_path: Path, exists: Any
) -> None:
    if exists:
        fill(tmp_path / "target", {"old": (b"old", 0o600)})
    disk = Recorder()
    nested = {f"a/b/{name}": file for name, file in FILES.items()}
    replace_directory(disk, tmp_path / "target", nested, tmp_path / "staging")
    replace_file(disk, tmp_path / "file", File(b"x"), tmp_path / "scratch")
    assert disk.problems == []
    assert disk.open == set(), "the entries of every changed directory are synced in the end"


def test_a_directory_that_has_its_files_already_is_synced(tmp_path: Path) -> None:
    """Its writer may have been killed between the rename and the sync."""
    disk, target = Recorder(), tmp_path / "target"
    nested = {f"a/b/{name}": file for name, file in FILES.items()}
    replace_directory(Disk(), target, nested, tmp_path / "staging")
    assert not replace_directory(disk, target, nested, tmp_path / "staging")
    everything = {target / name for name in nested} | {target / "a", target / "a/b", target}
    assert disk.synced == everything | {tmp_path}


def test_a_file_that_has_its_content_already_is_synced(tmp_path: Path) -> None:
    disk, path = Recorder(), tmp_path / "file"
    ensure_file(disk, path, File(b"x"), tmp_path / "scratch")
    assert disk.synced == {tmp_path}
    inode, disk.synced = path.stat().st_ino, set()
    ensure_file(disk, path, File(b"x"), tmp_path / "scratch")
    assert disk.synced == {path, tmp_path}
    assert path.stat().st_ino == inode
    ensure_file(disk, path, File(b"y"), tmp_path / "scratch")
    assert path.read_bytes() == b"y"


def test_the_entry_of_a_replaced_link_is_synced(tmp_path: Path) -> None:
    disk = Recorder()
    replace_link(disk, tmp_path / "link", "one", tmp_path / "scratch")
    assert disk.problems == []
    assert disk.open == set()


def test_the_content_of_a_file_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").read_bytes())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    Disk().write(tmp_path / "file", File(b"content"))
    assert synced == [b"content"]
