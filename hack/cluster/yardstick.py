"""The plain Go extender that the bench measures ours beside (see ../yardstick); kept once built."""

from __future__ import annotations

import shutil
from pathlib import Path

from cluster import binaries, paths
from cluster.console import SandboxError, step

_SOURCE = Path(__file__).resolve().parents[1] / "yardstick"


def provide() -> Path:
    """Return where the program is, building it first if need be: seconds, it needs no modules.

    Raises:
        SandboxError: It cannot be built on this machine.
    """
    target = binaries.built_from("yardstick", sorted(_SOURCE.glob("*.*"))) / "yardstick"
    with paths.locked(paths.cache_dir() / ".yardstick.lock"):
        if not target.exists():
            go = shutil.which("go")
            if go is None:
                raise SandboxError(
                    "the yardstick is a program in Go, and there is no Go to build it: install "
                    "Go 1.25 or newer, or leave the variants go and go-full out (--variants)"
                )
            with step("built the plain Go extender"):
                binaries.go_build(go, _SOURCE, ".", "", target)
    return target
