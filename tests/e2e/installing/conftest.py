"""The command line as an archive, which a user unpacks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster.console import run
from releasing import source, standalone

from ..conftest import REPOSITORY

_UNPACK = re.compile(r"^\| archive, no Python \| `(tar [^`]+)`; put its folder on the PATH", re.M)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `kubectl scheduler`, from the archive of this checkout by README's command."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "dist").mkdir()
    standalone.build(source.discover("", dirty=True), folder / "dist")
    (unpack,) = _UNPACK.findall((REPOSITORY / "README.md").read_text())
    run("sh", "-ec", unpack, cwd=folder)
    return folder / "kubectl-scheduler"
