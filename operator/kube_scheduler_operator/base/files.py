"""Atomic, durable writes of files, directories and links.

Everything is written next to its destination, on the same file system, and synced before a rename
puts it in place. An existing directory is exchanged with the new one in one step (renameat2 with
RENAME_EXCHANGE): a reader, or a crash, finds the old files or the new ones, never a mixture.

What is there already is synced as well: the process that wrote it may have ended before it did, and
a power cut would undo what a later one has read.

Programs on a node run as root in directories of the host. They never write through a symbolic link
in place of a file or a directory: they replace it, or an error names it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2

DIRECTORY_MODE: Final = 0o755
PRIVATE: Final = 0o600

LARGEST_FILE: Final = 8 * 2**20
"""Bytes of a file that is read; a ConfigMap has at most one MiB."""

Fingerprint: TypeAlias = tuple[tuple[str, int, int], ...]
"""Path, modification time (ns) and size of files."""


class FileTooLargeError(OSError):
    """A file that is larger than any file of the operator."""


class UnsafeNameError(ValueError):
    """A file name that would escape its directory."""


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int = PRIVATE  # permission bits


class Disk:
    """The operations that change the disk, one method each, so that tests can inject failures."""

    def mkdir(self, path: Path) -> None:
        """Create a directory; it may exist.

        Raises:
            NotADirectoryError: something else has its name, for example a symbolic link.
        """
        try:
            path.mkdir(mode=DIRECTORY_MODE)
        except FileExistsError:
            if not stat.S_ISDIR(path.lstat().st_mode):
                raise NotADirectoryError(
                    errno.ENOTDIR, "must be a directory, not a link; remove it", str(path)
                ) from None

    def write(self, path: Path, file: File) -> None:
        """Write and sync a file that has no readers yet."""
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, file.mode)
        try:
            os.fchmod(descriptor, file.mode)  # regardless of the umask
            view = memoryview(file.data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync(self, path: Path) -> None:
        """Sync a directory's entries, or a file's content."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        source.rename(target)

    def exchange(self, first: Path, second: Path) -> None:
        """Exchange two existing names atomically.

        Raises:
            FileNotFoundError: one of them does not exist.
        """
        import ctypes  # slow to import, and only needed to change a directory

        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
        if renameat2(
            _AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE
        ):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(first), None, str(second))

    def unlink(self, path: Path) -> None:
        """Remove a file; it may not exist."""
        path.unlink(missing_ok=True)

    def symlink(self, path: Path, target: str) -> None:
        """Create a symbolic link that has no readers yet."""
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        path.symlink_to(target)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and its content, or a file of that name; it may not exist."""
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(path.lstat().st_mode):
                shutil.rmtree(path)
            else:
                path.unlink()


def read(path: Path, *, follow: bool = True) -> bytes | None:
    """Read a regular file; return None if it does not exist.

    A pipe or a device in its place is closed at once and not read. Without `follow`, neither is a
    symbolic link.

    Raises:
        FileTooLargeError: the file is larger than LARGEST_FILE.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, or a socket
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise FileTooLargeError(errno.EFBIG, f"is larger than {LARGEST_FILE} bytes", str(path))
    return data


def fingerprint(paths: Iterable[str]) -> Fingerprint:
    """Return a value that changes when one of the files at `paths` does."""
    return tuple(_stat(path) for path in paths)


def _stat(path: str) -> tuple[str, int, int]:
    try:
        info = Path(path).stat()
    except OSError:
        return path, 0, 0
    return path, info.st_mtime_ns, info.st_size


def mounted(directory: Path) -> dict[str, dict[str, bytes]]:
    """Read the ConfigMaps or Secrets that are mounted below `directory`, by name and key.

    The mount of an optional object that does not exist is empty.
    """
    return {mount.name: mounted_keys(mount) for mount in sorted(directory.iterdir())}


def mounted_keys(mount: Path) -> dict[str, bytes]:
    """Read the keys of one mounted ConfigMap or Secret."""
    return {
        path.name: path.read_bytes()
        for path in sorted(mount.iterdir())
        if not path.name.startswith("..")  # the hidden directory to which the keys are links
    }


def replace_file(disk: Disk, path: Path, file: File, scratch: Path) -> None:
    """Replace the file `path`, via `scratch` on the same file system."""
    disk.write(scratch, file)
    disk.rename(scratch, path)
    disk.sync(path.parent)


def ensure_file(disk: Disk, path: Path, file: File, scratch: Path) -> None:
    """Replace the file `path` unless it has this content; then only sync it."""
    if read(path, follow=False) == file.data:
        sync_file(disk, path)
    else:
        replace_file(disk, path, file, scratch)


def sync_file(disk: Disk, path: Path) -> None:
    """Sync a file and its entry in the directory."""
    disk.sync(path)
    disk.sync(path.parent)


def sync_directory(disk: Disk, target: Path, names: Iterable[str]) -> None:
    """Sync the directory `target`, which has files of these names, and its own entry."""
    for name in names:
        disk.sync(target / name)
    for directory in reversed(_directories(names)):
        disk.sync(target / directory)
    disk.sync(target)
    disk.sync(target.parent)


def replace_link(disk: Disk, path: Path, target: str, scratch: Path) -> None:
    """Replace the symbolic link `path`, via `scratch` in the same directory."""
    disk.symlink(scratch, target)
    disk.rename(scratch, path)
    disk.sync(path.parent)


def replace_directory(disk: Disk, target: Path, files: Mapping[str, File], staging: Path) -> bool:
    """Make `target` contain exactly `files`, atomically; return whether it changed.

    Args:
        disk: performs the operations.
        target: the directory; its parent must exist.
        files: by relative path with `/`.
        staging: a scratch directory on the same file system; its content is removed.

    Raises:
        UnsafeNameError: a path is absolute or contains `..`; nothing was written.
        OSError: `target` has either its old content or the new one.
    """
    for name in files:
        _check(name)
    if holds(target, files):
        sync_directory(disk, target, files)
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
    if os.path.lexists(target):
        disk.exchange(staging, target)
    else:
        disk.rename(staging, target)
    disk.sync(target.parent)
    if staging.parent != target.parent:
        disk.sync(staging.parent)
    disk.remove_tree(staging)
    return True


def holds(target: Path, files: Mapping[str, File]) -> bool:
    """Return whether `target` contains exactly `files`, with their modes and without links."""
    if target.is_symlink() or not target.is_dir() or set(_present(target)) != set(files):
        return False
    for name, file in files.items():
        path = target / name
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) != file.mode:
            return False
        if read(path, follow=False) != file.data:
            return False
    return True


def _present(directory: Path) -> Iterator[str]:
    for root, directories, names in os.walk(directory):
        relative = Path(root).relative_to(directory)
        yield from ((relative / name).as_posix() for name in names)
        yield from (
            (relative / name).as_posix() for name in directories if Path(root, name).is_symlink()
        )
        if not directories and not names and root != str(directory):
            yield relative.as_posix() + "/"  # an empty directory is a difference as well


def _directories(names: Iterable[str]) -> list[str]:
    """List the directories of files, parents first."""
    parents = {
        parent.as_posix() for name in names for parent in PurePosixPath(name).parents if parent.name
    }
    return sorted(parents)


def _check(name: str) -> None:
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise UnsafeNameError(
            f"file name {name!r} must be a relative path without empty, '.' or '..' components"
        )
