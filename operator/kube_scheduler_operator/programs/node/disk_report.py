"""What a guard finds on the disk of its node: the JSON in its termination message.

A guard and its operator have no other channel. The operator takes numbers only from here
and from results of installers, never from a label.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...base import files
from ...base.json_text import parse_json
from ...base.limits import MESSAGE
from ...base.names import OPERAND
from ...base.revision_number import revision_number
from . import kubeadm, manifest, revision_directory
from .boot_time import UNKNOWN, BootTime
from .kubeconfig import fingerprint
from .result import MESSAGE_LIMIT

_LINK: Final = "kube-scheduler-last-known-good"
_JOURNAL: Final = "kube-scheduler-swap.json"
_LISTED: Final = 20
_LONGEST_PATH: Final = 150


@dataclass(frozen=True, slots=True)
class DiskReport:
    """The state of a node's disk.

    Attributes:
        revision: the revision that was installed last and stayed healthy; 0: none of the
            operator's.
        content: the content hash of that revision, if its directory is verified.
        newest: the highest number of a verified revision on the node; 0 without one.
        kubeconfig: fingerprint of the scheduler's kubeconfig; empty if it is not watched.
        edits: the files that were changed by hand: the manifest, files of the revision's directory.
        edit: fingerprint of these changes; empty without any.
        labelled: the revision in the label of the manifest in place; 0 without one.
        image: the image in the manifest in place, if kubeadm wrote it.
        api_server: the image of this node's API server; empty if unknown.
        work: the directory of a running `kubeadm upgrade`; empty without one.
        read: when it was read; two reports of the same state are equal.
    """

    revision: int = 0
    content: str = ""
    newest: int = 0
    kubeconfig: str = ""
    edits: tuple[str, ...] = ()
    edit: str = ""
    labelled: int = 0
    image: str = ""
    api_server: str = ""
    work: str = ""
    read: BootTime = field(default=UNKNOWN, compare=False)

    def serialise(self) -> str:
        """One line of JSON that fits into a termination message."""
        shown = [path[-_LONGEST_PATH:] for path in self.edits[:_LISTED]]
        document = {name: getattr(self, name) for name in self.__slots__ if name != "read"}
        document |= {"edits": shown, **self.read.fields()}
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        while len(text.encode()) > MESSAGE_LIMIT:
            shown.pop()
            text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        return text

    @classmethod
    def parse(cls, text: str) -> DiskReport | None:
        """Parse the output of `serialise`; None for anything else."""
        try:
            document: Mapping[str, Any] = parse_json(text, MESSAGE)
            return cls(
                revision=revision_number(document["revision"]),
                content=str(document["content"]),
                newest=revision_number(document["newest"]),
                kubeconfig=str(document["kubeconfig"]),
                edits=tuple(str(path) for path in list(document["edits"])[:_LISTED]),
                edit=str(document["edit"]),
                labelled=revision_number(document["labelled"]),
                image=str(document.get("image", "")),
                api_server=str(document.get("api_server", "")),
                work=str(document.get("work", "")),
                read=BootTime.parse(document),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


@dataclass(frozen=True, slots=True)
class WatchedFiles:
    """The paths that a guard reads; those that are None are not watched."""

    kubeconfig: Path | None = None
    resource_dir: Path | None = None
    manifest_path: Path | None = None
    static_pod_name: str = "kube-scheduler"


def look(watched: WatchedFiles, now: float = 0.0) -> DiskReport:
    """The state of the disk now, in seconds since 1970.

    While an installer replaces the scheduler, nothing counts as edited. A running `kubeadm upgrade`
    is part of the fingerprint, so that its begin and its end are reported.
    """
    found = fingerprint(watched.kubeconfig) if watched.kubeconfig else ""
    resource_dir, path = watched.resource_dir, watched.manifest_path
    if resource_dir is None or path is None:
        return DiskReport(kubeconfig=found)
    data = files.read(path)
    placed = manifest.parse(data, watched.static_pod_name) if data is not None else None
    revision = active_revision(resource_dir)
    directory = revision_directory.directory_of(resource_dir, revision)
    hashes = revision_directory.read_hashes(directory) if revision else None
    changed: tuple[tuple[str, str], ...] = ()
    if revision and not (resource_dir / _JOURNAL).exists():
        changed = _changed(path, data, directory, hashes)
    written = kubeadm.read(path, OPERAND, now)
    state: object = [changed, written.work] if written.work else changed
    stock = placed is not None and not placed.mounts_revision
    return DiskReport(
        revision=revision,
        content=hashes.content if hashes is not None else "",
        newest=revision_directory.newest_verified(resource_dir),
        kubeconfig=found,
        edits=tuple(name for name, _ in changed),
        edit=revision_directory.digest(json.dumps(state).encode())[:16] if state else "",
        labelled=(placed.labelled if placed is not None else 0),
        image=written.image if stock else "",
        api_server=written.api_server,
        work=written.work,
    )


def active_revision(resource_dir: Path) -> int:
    """The revision that was installed last and stayed healthy; 0: none of the operator's."""
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
    """The changed files and their hashes; a file that does not exist has an empty one.

    An operator before hashes.json left only the copy of the manifest to compare with.
    """
    pod_file = revision_directory.POD_FILE
    found = "" if data is None else revision_directory.digest(data)
    if hashes is None:
        installed = files.read(directory / pod_file, follow=False)
        same = installed is None or installed == data
    else:
        same = data is not None and hashes.has_manifest(data)
    changed = [] if same else [(str(path), found)]
    if hashes is not None:
        for name in revision_directory.edits(directory, hashes):
            content = files.read(directory / name, follow=False)
            changed.append(
                (
                    str(directory / name),
                    "" if content is None else revision_directory.digest(content),
                )
            )
    return tuple(changed)
