"""The navigation of the site, docs/site.yaml: which pages it has, and where each one is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml

from cluster import paths

SOURCE: Final = paths.REPOSITORY / "docs" / "site.yaml"
GENERATED: Final = "fields/*.md"
"""Pages that only the site has: hack/pages/site_fields.py makes them of the CRDs."""
_PROJECT: Final = "project"
"""Where the site has the pages from outside of docs/."""


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the navigation."""

    title: str
    pages: tuple[PurePosixPath, ...]  # relative to the repository, in their order


@dataclass(frozen=True, slots=True)
class Navigation:
    """All pages of the site, relative to the repository."""

    parts: tuple[Part, ...]
    unlisted: tuple[PurePosixPath, ...]  # built and searched, not in the navigation
    keywords: Mapping[PurePosixPath, tuple[str, ...]]  # what a search finds the page by, too

    @property
    def listed(self) -> tuple[PurePosixPath, ...]:
        return tuple(page for part in self.parts for page in part.pages)


def load(generated: Iterable[str] = (), *, source: Path = SOURCE) -> Navigation:
    """Read the navigation.

    Args:
        generated: paths of pages that only the site has, relative to docs/.
        source: the file; its folder is the one of the pages.

    Raises:
        ValueError: a page does not exist, or is there twice.
    """
    document: dict[str, Any] = yaml.safe_load(source.read_text(encoding="utf-8"))
    folder, made = source.parent, sorted(generated)
    navigation = Navigation(
        tuple(
            Part(part["title"], _pages(part["pages"], folder, made))
            for part in document["sections"]
        ),
        _pages(document["unlisted"], folder, made),
        {
            page: tuple(words)
            for name, words in document["keywords"].items()
            for page in _pages([name], folder, made)
        },
    )
    pages = [*navigation.listed, *navigation.unlisted]
    if twice := sorted({str(page) for page in pages if pages.count(page) > 1}):
        raise ValueError(f"{source.name}: there twice: {', '.join(twice)}")
    return navigation


def site_path(page: PurePosixPath) -> PurePosixPath:
    """Where the site has a page of the repository."""
    if page.parts[0] == "docs":
        return PurePosixPath(*page.parts[1:])
    return PurePosixPath(_PROJECT, *page.parts)


def _pages(names: list[str], folder: Path, made: list[str]) -> tuple[PurePosixPath, ...]:
    return tuple(page for name in names for page in _matching(name, folder, made))


def _matching(name: str, folder: Path, made: list[str]) -> list[PurePosixPath]:
    if name == GENERATED:
        return [PurePosixPath(folder.name, each) for each in made]
    if "*" in name:
        return [
            PurePosixPath(folder.name, path.relative_to(folder))
            for path in sorted(folder.glob(name))
        ]
    if not (folder / name).is_file():
        raise ValueError(f"site.yaml: {name} does not exist")
    return [PurePosixPath((folder / name).resolve().relative_to(folder.parent.resolve()))]
