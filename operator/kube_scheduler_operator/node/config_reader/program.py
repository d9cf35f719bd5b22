"""Reports a scheduler's configuration file, and nothing of a file with any other content.

The path comes from a Pod, and other files of a node have its keys. A file is reported only if it
has the kind and only the fields of a scheduler's configuration, and none of them has a credential.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from ...base.environment import SECRET_FORM
from ...base.findings import Path as FieldPath
from ...base.findings import listed_paths
from ...base.json_text import exceeds_depth
from ...base.limits import DEPTH
from ...base.source.reader import read
from .report import LARGEST, ConfigReport

_SECRET_FIELD: Final = re.compile(
    r"keydata$|passw|secrets?$|tokens?$|credential|(access|api|auth|private|secret|signing)keys?$",
    re.IGNORECASE,
)
"""Matches the name of a field without its separators: keyData, key-data and key_data are one."""
_SEPARATORS: Final = re.compile(r"[-_.\s]")

ForeignContent: TypeAlias = Callable[[Mapping[str, Any]], str]
"""Returns what a document has besides a scheduler's configuration, and the fix; empty: nothing."""


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """The flags of `kube-scheduler-operator read-config`, under their names."""

    file: Path
    termination_log: Path = Path("/dev/termination-log")


def main(options: ReaderOptions, foreign_content: ForeignContent) -> int:
    """Report once; the exit code is 0 for any file."""
    options.termination_log.write_text(report(options.file, foreign_content).serialise())
    return 0


def report(file: Path, foreign_content: ForeignContent) -> ConfigReport:
    """Return what the file has; no error quotes it."""
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        return ConfigReport(error=f"the file cannot be read: {error.strerror}; correct its mode")
    return report_content(data, foreign_content)


def report_content(data: bytes, foreign_content: ForeignContent) -> ConfigReport:
    """Return the same for the content of a file."""
    if len(data) > LARGEST:
        return ConfigReport(error=f"the file is larger than {LARGEST} bytes; shorten it")
    documents, unreadable = read(data)
    places = [flaw.position for document in documents for flaw in document.flaws]
    if unreadable is not None:
        places.append(unreadable.position)
    for place in places[:1]:
        at = f"line {place.line}, column {place.column}"
        return ConfigReport(error=f"the file has a syntax error at {at}; correct it")
    objects = [obj.value for document in documents for obj in document.objects() if obj.value]
    if len(objects) != 1 or not isinstance(objects[0], Mapping):
        return ConfigReport(error="the file does not have one object; leave one in it")
    config = objects[0]
    if exceeds_depth(config, DEPTH):
        return ConfigReport(error=f"the file has more than {DEPTH} levels; shorten it")
    if foreign := foreign_content(config):
        return ConfigReport(error=foreign)
    paths = listed_paths(credentials(config))
    if paths:
        why = (
            f"the file has credentials in {paths}, which are not copied into the API; put them "
            "into files and name these, such as keyFile in the place of keyData"
        )
        return ConfigReport(error=why)
    return ConfigReport(config)


def credentials(value: Any, path: FieldPath = (), *, secret: bool = False) -> Iterator[FieldPath]:
    """Yield the paths of fields that hold credentials, by their name or value.

    `secret` states that the name of the value, or of one around it, is that of a credential.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            named = bool(_SECRET_FIELD.search(_SEPARATORS.sub("", str(key))))
            yield from credentials(item, (*path, str(key)), secret=secret or named)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from credentials(item, (*path, index), secret=secret)
    elif secret and isinstance(value, int) and path and isinstance(path[-1], int):
        yield path  # Go decodes a list of numbers as bytes
    elif isinstance(value, str) and (
        SECRET_FORM.search(value) or (secret and value and not value.startswith("/"))
    ):
        yield path
