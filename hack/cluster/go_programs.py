"""Small programs in Go for tests and benchmarks: each is a folder of hack/, kept once built."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from cluster import binaries, paths
from cluster.console import SandboxError, step

_HACK: Final = Path(__file__).resolve().parents[1]


def provide(name: str, without: str, package: str = ".") -> Path:
    """Return where the program hack/NAME is, building it first if it has changed.

    Args:
        name: of the folder and the program.
        without: completes the sentence "Install Go ..., or ..." for a machine that has no Go.
        package: of the program, which may be in another module that the folder's requires.

    Raises:
        SandboxError: It cannot be built on this machine.
    """
    source = _HACK / name
    target = binaries.built_from(name, sorted(source.glob("*.*"))) / name
    with paths.locked(paths.cache_dir() / f".{name}.lock"):
        if not target.exists():
            go = shutil.which("go")
            if go is None:
                raise SandboxError(
                    f"hack/{name} is a program in Go, and there is no Go to build it: install "
                    f"Go 1.25 or newer, or {without}"
                )
            with step(f"built hack/{name}"):
                binaries.go_build(go, source, package, "", target)
    return target
