"""The wheel and the source distribution, which pip installs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cluster import paths
from cluster.console import run
from releasing.source import Source


def build(source: Source, folder: Path) -> None:
    """Build both.

    Raises:
        SandboxError: hatchling fails.
    """
    run(
        sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--target", "sdist",
        "--directory", folder, cwd=paths.REPOSITORY,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(source.epoch)},
    )  # fmt: skip
