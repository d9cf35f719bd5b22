"""The installer's files on a node, from which it also recovers after a crash.

    R/kube-scheduler-pod-N/configmaps/NAME/KEY             files that revision N's scheduler reads
    R/kube-scheduler-pod-N/kube-scheduler-pod.yaml         manifest of revision N
    R/kube-scheduler-pod-N/effective-config.yaml           config.yaml as completed by the preflight
    R/kube-scheduler-pod-N/hashes.json                     the hash of each of these files
    R/kube-scheduler-pod-N/outcome.json                    result of its installation
    R/kube-scheduler-stock/kube-scheduler.yaml             the manifest that predates the operator
    R/kube-scheduler-stock/kube-scheduler-HASH.yaml        one that kubeadm wrote and was followed
    R/kube-scheduler-stock/refused-HASH.yaml               another one that was replaced
    R/kube-scheduler-stock/edited-HASH.yaml                a revision's manifest that was edited
    R/kube-scheduler-last-known-good                       link to the last healthy manifest
    R/kube-scheduler-swap.json                             the journal of a swap in progress
    R/.kube-scheduler.lock                                 allows one installer at a time

The next manifest is prepared in the manifest directory itself, under a name with a leading dot,
which the kubelet ignores (pkg/kubelet/config/file.go, file_linux.go): a rename from elsewhere could
cross file systems and fail after the old manifest is removed. No other file is created there.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from ...base import files
from ...base.files import Disk, File
from ...base.names import CONTENT_HASH_ANNOTATION, OPERAND
from ..protocol.result import STOCK, Result
from ..protocol.upgrade_request import is_upgrade
from . import disk_state, kubeadm, manifest, revision_directory
from .kubeadm import KubeadmFiles
from .manifest import Manifest
from .revision_directory import HASHES_FILE, OUTCOME_FILE, POD_FILE, PREFIX, Hashes

log = logging.getLogger(__name__)

CONFIGMAPS: Final = "configmaps"
"""Subdirectory of a revision with one directory for each ConfigMap of its scheduler."""

_EFFECTIVE_FILE: Final = "effective-config.yaml"
_STOCK_DIRECTORY: Final = "kube-scheduler-stock"
_STOCK_FILE: Final = "kube-scheduler.yaml"


class Phase(StrEnum):
    """The purpose of a swap in progress."""

    INSTALL = "install"
    ROLLBACK = "rollback"
    RESTORE = "restore"


# Installers of other versions read the journal, so the key in the file stays.
_LAST_ERROR_KEY: Final = "last_words"  # words: allow last words - the key in the file


@dataclass(frozen=True, slots=True)
class Journal:
    """The state of a swap in progress, from which another installer can resume it."""

    revision: int  # the revision to install
    retry: int
    phase: Phase = Phase.INSTALL  # forward, or back to the last good manifest
    reason: str = ""  # why the revision failed; empty before that
    last_error: str = ""  # the last error of its scheduler
    boot_id: str = ""  # the boot during which the manifest of this phase was placed
    # when it was placed, in seconds since boot; None if it is not in place
    placed: float | None = None
    placed_at: float = 0.0  # the same in seconds since 1970, to compare with the times of log files
    # when the API server first failed to answer since then, on the clock of `placed`; `placed` and
    # `placed_at` have been postponed since
    away_since: float | None = None
    # whether it replaces kubeadm's manifest of another version, to which a rollback then returns
    # instead of to an older version of the operator's
    from_kubeadm: bool = False
    # duration of the finished steps in seconds
    steps: Mapping[str, float] = field(default_factory=dict)

    def serialise(self) -> bytes:
        document = {name: getattr(self, name) for name in self.__slots__}
        document[_LAST_ERROR_KEY] = document.pop("last_error")
        if not self.from_kubeadm:
            document.pop("from_kubeadm")  # earlier installers do not know it
        return (json.dumps(document) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes | None) -> Journal | None:
        """Return the journal in a file; None if it is missing or invalid."""
        if data is None:
            return None
        try:
            document = json.loads(data)
            document["last_error"] = document.pop(_LAST_ERROR_KEY, "")
            return cls(**{**document, "phase": Phase(document["phase"])})
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


@dataclass(frozen=True, slots=True)
class RevisionFiles:
    """What an installer puts on its node."""

    target: Manifest  # manifest of the revision
    content: Mapping[str, bytes]  # the other files, by their paths in the revision's directory
    effective: bytes = b""  # the configuration as completed by the preflight; may be empty
    kubeconfig: str = ""  # fingerprint of the node's kubeconfig


class OtherContentError(Exception):
    """The node has a revision of this number with other content: the API forgot that one."""


class Layout:
    """The files of one node, and the operations on them."""

    def __init__(
        self, resource_dir: Path, manifest_path: Path, static_pod_name: str, disk: Disk
    ) -> None:
        self.resource_dir = resource_dir
        self.manifest_path = manifest_path
        self._static_pod_name = static_pod_name
        self._disk = disk
        self.lock = resource_dir / ".kube-scheduler.lock"
        self.last_known_good = resource_dir / "kube-scheduler-last-known-good"
        self.stock = resource_dir / _STOCK_DIRECTORY / _STOCK_FILE
        self._journal = resource_dir / "kube-scheduler-swap.json"
        self._prepared = manifest_path.with_name(f".{manifest_path.name}")
        self._scratch = resource_dir / ".kube-scheduler-scratch"
        self._staging = resource_dir / ".kube-scheduler-staging"

    def revision_dir(self, revision: int) -> Path:
        return revision_directory.directory_of(self.resource_dir, revision)

    # --- the active manifest -----------------------------------------------------------------
    def current(self) -> Manifest | None:
        """Return the manifest in place; None if it is missing."""
        return self._manifest(self.manifest_path)

    def prepare(self, target: Manifest) -> None:
        """Write a copy of `target` that the kubelet ignores, ready to be renamed."""
        if files.read(self._prepared, follow=False) == target.data:
            self._disk.sync(self._prepared)
        else:
            self._disk.write(self._prepared, File(target.data))

    def place(self, target: Manifest) -> None:
        """Replace the manifest by `target` atomically."""
        self.prepare(target)
        self._disk.rename(self._prepared, self.manifest_path)
        self._disk.sync(self.manifest_path.parent)

    def confirm_placed(self) -> None:
        """Sync the manifest in place, which another program wrote, or an installer that ended."""
        files.sync_file(self._disk, self.manifest_path)

    def withdraw(self) -> None:
        """Remove the manifest; the kubelet stops the scheduler."""
        self._disk.unlink(self.manifest_path)
        self._disk.sync(self.manifest_path.parent)

    def leave_running(self) -> None:
        """Ensure that a manifest is in place before a program exits.

        Prefers the last good one: an unproven scheduler without an installer that watches it is
        worse than an old one.
        """
        if self.current() is not None:
            return
        journal = self.journal()
        target = (
            self.fallback(journal)
            or (self.staged(journal.revision) if journal else None)
            or self.newest_staged()
        )
        if target is None:
            log.error("No manifest to restore: the node has neither a stock one nor a revision")
            return
        self.place(target)
        log.info("Restored a manifest before exiting: %s", target.name)

    # --- available manifests -----------------------------------------------------------------
    def stage(self, revision: int, staged: RevisionFiles, content_hash: str = "") -> bool:
        """Write the directory of `revision` atomically; return whether it changed.

        Raises:
            OtherContentError: the node has this revision with other content.
        """
        directory = self.revision_dir(revision)
        known = revision_directory.read_hashes(directory)
        self._check_number(revision, known, content_hash)
        data = {**staged.content, POD_FILE: staged.target.data}
        if staged.effective:
            data[_EFFECTIVE_FILE] = staged.effective
        desired = {path: File(text) for path, text in data.items()}
        hashes = Hashes.of(revision, content_hash, data)
        present = {
            name: File(text)
            for name in (OUTCOME_FILE, POD_FILE, HASHES_FILE)
            if (text := files.read(directory / name, follow=False)) is not None
        }
        if POD_FILE in present:
            hashes = hashes.replacing(known, present[POD_FILE].data)
        desired[HASHES_FILE] = File(hashes.serialise())
        if files.holds(directory, {**present, **desired}):
            files.sync_directory(self._disk, directory, {**present, **desired})
            return False
        like_present = {**desired, **present}
        if HASHES_FILE not in present:  # written by an older operator
            like_present.pop(HASHES_FILE)
        if files.holds(directory, like_present):
            # Only the manifest or the hashes differ. The directory must stay: its mount identifies
            # the running scheduler.
            changed = present.get(POD_FILE) != desired[POD_FILE]
            if changed:
                self._disk.unlink(directory / OUTCOME_FILE)
            for name in (HASHES_FILE, POD_FILE):
                files.replace_file(self._disk, directory / name, desired[name], self._scratch)
            return changed
        return files.replace_directory(self._disk, directory, desired, self._staging)

    def _check_number(self, revision: int, known: Hashes | None, content_hash: str) -> None:
        """Check that the directory of a revision may be written."""
        if revision in self._used_by_others():
            raise OtherContentError(f"the directory of revision {revision} is another operator's")
        if known is None or not known.content or content_hash in ("", known.content):
            return
        active = disk_state.active_revision(self.resource_dir) == revision
        if active or revision_directory.is_verified(self.resource_dir, revision):
            raise OtherContentError(f"the node has revision {revision} with other content")

    def fallback(self, journal: Journal | None) -> Manifest | None:
        """Return the manifest that a failed swap goes back to: the last good one, or kubeadm's."""
        stock = self.adopted() if journal is not None and journal.from_kubeadm else None
        return stock or self.last_good()

    def kubeadm(self) -> KubeadmFiles:
        return kubeadm.read(self.manifest_path, OPERAND, time.time())

    def adopt(self, other: Manifest) -> bool:
        """Save a manifest that the operator did not write, byte for byte.

        The first one is the stock manifest, and the last known good one until a revision is
        healthy. Later ones that are followed (from kubeadm upgrade) are saved beside it under their
        hash. Others, which are only replaced, are saved under another prefix and never restored.

        Returns:
            Whether a removal may restore it.
        """
        stock, newest = files.read(self.stock, follow=False), self.adopted()
        is_newest = newest is not None and newest.data == other.data
        if stock == other.data and is_newest:
            files.sync_file(self._disk, self.stock)
            self._adopt_as_last_known_good()
            return True
        kept = not other.mounts_revision and self._is_followed(other, newest)
        path = self.stock
        if not kept or stock not in (None, other.data):
            kind = "kube-scheduler" if kept else "edited" if other.mounts_revision else "refused"
            path = path.with_name(f"{kind}-{sha256(other.data).hexdigest()[:12]}.yaml")
        # After a downgrade an older one is the newest again.
        if files.read(path, follow=False) != other.data or (kept and not is_newest):
            self._disk.mkdir(path.parent)
            self._disk.sync(path.parent.parent)
            files.replace_file(self._disk, path, File(other.data), self._scratch)
        else:
            files.sync_file(self._disk, path)
        if path == self.stock:
            self._adopt_as_last_known_good()
        return kept

    def _is_followed(self, placed: Manifest, newest: Manifest | None) -> bool:
        """Return whether a manifest in place may succeed the newest adopted one.

        In kubeadm's form, it has the same image, or one that requests an upgrade.
        """
        if not manifest.is_plausible(placed.data):
            return False
        before = kubeadm.image_in(newest.data, OPERAND) if newest is not None else ""
        found = self.kubeadm()
        return (
            not before or found.image == before or is_upgrade(found.image, before, found.api_server)
        )

    def adopted(self) -> Manifest | None:
        """Return the newest adopted manifest that is plausible; None without one."""
        candidates = []
        for path in self.stock.parent.glob("kube-scheduler*.yaml"):
            candidate = self._manifest(path, follow=False)
            if candidate is not None and manifest.is_plausible(candidate.data):
                candidates.append((path.stat().st_mtime_ns, path.name, candidate))
        return max(candidates)[2] if candidates else None

    def _adopt_as_last_known_good(self) -> None:
        if self.last_good() is None:
            self._link(self.stock)

    def last_good(self) -> Manifest | None:
        """Return the last healthy manifest, else the stock one, else None."""
        for path in (self._linked(), self.stock):
            good = self._manifest(path, follow=False) if path is not None else None
            if good is not None and manifest.is_plausible(good.data):
                return good
        return None

    def _linked(self) -> Path | None:
        """Return the target of the link, unless it leads elsewhere."""
        try:
            target = self.last_known_good.readlink()
        except OSError:
            return None
        path = self.resource_dir / target
        inside = len(target.parts) == 2 and not target.is_absolute() and ".." not in target.parts
        return path if inside and not path.parent.is_symlink() else None

    def last_good_revision(self) -> int:
        """Return the revision of the last good manifest; 0 for the stock manifest or none."""
        good = self.last_good()
        return STOCK if good is None or good.revision is None else good.revision

    def active_revision(self) -> int:
        """Return the revision that the node runs or installs, by its disk; 0: none.

        The label of the manifest in place does not count: it can be edited.
        """
        journal = self.journal()
        good = disk_state.active_revision(self.resource_dir)
        verified = revision_directory.is_verified(self.resource_dir, good)
        known = good if verified or self._is_in_place(good) else 0
        return max(known, journal.revision if journal else 0)

    def _is_in_place(self, revision: int) -> bool:
        """Return whether the manifest in place is that of a revision, byte for byte."""
        current, staged = self.current(), self.staged(revision)
        return current is not None and staged is not None and current.data == staged.data

    def is_ours(self, placed: Manifest) -> bool:
        """Return whether an installer wrote the manifest for the revision in its label."""
        if not placed.revision:
            return False
        hashes = revision_directory.read_hashes(self.revision_dir(placed.revision))
        staged = self.staged(placed.revision)
        return (hashes is not None and hashes.has_manifest(placed.data)) or (
            staged is not None and staged.data == placed.data
        )

    def make_last_good(self, revision: int) -> None:
        self._link(self.revision_dir(revision) / POD_FILE)

    def _link(self, path: Path) -> None:
        target = path.relative_to(self.resource_dir).as_posix()
        if self.last_known_good.is_symlink() and str(self.last_known_good.readlink()) == target:
            self._disk.sync(self.last_known_good.parent)
        else:
            files.replace_link(self._disk, self.last_known_good, target, self._scratch)

    def staged(self, revision: int) -> Manifest | None:
        directory = self.revision_dir(revision)
        return (
            None if directory.is_symlink() else self._manifest(directory / POD_FILE, follow=False)
        )

    def prune(self, keep: Collection[int], below: int) -> list[str]:
        """Remove the directories of unneeded revisions below `below`.

        Needed are those in `keep`, the active, the last good and the one being installed.

        Returns:
            Names with the prefix of a revision that are not revisions; they are not removed.
        """
        journal = self.journal()
        needed = {below, self.last_good_revision(), journal.revision if journal else 0, *keep}
        current = self.current()
        if current is not None:
            needed.add(current.revision or STOCK)
        needed |= self._used_by_others()
        strangers = []
        self._disk.remove_tree(self._staging)  # left by an interrupted predecessor
        for path in sorted(self.resource_dir.iterdir()):
            number = revision_directory.number_of(path.name)
            if not number and path.name.startswith(PREFIX):
                strangers.append(path.name)
            elif number and number < below and number not in needed:
                # Rename first: a directory under a revision's name is always complete.
                self._disk.rename(path, self._staging)
                self._disk.sync(self.resource_dir)
                self._disk.remove_tree(self._staging)
        return strangers

    def newest_staged(self) -> Manifest | None:
        """Return the manifest of the highest staged revision: the last resort."""
        numbers = {revision_directory.number_of(path.name) for path in self.resource_dir.iterdir()}
        for number in sorted(numbers - {0}, reverse=True):
            staged = self.staged(number)
            if staged is not None:
                return staged
        return None

    # --- outcomes and journal ----------------------------------------------------------------
    def outcome(self, revision: int) -> Result | None:
        """Return the result of installing `revision` on this node; None if it has not finished."""
        data = files.read(self.revision_dir(revision) / OUTCOME_FILE, follow=False)
        return None if data is None else Result.parse(data)

    def write_outcome(self, result: Result) -> None:
        path = self.revision_dir(result.revision) / OUTCOME_FILE
        data = (result.serialise() + "\n").encode()
        files.ensure_file(self._disk, path, File(data), self._scratch)

    def journal(self) -> Journal | None:
        """Return the journal of the swap in progress; None without one."""
        return Journal.parse(files.read(self._journal, follow=False))

    def write_journal(self, journal: Journal) -> None:
        files.replace_file(self._disk, self._journal, File(journal.serialise()), self._scratch)

    def clear_journal(self) -> None:
        self._disk.unlink(self._journal)
        self._disk.sync(self.resource_dir)

    def clear(self) -> list[str]:
        """Remove all of the operator's files, the adopted manifests last.

        Returns:
            Names with the prefix of a revision that are not revisions; they are not removed.
        """
        self._disk.unlink(self.last_known_good)
        strangers = self.prune((), sys.maxsize)
        for path in (self._journal, self._prepared, self._scratch):
            self._disk.unlink(path)
        self._disk.remove_tree(self.stock.parent)
        self._disk.unlink(self.lock)
        # A guard's Pod creates the directory of upgrades. Both may have other files.
        for directory in (self.resource_dir, kubeadm.upgrade_dir(self.manifest_path)):
            with contextlib.suppress(OSError):
                directory.rmdir()
        return strangers

    def _manifest(self, path: Path, *, follow: bool = True) -> Manifest | None:
        data = files.read(path, follow=follow)
        if data is None:
            return None
        parsed = manifest.parse(data, self._static_pod_name)
        return parsed.of_another_operator() if self._is_foreign(parsed) else parsed

    def _is_foreign(self, parsed: Manifest) -> bool:
        """Return whether another operator made the directory that a manifest mounts.

        Neither has a mark of this one. A directory that is missing proves nothing.
        """
        if not parsed.directory or CONTENT_HASH_ANNOTATION.encode() in parsed.data:
            return False
        directory = self.revision_dir(parsed.directory)
        marks = (HASHES_FILE, OUTCOME_FILE)
        return directory.is_dir() and not any((directory / mark).exists() for mark in marks)

    def _used_by_others(self) -> set[int]:
        """Return the directories without which a manifest of another operator does not start."""
        manifests = (self.current(), self.adopted())
        return {m.directory for m in manifests if m is not None and m.foreign}
