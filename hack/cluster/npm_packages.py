"""The npm packages of hack/npm, installed by their lock file into the cache."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Final

from cluster import packages, paths
from cluster.console import run, step

_SOURCE: Final = Path(__file__).resolve().parents[1] / "npm"
_FILES: Final = ("package.json", "package-lock.json")
_TOOLS: Final = {"node": "nodejs", "npm": "npm"}


def provide() -> Path:
    """The folder `node_modules`, which is made first if need be.

    Raises:
        SandboxError: node is missing and cannot be installed here.
        CommandError: npm failed.
    """
    packages.ensure(_TOOLS)
    folder = _folder()
    with paths.locked(paths.cache_dir() / ".npm.lock"):
        if not (folder / ".complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name in _FILES:
                shutil.copy(_SOURCE / name, folder)
            with step("installing the npm packages of hack/npm"):
                # No package may run a program of its own at installation.
                run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix",
                    str(folder), timeout=300)  # fmt: skip
            (folder / ".complete").touch()
    return folder / "node_modules"


def _folder() -> Path:
    digest = hashlib.sha256(b"".join((_SOURCE / name).read_bytes() for name in _FILES))
    return paths.cache_dir() / "npm" / digest.hexdigest()[:12]
