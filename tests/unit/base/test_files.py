"""Files and directories are replaced completely or not at all.

The tables are those of openshift/library-go (atomicdir, TestSync and TestSwap), with one
difference: a missing target is renamed into place, so it is never empty.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kube_scheduler_operator.base.files import (
    Disk,
    File,
    UnsafeNameError,
    replace_directory,
    replace_file,
    replace_link,
)

CERTIFICATE, KEY = b"a certificate", b"a key"


def content(directory):
    """Path -> (bytes, mode) of everything in `directory`."""
    return {
        path.relative_to(directory).as_posix(): (
            path.read_bytes(),
            stat.S_IMODE(path.stat().st_mode),
        )
        for path in directory.rglob("*")
        if path.is_file()
    }


def fill(directory, files):
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
def test_a_directory_gets_exactly_its_files(tmp_path, before, desired, changed):
    target = tmp_path / "target"
    if before is not None:
        fill(target, before)
    files = {name: File(data, mode) for name, (data, mode) in desired.items()}
    assert replace_directory(Disk(), target, files, tmp_path / "staging") is changed
    assert content(target) == desired
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_an_empty_directory_is_a_difference(tmp_path):
    fill(tmp_path / "target", PAIR)
    (tmp_path / "target" / "stray").mkdir()
    files = {name: File(data, mode) for name, (data, mode) in PAIR.items()}
    assert replace_directory(Disk(), tmp_path / "target", files, tmp_path / "staging")
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == ["tls.crt", "tls.key"]


def test_remains_of_a_killed_process_are_replaced(tmp_path):
    fill(tmp_path / "staging", {"stray": (b"x", 0o600)})
    replace_directory(Disk(), tmp_path / "target", {"a": File(b"1")}, tmp_path / "staging")
    assert content(tmp_path / "target") == {"a": (b"1", 0o600)}


def test_modes_do_not_depend_on_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        replace_file(Disk(), tmp_path / "run.sh", File(b"x", 0o755), tmp_path / "scratch")
    finally:
        os.umask(before)
    assert content(tmp_path) == {"run.sh": (b"x", 0o755)}


class FailingDisk(Disk):
    """Fails at the n-th call of one operation."""

    def __init__(self, operation, count):
        self.operation, self.count = operation, count

    def __getattribute__(self, name):
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
def test_a_failure_leaves_the_old_or_the_new_directory(tmp_path, operation, count, new):
    (tmp_path / "elsewhere").mkdir()
    fill(tmp_path / "target", {"tls.crt": (b"old", 0o600)})
    disk = FailingDisk(operation, count)
    files = {name: File(data, mode) for name, (data, mode) in PAIR.items()}
    with pytest.raises(OSError, match="failed"):
        replace_directory(disk, tmp_path / "target", files, tmp_path / "elsewhere" / "staging")
    assert content(tmp_path / "target") == (PAIR if new else {"tls.crt": (b"old", 0o600)})


@pytest.mark.parametrize("operation", ["mkdir", "write", "sync", "rename"])
def test_a_failure_leaves_no_partial_new_directory(tmp_path, operation):
    with pytest.raises(OSError, match="failed"):
        replace_directory(
            FailingDisk(operation, 1), tmp_path / "target", {"a": File(b"1")}, tmp_path / "staging"
        )
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "name", ["../up", "/etc/passwd", "a/../../up", "", ".", "a//b", "a/", "a\0b"]
)
def test_names_outside_the_directory_are_refused(tmp_path, name):
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
def test_directories_are_exchanged(tmp_path, monkeypatch, relative, first, second):
    monkeypatch.chdir(tmp_path)
    base = Path() if relative else tmp_path
    fill(tmp_path / "first", first)
    fill(tmp_path / "second", second)
    Disk().exchange(base / "first", base / "second")
    assert content(tmp_path / "first") == second
    assert content(tmp_path / "second") == first


@pytest.mark.parametrize("present", [(), ("first",), ("second",)], ids=["both", "second", "first"])
def test_a_missing_directory_is_exchanged_with_none(tmp_path, present):
    for name in present:
        (tmp_path / name).mkdir()
    with pytest.raises(FileNotFoundError):
        Disk().exchange(tmp_path / "first", tmp_path / "second")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(present)


def test_a_link_is_replaced_in_one_step(tmp_path):
    replace_link(Disk(), tmp_path / "link", "one", tmp_path / "scratch")
    replace_link(Disk(), tmp_path / "link", "two", tmp_path / "scratch")
    assert str((tmp_path / "link").readlink()) == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
