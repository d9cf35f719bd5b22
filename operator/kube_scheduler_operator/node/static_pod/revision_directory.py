"""A revision's directory on a node, and the proof that it is as an installer wrote it.

    R/kube-scheduler-pod-N/hashes.json    number and content hash of the revision, hash of each file

The hashes are written with the directory, in one step. A program on the node that reads the files
again and finds the same hashes has verified the revision: its number comes from the disk, and
never from the name of an object. Results of installations are not covered.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...base import files
from ...base.revision_number import revision_number
from ..protocol.revision_content import digest

PREFIX: Final = "kube-scheduler-pod-"
POD_FILE: Final = "kube-scheduler-pod.yaml"
OUTCOME_FILE: Final = "outcome.json"
HASHES_FILE: Final = "hashes.json"

_UNHASHED: Final = frozenset({OUTCOME_FILE, HASHES_FILE})
_NUMBER: Final = re.compile(rf"{PREFIX}([1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Hashes:
    """What an installer wrote."""

    revision: int  # the number of the revision
    content: str  # the hash of its ConfigMaps; empty if the operator did not pass it
    files: Mapping[str, str]  # relative path -> SHA-256 of the file, 64 hex digits
    # SHA-256 of the manifest before the kubeconfig changed; it stays in use until the node has
    # permission to restart its scheduler. Empty without one.
    replaced: str = ""

    @classmethod
    def of(cls, revision: int, content: str, data: Mapping[str, bytes]) -> Hashes:
        return cls(revision, content, {name: digest(text) for name, text in data.items()})

    def replacing(self, known: Hashes | None, present: bytes) -> Hashes:
        """Return the hashes after an unedited manifest of the same revision."""
        present_hash, own_hash = digest(present), self.files.get(POD_FILE)
        if known is None:
            return self if present_hash == own_hash else replace(self, replaced=present_hash)
        if present_hash == known.files.get(POD_FILE) != own_hash:
            return replace(self, replaced=present_hash)
        return replace(self, replaced=known.replaced)

    def has_manifest(self, data: bytes) -> bool:
        """Return whether `data` is the manifest that an installer wrote for this revision."""
        return digest(data) in (self.files.get(POD_FILE), self.replaced)

    def serialise(self) -> bytes:
        document = {
            "revision": self.revision,
            "content": self.content,
            "files": dict(self.files),
            "replaced": self.replaced,
        }
        return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes | None) -> Hashes | None:
        """Return the hashes in a file; None if it is missing or invalid."""
        try:
            document = json.loads(data or b"")
            revision = revision_number(document["revision"])
            listed = {str(name): str(value) for name, value in document["files"].items()}
            content, replaced = str(document["content"]), str(document["replaced"])
            return cls(revision, content, listed, replaced) if revision else None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


def directory_of(resource_dir: Path, revision: int) -> Path:
    return resource_dir / f"{PREFIX}{revision}"


def number_of(name: str) -> int:
    """Return the number in the name of a revision's directory; 0 for any other name."""
    match = _NUMBER.fullmatch(name)
    return revision_number(match[1]) if match else 0


def read_hashes(directory: Path) -> Hashes | None:
    """Return the hashes that were written with a directory; None for one of an older operator."""
    if directory.is_symlink():
        return None
    return Hashes.parse(files.read(directory / HASHES_FILE, follow=False))


def edits(directory: Path, hashes: Hashes) -> tuple[str, ...]:
    """Return the files changed, removed or added since, as sorted paths in the directory."""
    present = {
        path: digest_of(directory / path) for path in _present(directory) if path not in _UNHASHED
    }
    known = hashes.files
    return tuple(
        sorted(path for path in {*present, *known} if present.get(path) != known.get(path))
    )


def is_verified(resource_dir: Path, revision: int) -> bool:
    """Return whether the directory of a revision is complete and as an installer wrote it."""
    directory = directory_of(resource_dir, revision)
    hashes = read_hashes(directory)
    return hashes is not None and hashes.revision == revision and not edits(directory, hashes)


def newest_verified(resource_dir: Path) -> int:
    """Return the highest number of a verified revision on this node; 0 without one."""
    try:
        numbers = [number_of(entry.name) for entry in os.scandir(resource_dir)]
    except FileNotFoundError:
        return 0
    return next((n for n in sorted(numbers, reverse=True) if n and is_verified(resource_dir, n)), 0)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file; empty without it."""
    data = files.read(path, follow=False)
    return "" if data is None else digest(data)


def _present(directory: Path, prefix: str = "") -> Iterator[str]:
    """Yield everything in a directory but directories; symbolic links are not followed."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode):
            yield from _present(directory / entry.name, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name
