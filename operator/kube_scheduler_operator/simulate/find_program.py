"""Finds the kube-schedulers of this machine: of the environment, $PATH and the cache."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..config.language.versions import DEFAULT_VERSION, Version
from .process import PROGRAM, SimulationError, binary_version

_ALL_COMPONENTS: Final = "controlplane"
"""The program of all components that `hack/sandbox` builds; its name selects one."""
_CACHE: Final = "KUBE_SCHEDULER_OPERATOR_CACHE"
ASSETS: Final = "KUBEBUILDER_ASSETS"


def find_binary(path: str | None, version: str = "") -> Path:
    """Return the kube-scheduler to run: `path`, else of $KUBEBUILDER_ASSETS, $PATH or the cache.

    `path` is what the user chose, as is $KUBEBUILDER_ASSETS; `version` is that of the cluster: of
    the other programs, the one with the nearest version is chosen. If it is not known, that is the
    one of $PATH.

    Raises:
        SimulationError: no program was found, or `path` is not a program.
    """
    if path:
        program = shutil.which(path)
        if program is None:
            raise SimulationError(f"--kube-scheduler {path}: this is not an executable file")
        return Path(program).absolute()
    programs = list(candidates(version))
    if not programs:
        raise SimulationError(
            "no kube-scheduler was found: name one with --kube-scheduler PATH; the program of a "
            "release is at https://dl.k8s.io/release/v1.35.4/bin/linux/amd64/kube-scheduler"
        )
    if not version or programs[0] == program_of_environment():
        return programs[0]
    return min(programs, key=lambda program: _distance(program, version))


def program_of_environment() -> Path | None:
    """Return the program that $KUBEBUILDER_ASSETS names; None without one."""
    program = Path(os.environ.get(ASSETS) or "/nonexistent", PROGRAM).absolute()
    return program if os.access(program, os.X_OK) else None


def candidates(version: str) -> Iterator[Path]:
    """Yield programs of $KUBEBUILDER_ASSETS, $PATH and the cache, those nearest to `version` first.

    Without a version, those of the cache follow that are nearest to `DEFAULT_VERSION`.
    """
    if (program := program_of_environment()) is not None:
        yield program
    if on_path := shutil.which(PROGRAM):
        yield Path(on_path).absolute()
    wanted = version or DEFAULT_VERSION
    cached = (path.absolute() for path in _cached() if os.access(path, os.X_OK))
    yield from sorted(cached, key=lambda path: _distance(path, wanted))


def _distance(program: Path, version: str) -> tuple[int, int]:
    """Return how far a program's version is from another, in minor versions and in patches."""
    try:
        wanted = Version.parse(version)
    except ValueError:
        return 0, 0
    named = _version_of_folder(program)
    try:
        own = Version(*named) if named else binary_version(program)
    except SimulationError:
        return sys.maxsize, 0
    # The newer one of two is as far and a half less.
    minors = 2 * abs(own.minor - wanted.minor) - (own.minor > wanted.minor)
    return abs(own.major - wanted.major) * sys.maxsize + minors, abs(own.patch - wanted.patch)


def _version_of_folder(program: Path) -> tuple[int, int, int] | None:
    """Return the version that a folder of the cache has in its name."""
    match = re.match(r"v(\d+)\.(\d+)\.(\d+)", program.parent.name)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _cached() -> list[Path]:
    base = Path(os.environ.get(_CACHE) or Path.home() / ".cache" / "kube-scheduler-operator")
    programs = [*base.glob(f"build/v*/{PROGRAM}"), *base.glob(f"build/v*/{_ALL_COMPONENTS}")]

    return sorted(programs, key=lambda path: _version_of_folder(path) or (0, 0, 0), reverse=True)
