"""Reports the content of a scheduler's configuration file without credentials and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...base.findings import Path as FieldPath
from ...base.findings import format_path
from ...base.json_text import exceeds_depth
from ...base.limits import DEPTH
from ...base.source.reader import read
from .report import LARGEST, ConfigReport

_SECRET_FIELD: Final = re.compile(
    r"keydata$|passw|secret$|token$|credential|(access|api|private|auth)_?key$", re.IGNORECASE
)
_SECRET_VALUE: Final = re.compile(r"://[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY-----")


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """The flags of `kube-scheduler-operator read-config`, under their names."""

    file: Path
    termination_log: Path = Path("/dev/termination-log")


def main(options: ReaderOptions) -> int:
    """Report once; the exit code is 0 for any file."""
    options.termination_log.write_text(report(options.file).serialise())
    return 0


def report(file: Path) -> ConfigReport:
    """Return what the file has; no error quotes it."""
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        return ConfigReport(error=f"the file cannot be read: {error.strerror}; correct its mode")
    return report_content(data)


def report_content(data: bytes) -> ConfigReport:
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
    paths = ", ".join(format_path(path) for path in credentials(config))
    if paths:
        why = (
            f"the file has credentials in {paths}, which are not copied into the API; put them "
            "into files and name these, such as keyFile in the place of keyData"
        )
        return ConfigReport(error=why)
    return ConfigReport(config)


def credentials(value: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the paths of fields that hold credentials, by their name or value."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            named = isinstance(each, str) and _SECRET_FIELD.search(str(key))
            if named and each and not each.startswith("/"):
                yield (*path, str(key))
            else:
                yield from credentials(each, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from credentials(each, (*path, index))
    elif isinstance(value, str) and _SECRET_VALUE.search(value):
        yield path
