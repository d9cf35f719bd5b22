"""The commit that a release is made of, and its version."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from cluster import paths
from cluster.console import SandboxError, run

_DEVELOPMENT_IMAGE: Final = "localhost/kube-scheduler-operator"

UNKNOWN_URL: Final = "https://releases.invalid"
"""Where a release that is built without RELEASE_URL would be downloaded from (RFC 2606)."""

INIT: Final = "operator/kube_scheduler_operator/__init__.py"
_CHART: Final = "deploy/helm/Chart.yaml"
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


@dataclass(frozen=True, slots=True)
class Source:
    """What is released."""

    version: str  # of the release, such as `0.1.0`
    commit: str  # its hash
    epoch: int  # seconds since 1970 at which it was committed; every time in the release
    url: str = UNKNOWN_URL  # where the files of all releases are, without the tag; $RELEASE_URL
    repository: str = _DEVELOPMENT_IMAGE  # the image, without tag; $IMAGE_REPOSITORY
    digest: str = ""  # of the image in the registry, which may have more platforms; $IMAGE_DIGEST

    @property
    def tag(self) -> str:
        """The tag of the commit."""
        return f"v{self.version}"

    def download(self, name: str) -> str:
        """Where a file of the release is downloaded from."""
        return f"{self.url.rstrip('/')}/{self.tag}/{name}"


def discover(version: str, *, dirty: bool = False) -> Source:
    """The checkout as the source of a release.

    Raises:
        SandboxError: the version is not that of the checkout, or files are not committed.
    """
    version = version.removeprefix("v") or declared_version()
    if not _VERSION.fullmatch(version):
        raise SandboxError(f'VERSION "{version}" is not a version such as 0.1.0 or 0.2.0rc1')
    for file, found in declared().items():
        if found != version:
            raise SandboxError(
                f"VERSION is {version}, and {file} has {found}; "
                f"run hack/release prepare {version}, and commit"
            )
    if not dirty and (changed := _git("status", "--porcelain")):
        raise SandboxError(f"a release is made of a commit; commit or remove:\n{changed.rstrip()}")
    return Source(
        version=version,
        commit=_git("rev-parse", "HEAD").strip(),
        epoch=int(_git("log", "-1", "--format=%ct")),
        url=os.environ.get("RELEASE_URL") or UNKNOWN_URL,
        repository=os.environ.get("IMAGE_REPOSITORY") or _DEVELOPMENT_IMAGE,
        digest=os.environ.get("IMAGE_DIGEST", ""),
    )


def declared_version() -> str:
    """The version of the checkout."""
    return declared()[INIT]


def declared(repository: Path = paths.REPOSITORY) -> dict[str, str]:
    """The versions that files of the checkout declare, by file."""
    chart = yaml.safe_load((repository / _CHART).read_text())
    text = (repository / INIT).read_text()
    own = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return {INIT: own[1] if own else "", _CHART: str(chart["appVersion"])}


def prepare(version: str, day: str, repository: Path = paths.REPOSITORY) -> list[str]:
    """Write a version into the files that declare it, and head the changelog with it.

    Returns:
        The files.

    Raises:
        SandboxError: it is not a version, or the changelog has no unreleased changes.
    """
    version = version.removeprefix("v")
    if not _VERSION.fullmatch(version):
        raise SandboxError(f'"{version}" is not a version such as 0.1.0 or 0.2.0rc1')
    edits = {
        INIT: (r'^__version__ = ".+"$', f'__version__ = "{version}"'),
        _CHART: (r"^(version|appVersion): .+$", rf"\g<1>: {version}"),
        "CHANGELOG.md": (r"^## Unreleased$", f"## Unreleased\n\n## {version} - {day}"),
    }
    for name, (pattern, replacement) in edits.items():
        file = repository / name
        text, count = re.subn(pattern, replacement, file.read_text(), flags=re.MULTILINE)
        if not count:
            raise SandboxError(f"{name} has no line that matches {pattern}")
        file.write_text(text)
    return list(edits)


def _git(*arguments: str) -> str:
    return run("git", "-C", paths.REPOSITORY, *arguments)
