"""What the search of the site reads: how often each section of each page has each word.

Sphinx's own index only has which pages have a word, so a page about a thing and one that mentions
it are equal there. `site_theme/static/search.js` orders sections by these counts.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

FILE: Final = "_static/sections.js"
_WORD: Final = re.compile(r"\w+")
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""Of a word such as `nodeSelector`, which people type as two."""
_OF_A_ROW: Final = 2
_DEFINED: Final = 8
"""What a word counts in the first cell of a row, which the row is about, and alone in it."""
_LONGEST: Final = 40
"""Longer words are hashes, which no reader types, or names of metrics, which have underscores."""
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_OTHER_PAGES: Final = frozenset({"index", "genindex", "search"})


@dataclass(slots=True)
class Section:
    """A heading and what is below it, without the sections in it."""

    anchor: str
    heading: str = ""
    words: Counter[str] = field(default_factory=Counter)


class _Sections(HTMLParser):
    """The sections of a page that Sphinx wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Section] = []
        self._open: list[Section] = []
        self._in_heading = False
        self._cell = 0  # of the row, from 1 on
        self._first: list[str] = []  # texts of the row's first cell

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self._open.append(Section(dict(attrs).get("id") or ""))
            self.found.append(self._open[-1])
        self._in_heading = self._in_heading or tag in _HEADINGS
        if tag == "tr":
            self._cell = 0
        self._cell += tag == "td"

    def handle_endtag(self, tag: str) -> None:
        if tag == "section" and self._open:
            self._open.pop()
        if tag in _HEADINGS:
            self._in_heading = False
        if tag == "td" and self._cell == 1:
            text = "".join(self._first)
            weight = _DEFINED if len(_WORD.findall(text)) == 1 else _OF_A_ROW
            for word in words(text):
                self._open[-1].words[word] += weight
            self._first = []
        if tag == "table":
            self._cell = 0

    def handle_data(self, data: str) -> None:
        if not self._open:
            return
        if self._in_heading:
            self._open[-1].heading += data.replace("¶", "")
        if self._cell == 1:
            self._first.append(data)
            return
        self._open[-1].words.update(words(data))


def words(text: str) -> Iterator[str]:
    """The words of a text as the search splits what is typed, and the parts of each."""
    for word in _WORD.findall(text):
        if word.isdigit() or (len(word) > _LONGEST and "_" not in word):
            continue
        yield word.lower()
        parts = _PART.findall(word)
        yield from (part.lower() for part in parts if len(parts) > 1 and len(part) > 1)


def sections(page: str) -> list[Section]:
    """The sections of a page, in their order.

    Args:
        page: its HTML.
    """
    parser = _Sections()
    parser.feed(page)
    return parser.found


def write(made: Path, keywords: Mapping[str, Sequence[str]]) -> None:
    """Count the words of a built site.

    Args:
        made: the folder of the site.
        keywords: what people type, by the page that they look for.
    """
    rows: list[tuple[str, str, str]] = []
    counts: defaultdict[str, list[int]] = defaultdict(list)
    for path in sorted(made.rglob("*.html")):
        name = str(path.relative_to(made).with_suffix(""))
        if name in _OTHER_PAGES:
            continue
        for section in sections(path.read_text(encoding="utf-8")):
            for word, count in section.words.items():
                counts[word] += [len(rows), count]
            rows.append((name, section.anchor, section.heading.strip()))
    known = {"sections": rows, "words": counts, "keywords": keywords}
    text = json.dumps(known, separators=(",", ":"), ensure_ascii=False)
    (made / FILE).write_text(f"window.siteSections = {text};\n", encoding="utf-8")
