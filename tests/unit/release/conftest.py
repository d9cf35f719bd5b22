"""The wheel of this checkout, and an environment with it and PyYAML alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Environment:
    """A Python environment without this one's packages."""

    folder: Path  # where it is
    packages: Path  # where its packages are

    def run(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run one of its programs, in its folder."""
        return subprocess.run(
            [self.folder / "bin" / command[0], *command[1:]],
            input=text,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder)},
        )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*command, folder], check=True, capture_output=True, cwd=REPOSITORY)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def base_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel with its required dependencies only, and no network."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in ("yaml", "_yaml"):  # the one that is installed here, instead of a download
        source = distribution("PyYAML").locate_file(name)
        shutil.copytree(str(source), packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = distribution("PyYAML")._path  # type: ignore[attr-defined]
    shutil.copytree(metadata, packages / metadata.name)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python")]
    install = ["install", "--quiet", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True)
    return Environment(folder, packages)
