"""pre-commit and check-jsonschema, in a virtual environment of their own by their lock file."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path
from typing import Final

from cluster import paths
from cluster.console import run, step

_LOCK: Final = Path(__file__).resolve().parents[1] / "ci-tools" / "requirements.lock"


def provide() -> Path:
    """The folder with the programs, which is made first if need be.

    Raises:
        CommandError: pip failed.
    """
    digest = hashlib.sha256(_LOCK.read_bytes() + sys.version.encode())
    folder = paths.cache_dir() / "ci-tools" / digest.hexdigest()[:12]
    with paths.locked(paths.cache_dir() / ".ci-tools.lock"):
        if not (folder / ".complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            with step("installing the programs of hack/ci-tools"):
                run(sys.executable, "-m", "venv", folder, timeout=600)
                run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check",
                    "--require-hashes", "-r", _LOCK, timeout=600)  # fmt: skip
            (folder / ".complete").touch()
    return folder / "bin"
