"""The corpus of forms: files after public ones, which each name their source.

A case is a file, or a folder with the files of one run. A source is a page or a file that was
opened and has the shape of the case: its fields, their nesting, its flags. Values and mistakes are
ours. A case without such a source belongs in the tests of its form instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kube_scheduler_operator.base.source.reader import Document, read

FOLDER: Final = Path(__file__).parent
_SOURCE: Final = re.compile(r"^# Source: (https://\S+)$", re.MULTILINE)
_OF_JSON: Final = dict(
    line.split() for line in (FOLDER / "sources.txt").read_text(encoding="utf-8").splitlines()
)


@dataclass(frozen=True, slots=True)
class Case:
    """A file, or several that are checked together."""

    name: str
    files: tuple[Path, ...]

    @property
    def expectation(self) -> Path:
        """The file with its findings."""
        return FOLDER / f"{self.name}.expect"

    @property
    def contents(self) -> list[tuple[str, str]]:
        """(name of the file, text) of each."""
        return [(path.name, path.read_text(encoding="utf-8")) for path in self.files]

    @property
    def sources(self) -> list[str]:
        """Where each file is from, as far as they say it."""
        if self.name in _OF_JSON:
            return [_OF_JSON[self.name]]
        found = [_SOURCE.findall(text) for _, text in self.contents]
        return [one for each in found for one in each] if all(found) else []

    def documents(self) -> Iterator[Document]:
        """The documents in the files."""
        for _, text in self.contents:
            for document in read(text)[0]:
                yield from document.objects()


def _cases() -> Iterator[Case]:
    for group in sorted(path for path in FOLDER.iterdir() if path.is_dir()):
        for path in sorted(group.iterdir()):
            name = str(path.relative_to(FOLDER))
            if path.is_dir():
                yield Case(name, tuple(sorted(path.iterdir())))
            elif path.suffix in (".yaml", ".json"):
                yield Case(name, (path,))


CASES: Final = [case for case in _cases() if "__pycache__" not in case.name]
