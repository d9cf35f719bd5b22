"""The site, built once, and a browser for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pages import site

from ..browser import axe, browser

__all__ = ["axe", "browser"]

VERSIONS = ("0.1.0", "0.2.0-rc.1", "0.10.0")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three versions beside each other; the pages of all are those of this checkout."""
    made = tmp_path_factory.mktemp("site")
    site.build(made, VERSIONS[0])
    for version in VERSIONS[1:]:
        shutil.copytree(made / VERSIONS[0], made / version)
    site.write_versions(made)
    return made


@pytest.fixture(scope="session")
def built(folder: Path) -> Path:
    return folder / VERSIONS[0]
