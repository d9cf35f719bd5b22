"""`convert` of a configuration inside of a document of another kind, by its form."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...schedulerconfig.schema import KIND
from ...schedulerconfig.versions import Version
from .errors import CommandError
from .input_files import InputFiles, UnreadableDocumentError

if TYPE_CHECKING:
    from ...offline.documents import Source


def configuration_in(files: InputFiles, version: Version) -> list[Any]:
    """The only configuration inside of other documents, in a list; empty without one.

    Reports on standard error where it stands.

    Raises:
        CommandError: there are several.
        UnreadableDocumentError: kube-scheduler would not read it.
    """
    # Loaded here because the forms are slow to import, and most files need none of them.
    from ...offline.documents import read_sources

    inside = [
        source
        for source in read_sources(files.contents, version.minor, lambda _: False)
        if source.place is not None
    ]
    found = [(source, each) for source in inside for each in _configurations(source)]
    if len(found) > 1:
        places = "; ".join(_where(source) for source, _ in found)
        raise CommandError(
            f"{len(found)} configurations are in other documents ({places}); convert one file at "
            "a time, or copy the configurations to files"
        )
    for source in inside:
        for problem in source.problems:
            at = f"{source.file}:{problem.position.line}:{problem.position.column}"
            raise UnreadableDocumentError(f"{at}: {problem.message}")
    for source, value in found:
        where = _where(source)
        print(f"note: from {where}; replace it there with the result", file=sys.stderr)
        return [value]
    return []


def _configurations(source: Source) -> Iterator[Any]:
    for item in source.items:
        if item.value.get("kind") in (KIND, "Policy"):
            yield item.document.value


def _where(source: Source) -> str:
    owner = source.place.owner if source.place is not None else ""
    return source.file if owner in ("", "file") else f"{owner} in {source.file}"
