"""The sources of the site: the pages of the repository, with links that fit into the site."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import yaml

from cluster import paths
from pages.site_navigation import Navigation, site_path

_FENCE: Final = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
_NO_PROSE: Final = re.compile(r"[#|<!]|[-*] |\d+\. ")
"""How a heading, a table, a comment, a picture or a list begins."""
_PROSE: Final = frozenset({"console", "mermaid", "text", ""})
"""Languages that stay without colours: a terminal's output has none."""
_CODE_FILES: Final = frozenset({".py", ".go"})
_FILES: Final = "files"
"""Where the site has files of the repository that pages link to."""


@dataclass(frozen=True, slots=True)
class Source:
    """What the pages are made of."""

    navigation: Navigation
    generated: Mapping[str, str]  # text by path relative to docs/
    repository: str = ""  # address of the folder of this version at a forge, with a slash
    root: Path = paths.REPOSITORY

    @property
    def pages(self) -> frozenset[PurePosixPath]:
        return frozenset({*self.navigation.listed, *self.navigation.unlisted})

    def text(self, page: PurePosixPath) -> str:
        made = self.generated.get(str(site_path(page)))
        return made or (self.root / page).read_text(encoding="utf-8")


def write(source: Source, folder: Path) -> None:
    """Write all pages, what they link to and the page of contents into an empty folder."""
    copied: set[PurePosixPath] = set()
    for page in sorted(source.pages):
        place = site_path(page)
        text = _converted(source, page, copied)
        _put(folder / place, _front(source, page) + text)
    for path in sorted(copied):
        if (source.root / path).is_dir():
            shutil.copytree(
                source.root / path, folder / _FILES / path, dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("*.md"),
            )  # fmt: skip
            _put(folder / _published(path), _listing(source.root / path, path))
            continue
        target = folder / _published(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.root / path, target)
    _put(folder / "index.md", "\n".join(_contents(source)))


def title(text: str) -> str:
    """The heading of a page."""
    return str(re.findall(r"^# (.+)$", text, re.MULTILINE)[0]).strip()


def first_sentence(text: str) -> str:
    """What a page is about: the first sentence of its first paragraph, without markup."""
    for paragraph in re.sub(_FENCE, "", text).split("\n\n"):
        line = " ".join(paragraph.split())
        if line and not _NO_PROSE.match(line):
            line = _LINK.sub(r"\2", line).replace("**", "")
            return re.split(r"(?<=[A-Za-z\d`)])[.:](?= [A-Z`]|$)", line)[0].rstrip(".:") + "."
    return ""


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _front(source: Source, page: PurePosixPath) -> str:
    """What Sphinx has to know of a page, above its text."""
    front: dict[str, object] = {}
    if page in source.navigation.unlisted:
        front["orphan"] = True
    if words := source.navigation.keywords.get(page):
        front["myst"] = {"html_meta": {"keywords lang=en": ", ".join(words)}}
    return f"---\n{yaml.safe_dump(front)}---\n" if front else ""


def _contents(source: Source) -> Iterator[str]:
    """The first page: the sections, and below each its pages with what they are about."""
    yield "# kube-scheduler-operator\n"
    yield first_sentence(source.text(PurePosixPath("README.md"))) + "\n"
    for part in source.navigation.parts:
        if not part.pages:
            continue
        yield f"## {part.title}\n"
        for page in part.pages:
            text = _converted(source, page, set())
            about = first_sentence(text)
            yield f"* [{title(text)}]({site_path(page)})" + (f": {about}" if about else "")
        yield f"\n```{{toctree}}\n:hidden:\n:caption: {part.title}\n"
        yield from (str(site_path(page).with_suffix("")) for page in part.pages)
        yield "```\n"


def _converted(source: Source, page: PurePosixPath, copied: set[PurePosixPath]) -> str:
    """A page with links that fit; code is left as it is."""

    def link(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        text = _named(source, page, _LINK.sub(link, text), target)
        fits = _fitting(source, page, target, copied)
        return f"{mark}[{text}]({fits})" if fits else text

    parts, end = [], 0
    text = source.text(page)
    for fence in _FENCE.finditer(text):
        parts.append(_LINK.sub(link, text[end : fence.start()]))
        indent, marks, language, body = fence.groups()
        shown = "text" if language.strip() in _PROSE else language
        parts.append(f"{indent}{marks}{shown}\n{body}{indent}{marks}")
        end = fence.end()
    return "".join(parts) + _LINK.sub(link, text[end:])


def _named(source: Source, page: PurePosixPath, text: str, target: str) -> str:
    """The text of a link; a page of the site has its title, the name of a file is a forge's."""
    path = PurePosixPath(os.path.normpath(page.parent / target.partition("#")[0]))
    named = text in (path.name, str(path)) and path in source.pages
    return title(source.text(path)) if named else text


def _fitting(source: Source, page: PurePosixPath, target: str, copied: set[PurePosixPath]) -> str:
    """The target of a link in the site; empty if the site does not have it."""
    if "://" in target or target.startswith(("#", "mailto:")):
        return target
    name, _, anchor = target.partition("#")
    path = PurePosixPath(os.path.normpath(page.parent / name))
    here = site_path(page).parent
    if path in source.pages:
        return _relative(site_path(path), here) + (f"#{anchor}" if anchor else "")
    if path.suffix in _CODE_FILES or _is_code(path, source.root):
        return f"{source.repository}{path}" if source.repository else ""
    copied.add(path)
    return _relative(_published(path), here)


def _is_code(path: PurePosixPath, root: Path) -> bool:
    return path.parts[0] in ("hack", "operator", "tests") and (
        (root / path).is_dir() or not path.suffix
    )


def _published(path: PurePosixPath) -> PurePosixPath:
    """Where the site has a file, or the list of the files of a folder."""
    if path.suffix in (".svg", ".png") and path.parts[0] == "docs":
        return site_path(path)
    place = PurePosixPath(_FILES, path)
    return place if path.suffix else place / "index.md"


def _listing(folder: Path, path: PurePosixPath) -> str:
    files = sorted(each for each in folder.rglob("*") if each.is_file() and each.suffix != ".md")
    names = [each.relative_to(folder) for each in files]
    head = ["---", "orphan: true", "---", f"# {path}", ""]
    return "\n".join([*head, *(f"* [`{name}`]({name})" for name in names), ""])


def _relative(path: PurePosixPath, folder: PurePosixPath) -> str:
    return os.path.relpath(path, folder)
