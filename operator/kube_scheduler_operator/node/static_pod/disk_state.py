"""The state of this node's disk, for the report of a guard."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...base import files
from ...base.names import OPERAND
from ..protocol.disk_report import DiskReport
from ..protocol.revision_content import digest
from . import kubeadm, manifest, revision_directory
from .kubeconfig import fingerprint

_LINK: Final = "kube-scheduler-last-known-good"
_JOURNAL: Final = "kube-scheduler-swap.json"


@dataclass(frozen=True, slots=True)
class WatchedFiles:
    """The paths that a guard reads; those that are None are not watched."""

    kubeconfig: Path | None = None
    resource_dir: Path | None = None
    manifest_path: Path | None = None
    static_pod_name: str = "kube-scheduler"


def look(watched: WatchedFiles, now: float = 0.0) -> DiskReport:
    """Return the state of the disk now, in seconds since 1970.

    While an installer replaces the scheduler, nothing counts as edited. While `kubeadm upgrade` may
    be running, only its beginning, a missing manifest and its end change the fingerprint: each
    further report would delay the next one.
    """
    kubeconfig_hash = fingerprint(watched.kubeconfig) if watched.kubeconfig else ""
    resource_dir, path = watched.resource_dir, watched.manifest_path
    if resource_dir is None or path is None:
        return DiskReport(kubeconfig=kubeconfig_hash)
    data = files.read(path)
    placed = manifest.parse(data, watched.static_pod_name) if data is not None else None
    revision = active_revision(resource_dir)
    directory = revision_directory.directory_of(resource_dir, revision)
    hashes = revision_directory.read_hashes(directory) if revision else None
    changed: tuple[tuple[str, str], ...] = ()
    if revision and not (resource_dir / _JOURNAL).exists():
        changed = _changed(path, data, directory, hashes)
    written = kubeadm.read(path, OPERAND, now)
    state: object = [written.work, data is None] if written.work else changed
    stock = placed is not None and not placed.mounts_revision
    return DiskReport(
        revision=revision,
        content=hashes.content if hashes is not None else "",
        newest=revision_directory.newest_verified(resource_dir),
        kubeconfig=kubeconfig_hash,
        edits=tuple(name for name, _ in changed),
        missing=tuple(name for name, _ in changed if not os.path.lexists(name)),
        edit=digest(json.dumps(state).encode())[:16] if state else "",
        labelled=(placed.labelled if placed is not None else 0),
        image=written.image if stock else "",
        api_server=written.api_server,
        work=written.work,
    )


def active_revision(resource_dir: Path) -> int:
    """Return the revision that was installed last and stayed healthy; 0: none of the operator's."""
    link = resource_dir / _LINK
    try:
        return revision_directory.number_of(link.readlink().parts[0])
    except (OSError, IndexError):
        return 0


def _changed(
    path: Path,
    data: bytes | None,
    directory: Path,
    hashes: revision_directory.Hashes | None,
) -> tuple[tuple[str, str], ...]:
    """Return the changed files and their hashes; a file that does not exist has an empty one.

    An operator that predates hashes.json left only a copy of the manifest to compare with.
    """
    pod_file = revision_directory.POD_FILE
    manifest_hash = "" if data is None else digest(data)
    if hashes is None:
        installed = files.read(directory / pod_file, follow=False)
        same = installed is None or installed == data
    else:
        same = data is not None and hashes.has_manifest(data)
    changed = [] if same else [(str(path), manifest_hash)]
    if hashes is not None:
        edited = (directory / name for name in revision_directory.edits(directory, hashes))
        changed += [(str(file), revision_directory.digest_of(file)) for file in edited]
    return tuple(changed)
