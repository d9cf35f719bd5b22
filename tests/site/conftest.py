"""The site, built once, and a browser for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from cluster import npm_packages, packages
from pages import site

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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    packages.ensure({"chromium": "chromium"})
    with sync_playwright() as playwright:
        # Root, which installs packages here, cannot use its sandbox.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The program that finds what people with disabilities cannot use."""
    return (npm_packages.provide() / "axe-core" / "axe.min.js").read_text()
