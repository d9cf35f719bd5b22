"""Tar files that are the same for the same content: sorted, with one time, without owners."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

Content = bytes | Path
"""What a file of a tarball has: bytes, or those of another file, whose mode and links count."""


def write(target: Path, members: Mapping[str, Content], epoch: int) -> None:
    """Write a .tar.gz of files by their paths in it; a folder is given as its files."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        target.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in sorted(members.items()):
            entry = tarfile.TarInfo(name)
            entry.mtime = epoch
            if isinstance(content, bytes):
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
            elif content.is_symlink():
                entry.type, entry.linkname = tarfile.SYMTYPE, str(content.readlink())
                tar.addfile(entry)
            else:
                entry.mode = 0o755 if os.access(content, os.X_OK) else 0o644
                entry.size = content.stat().st_size
                with content.open("rb") as source:
                    tar.addfile(entry, source)


def members(folder: Path, prefix: str) -> dict[str, Content]:
    """The files and links of a folder, below a path of the tarball."""
    return {
        f"{prefix}/{file.relative_to(folder)}": file
        for file in folder.rglob("*")
        if file.is_symlink() or file.is_file()
    }
