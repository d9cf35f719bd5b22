"""Files, directories and links that appear on disk whole or not at all, whatever is killed when.

Everything is written beside its destination first, on the same file system, and made durable before
one rename puts it in place. A directory that exists with other content changes places with the new
one in a single step (renameat2 with RENAME_EXCHANGE): a reader sees the old files or the new ones,
never a mixture, and a crash leaves one of the two.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2

DIRECTORY_MODE: Final = 0o755
PRIVATE: Final = 0o600


class UnsafeNameError(ValueError):
    """A file name that would leave the directory that it is meant for."""


@dataclass(frozen=True, slots=True)
class File:
    """The content and the permission bits of a file."""

    data: bytes
    mode: int = PRIVATE


class Disk:
    """The operations that change the disk, one method each: the seams where tests fail and kill."""

    def mkdir(self, path: Path) -> None:
        """Make one directory; it may exist."""
        path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)

    def write(self, path: Path, file: File) -> None:
        """Write a file that nobody reads yet, and make its content durable."""
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, file.mode)
        try:
            os.fchmod(descriptor, file.mode)  # whatever the umask is
            view = memoryview(file.data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync(self, directory: Path) -> None:
        """Make the names in `directory` durable."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Give `source` the name `target`, replacing a file of that name."""
        source.rename(target)

    def exchange(self, first: Path, second: Path) -> None:
        """Let two existing names change places in one step.

        Raises:
            FileNotFoundError: one of them does not exist.
        """
        import ctypes  # here, because only a changed directory needs it and it costs milliseconds

        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
        if renameat2(
            _AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE
        ):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(first), None, str(second))

    def unlink(self, path: Path) -> None:
        """Remove a file; it may be gone already."""
        path.unlink(missing_ok=True)

    def symlink(self, path: Path, target: str) -> None:
        """Make a symbolic link that nobody follows yet."""
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        path.symlink_to(target)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory with everything in it; it may be gone already."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)


def read(path: Path) -> bytes | None:
    """The content of a file, None if there is none."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def mounted(directory: Path) -> dict[str, dict[str, bytes]]:
    """The ConfigMaps or Secrets that are mounted below `directory`, by name and key.

    A mount shows its keys as links into a hidden directory, which is none of them; one of an object
    that is optional and not there is empty.
    """
    return {
        mount.name: {
            path.name: path.read_bytes()
            for path in sorted(mount.iterdir())
            if not path.name.startswith("..")
        }
        for mount in sorted(directory.iterdir())
    }


def replace_file(disk: Disk, path: Path, file: File, scratch: Path) -> None:
    """Let `path` be `file`, via `scratch` on the same file system."""
    disk.write(scratch, file)
    disk.rename(scratch, path)
    disk.sync(path.parent)


def replace_link(disk: Disk, path: Path, target: str, scratch: Path) -> None:
    """Let `path` be a symbolic link to `target`, via `scratch` in the same directory."""
    disk.symlink(scratch, target)
    disk.rename(scratch, path)
    disk.sync(path.parent)


def replace_directory(disk: Disk, target: Path, files: Mapping[str, File], staging: Path) -> bool:
    """Let `target` have exactly `files`, all at once; say whether anything had to be done.

    Args:
        disk: what writes.
        target: the directory; its parent must exist.
        files: relative paths with `/`, and what belongs there.
        staging: a name that does not matter on the same file system; what it has is removed.

    Raises:
        UnsafeNameError: a path is absolute or has `..`; nothing was touched.
        OSError: before the switch `target` is as it was, after it `target` is new.
    """
    for name in files:
        _check(name)
    if holds(target, files):
        return False
    disk.remove_tree(staging)
    disk.mkdir(staging)
    for directory in _directories(files):
        disk.mkdir(staging / directory)
    for name, file in files.items():
        disk.write(staging / name, file)
    for directory in reversed(_directories(files)):
        disk.sync(staging / directory)
    disk.sync(staging)
    if target.exists():
        disk.exchange(staging, target)
    else:
        disk.rename(staging, target)
    disk.sync(target.parent)
    if staging.parent != target.parent:
        disk.sync(staging.parent)
    disk.remove_tree(staging)
    return True


def holds(target: Path, files: Mapping[str, File]) -> bool:
    """Whether `target` has exactly `files`, modes included."""
    if not target.is_dir() or set(_present(target)) != set(files):
        return False
    for name, file in files.items():
        path = target / name
        if stat.S_IMODE(path.stat().st_mode) != file.mode or path.read_bytes() != file.data:
            return False
    return True


def _present(directory: Path) -> Iterator[str]:
    for root, directories, names in os.walk(directory):
        relative = Path(root).relative_to(directory)
        yield from ((relative / name).as_posix() for name in names)
        if not directories and not names and root != str(directory):
            yield relative.as_posix() + "/"  # an empty directory is a difference, too


def _directories(files: Mapping[str, File]) -> list[str]:
    """Every directory that `files` need, parents first."""
    parents = {
        parent.as_posix() for name in files for parent in PurePosixPath(name).parents if parent.name
    }
    return sorted(parents)


def _check(name: str) -> None:
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise UnsafeNameError(
            f"file name {name!r} must be a relative path without empty, '.' or '..' components"
        )
