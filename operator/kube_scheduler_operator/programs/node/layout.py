"""What the installer keeps on a node, and how it finds its way there again after a crash.

    R/kube-scheduler-pod-N/configmaps/NAME/KEY             what the scheduler of revision N reads
    R/kube-scheduler-pod-N/kube-scheduler-pod.yaml         its manifest
    R/kube-scheduler-pod-N/effective-config.yaml           what the preflight made of config.yaml
    R/kube-scheduler-pod-N/outcome.json                    how its installation ended
    R/kube-scheduler-stock/kube-scheduler.yaml             the manifest that was there before us
    R/kube-scheduler-last-known-good                       link to what last was healthy
    R/kube-scheduler-swap.json                             the journal of a swap in progress
    R/.kube-scheduler.lock                                 one installer at a time

The next manifest waits in the manifest directory itself, under a name that begins with a dot, which
the kubelet ignores (pkg/kubelet/config/file.go, file_linux.go): from anywhere else a rename could
cross file systems and fail, when the old manifest is gone already. Nothing else is ever made there.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ...base import files
from ...base.files import Disk, File
from . import manifest
from .result import STOCK, Result

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from .manifest import Manifest

log = logging.getLogger(__name__)

CONFIGMAPS: Final = "configmaps"
"""Directory of a revision that has one directory for each ConfigMap which its scheduler reads."""

_REVISION_PREFIX: Final = "kube-scheduler-pod-"
_REVISION_DIRECTORY: Final = re.compile(rf"^{_REVISION_PREFIX}([1-9][0-9]*)$")
_POD_FILE: Final = "kube-scheduler-pod.yaml"
_EFFECTIVE_FILE: Final = "effective-config.yaml"
_OUTCOME_FILE: Final = "outcome.json"
_STOCK_DIRECTORY: Final = "kube-scheduler-stock"
_STOCK_FILE: Final = "kube-scheduler.yaml"


class Phase(StrEnum):
    """What a swap in progress is about."""

    INSTALL = "install"
    ROLLBACK = "rollback"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Journal:
    """A swap in progress: everything that its successor must know if it is killed.

    Attributes:
        revision: the revision to install.
        retry: which attempt.
        phase: forward, or back to the last good manifest.
        reason: why the revision failed, once it did.
        last_words: what its scheduler said.
        boot_id: the boot during which the manifest of this phase was placed.
        placed: when, in seconds of that boot; None while it is not in its place.
        placed_at: the same in seconds since 1970, for the times of log files.
        away_since: when the API server was first missed since then, on the clock of `placed`; both
            of the above were moved on since.
        steps: seconds that the steps took so far.
    """

    revision: int
    retry: int
    phase: Phase = Phase.INSTALL
    reason: str = ""
    last_words: str = ""
    boot_id: str = ""
    placed: float | None = None
    placed_at: float = 0.0
    away_since: float | None = None
    steps: Mapping[str, float] = field(default_factory=dict)

    def serialise(self) -> bytes:
        """This journal as a file."""
        document = {name: getattr(self, name) for name in self.__slots__}
        return (json.dumps(document) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes | None) -> Journal | None:
        """The journal in a file; None if there is none or it is not one."""
        if data is None:
            return None
        try:
            document = json.loads(data)
            return cls(**{**document, "phase": Phase(document["phase"])})
        except (ValueError, TypeError, KeyError):
            return None


class Layout:
    """The files of one node, and the few ways in which they change."""

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
        """The directory of a revision."""
        return self.resource_dir / f"{_REVISION_PREFIX}{revision}"

    # --- the manifest that the kubelet sees --------------------------------------------------
    def current(self) -> Manifest | None:
        """The manifest in its place, None if there is none."""
        return self._manifest(self.manifest_path)

    def prepare(self, target: Manifest) -> None:
        """Put a copy of `target` where the kubelet does not see it: one rename is left to do."""
        if files.read(self._prepared) != target.data:
            self._disk.write(self._prepared, File(target.data))

    def place(self, target: Manifest) -> None:
        """Let the manifest be `target`; the kubelet sees it whole."""
        self.prepare(target)
        self._disk.rename(self._prepared, self.manifest_path)
        self._disk.sync(self.manifest_path.parent)

    def withdraw(self) -> None:
        """Take the manifest away; the kubelet stops the scheduler."""
        self._disk.unlink(self.manifest_path)
        self._disk.sync(self.manifest_path.parent)

    def leave_running(self) -> None:
        """Make sure that a manifest is in its place: what every end of a program owes the node.

        It is the last good one if there is one: who leaves now watches no longer, and an unproven
        scheduler that nobody watches is worse than an old one.
        """
        if self.current() is not None:
            return
        journal = self.journal()
        target = (
            self.last_good()
            or (self.staged(journal.revision) if journal else None)
            or self.newest_staged()
        )
        if target is None:
            log.error("No manifest to put back: neither a stock one nor a revision is on this node")
            return
        self.place(target)
        log.info("Put a manifest back before leaving: %s", target.name)

    # --- what can be put there ---------------------------------------------------------------
    def stage(
        self, target: Manifest, revision: int, content: Mapping[str, bytes], effective: bytes
    ) -> bool:
        """Write the directory of `revision`, whole or not at all; say whether it was new."""
        directory = self.revision_dir(revision)
        wanted = {path: File(data) for path, data in content.items()}
        wanted[_POD_FILE] = File(target.data)
        if effective:
            wanted[_EFFECTIVE_FILE] = File(effective)
        present = {
            name: File(data)
            for name in (_OUTCOME_FILE, _POD_FILE)
            if (data := files.read(directory / name)) is not None
        }
        if files.holds(directory, {**present, **wanted}):
            return False
        if files.holds(directory, {**wanted, **present}):
            # Only the manifest is another one. The scheduler that runs has this directory mounted,
            # by which it is recognised, so the directory must stay.
            self._disk.unlink(directory / _OUTCOME_FILE)
            files.replace_file(self._disk, directory / _POD_FILE, File(target.data), self._scratch)
            return True
        return files.replace_directory(self._disk, directory, wanted, self._staging)

    def adopt(self, found: Manifest) -> None:
        """Keep a manifest that is not ours, byte for byte.

        The first one is the stock manifest, and the last known good one until ours is healthy.
        Later ones (kubeadm upgrade writes them) are kept beside it under their hash.
        """
        stock = files.read(self.stock)
        if stock == found.data:
            self._adopt_as_last_known_good()
            return
        path = self.stock
        if stock is not None or not manifest.is_plausible(found.data):
            path = path.with_name(f"kube-scheduler-{sha256(found.data).hexdigest()[:12]}.yaml")
        if files.read(path) != found.data:
            self._disk.mkdir(path.parent)
            self._disk.sync(path.parent.parent)
            files.replace_file(self._disk, path, File(found.data), self._scratch)
        if path == self.stock:
            self._adopt_as_last_known_good()

    def adopted(self) -> Manifest | None:
        """The newest manifest that was adopted and can be a pod; None if there is none."""
        found = []
        for path in self.stock.parent.glob("kube-scheduler*.yaml"):
            one = self._manifest(path)
            if one is not None and manifest.is_plausible(one.data):
                found.append((path.stat().st_mtime_ns, path.name, one))
        return max(found)[2] if found else None

    def _adopt_as_last_known_good(self) -> None:
        if self.last_good() is None:
            self._link(self.stock)

    def last_good(self) -> Manifest | None:
        """The manifest that last was healthy, else the stock one, None if there is neither."""
        for path in (self.last_known_good, self.stock):
            found = self._manifest(path)
            if found is not None and manifest.is_plausible(found.data):
                return found
        return None

    def last_good_revision(self) -> int:
        """The revision of the last good manifest; 0 if it is the stock one or there is none."""
        good = self.last_good()
        return STOCK if good is None or good.revision is None else good.revision

    def make_last_good(self, revision: int) -> None:
        """Let `revision` be what the node falls back to."""
        self._link(self.revision_dir(revision) / _POD_FILE)

    def _link(self, path: Path) -> None:
        target = path.relative_to(self.resource_dir).as_posix()
        if not (
            self.last_known_good.is_symlink() and str(self.last_known_good.readlink()) == target
        ):
            files.replace_link(self._disk, self.last_known_good, target, self._scratch)

    def staged(self, revision: int) -> Manifest | None:
        """The manifest of a revision that was staged on this node."""
        return self._manifest(self.revision_dir(revision) / _POD_FILE)

    def prune(self, keep: Collection[int], below: int) -> list[str]:
        """Remove the directories of revisions below `below` that nobody needs.

        Kept are those in `keep`, what runs, what is fallen back to and what is being swapped.

        Returns:
            Names that look like those of revisions and are not; they were left alone.
        """
        journal = self.journal()
        needed = {below, self.last_good_revision(), journal.revision if journal else 0, *keep}
        current = self.current()
        if current is not None:
            needed.add(current.revision or STOCK)
        strangers = []
        self._disk.remove_tree(self._staging)  # of a predecessor that was killed at this
        for path in sorted(self.resource_dir.iterdir()):
            match = _REVISION_DIRECTORY.match(path.name)
            if match is None and path.name.startswith(_REVISION_PREFIX):
                strangers.append(path.name)
            elif match is not None and int(match[1]) < below and int(match[1]) not in needed:
                # Renamed first: a directory under this name is always a whole one.
                self._disk.rename(path, self._staging)
                self._disk.sync(self.resource_dir)
                self._disk.remove_tree(self._staging)
        return strangers

    def newest_staged(self) -> Manifest | None:
        """The manifest of the highest revision on disk: the last straw if nothing else is left."""
        numbers = [
            int(match[1])
            for path in self.resource_dir.iterdir()
            if (match := _REVISION_DIRECTORY.match(path.name))
        ]
        for number in sorted(numbers, reverse=True):
            found = self.staged(number)
            if found is not None:
                return found
        return None

    # --- what happened -----------------------------------------------------------------------
    def outcome(self, revision: int) -> Result | None:
        """How the installation of `revision` ended on this node, None if it did not end."""
        data = files.read(self.revision_dir(revision) / _OUTCOME_FILE)
        return None if data is None else Result.parse(data)

    def write_outcome(self, result: Result) -> None:
        """Remember how an installation ended."""
        path = self.revision_dir(result.revision) / _OUTCOME_FILE
        data = (result.serialise() + "\n").encode()
        if files.read(path) != data:
            files.replace_file(self._disk, path, File(data), self._scratch)

    def journal(self) -> Journal | None:
        """The swap in progress."""
        return Journal.parse(files.read(self._journal))

    def write_journal(self, journal: Journal) -> None:
        """Remember a swap in progress."""
        files.replace_file(self._disk, self._journal, File(journal.serialise()), self._scratch)

    def clear_journal(self) -> None:
        """No swap is in progress any more."""
        if self._journal.exists():
            self._disk.unlink(self._journal)
            self._disk.sync(self.resource_dir)

    def clear(self) -> list[str]:
        """Remove everything that was ever kept here, the adopted manifests last of all.

        Returns:
            Names that look like those of revisions and are not; they were left alone.
        """
        self._disk.unlink(self.last_known_good)
        strangers = self.prune((), sys.maxsize)
        for path in (self._journal, self._prepared, self._scratch):
            self._disk.unlink(path)
        self._disk.remove_tree(self.stock.parent)
        self._disk.unlink(self.lock)
        with contextlib.suppress(OSError):  # it may hold what is not ours
            self.resource_dir.rmdir()
        return strangers

    def _manifest(self, path: Path) -> Manifest | None:
        data = files.read(path)
        return None if data is None else manifest.parse(data, self._static_pod_name)
