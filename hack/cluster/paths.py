"""Where things are kept, and the locks that make two sandboxes at a time safe."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from cluster.console import say

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
TEMPLATES = Path(__file__).resolve().parent / "templates"

_APP = "kube-scheduler-operator"

_MOMENT: Final = 0.5
"""Seconds of waiting for a lock before a message."""


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable)
    return Path(value) if value else Path.home() / default


def cache_dir() -> Path:
    """What can be made again, but slowly: binaries and image layers; shared by all sandboxes."""
    own = os.environ.get("KUBE_SCHEDULER_OPERATOR_CACHE")
    return Path(own) if own else _xdg("XDG_CACHE_HOME", ".cache") / _APP


def state_root() -> Path:
    """The parent of the sandboxes' own folders.

    Root's are in ``/var/lib``, because nodes need a file system that overlayfs accepts and that
    every user's sandbox agrees about; a user's are below the home directory.
    """
    if os.geteuid() == 0:
        return Path("/var/lib") / f"{_APP}-sandbox"
    return _xdg("XDG_STATE_HOME", ".local/state") / f"{_APP}-sandbox"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; the kernel lets go of it however the process ends.

    The holder may remove the file, so after waiting, check that it is still the same file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("a+") as file:
            if not _lock_soon(file):
                file.seek(0)
                holder = file.read().strip()
                if holder != str(os.getpid()):  # our own threads say themselves what they do
                    say(f"  waiting for process {holder or '?'}, which locks {path} ...")
                fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                file.truncate(0)
                file.write(f"{os.getpid()}\n")
                file.flush()
                yield
                return


def _lock_soon(file: IO[str]) -> bool:
    """Lock it if that is possible within a moment, in which a holder writes down who it is."""
    deadline = time.monotonic() + _MOMENT
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_MOMENT / 20)
        else:
            return True


def write_atomically(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file whole or not at all, so that a killed `up` leaves nothing half-written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content.encode() if isinstance(content, str) else content)
    temporary.chmod(mode)
    temporary.rename(path)
