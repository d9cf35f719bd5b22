"""The kube-schedulers of this machine by minor version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...config.language.plugins.in_tree_plugins import PRE_RELEASES
from ...config.language.versions import Version
from ...simulate.find_program import candidates, find_binary
from ...simulate.process import SimulationError, binary_version
from ...simulate.upgrade_programs import Program
from ..console.errors import UsageError


class Programs:
    """The kube-schedulers of this machine; those that the user names come first."""

    def __init__(self, named: Sequence[str]) -> None:
        self._named = [Path(find(name)) for name in named]
        self._versions: dict[Path, Version | None] = {}

    def of(self, version: Version) -> Program | None:
        """Return a kube-scheduler of a minor version; None: this machine has none."""
        for path in self._named:
            if self._is_of(path, version):
                return Program(path, self._version(path) or version, named=True)
        for path in candidates(str(version)):
            if self._is_of(path, version):
                return Program(path, self._version(path) or version)
        return None

    def _is_of(self, path: Path, version: Version) -> bool:
        known = self._version(path)
        return known is not None and known.short == version.short

    def _version(self, path: Path) -> Version | None:
        if path not in self._versions:
            try:
                self._versions[path] = binary_version(path)
            except SimulationError:
                self._versions[path] = None
        return self._versions[path]


def find(name: str) -> Path:
    """Return the program that the user names.

    Raises:
        UsageError: it is none.
    """
    try:
        path = find_binary(name)
        binary_version(path)
    except SimulationError as error:
        raise UsageError(str(error)) from None
    return path


def how_to_get(version: Version) -> str:
    """Say how to get a kube-scheduler of a minor version, or of its pre-release before that."""
    release = PRE_RELEASES.get(version.minor, Version(version.major, version.minor))
    return (
        f"no kube-scheduler {version.short} is on this machine; name one with --kube-scheduler "
        f"PATH: https://dl.k8s.io/release/{release}/bin/linux/amd64/kube-scheduler"
    )
