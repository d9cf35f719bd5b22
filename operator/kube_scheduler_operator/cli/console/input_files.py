"""Reads files, directories and standard input, and the documents in them."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from ...base.progress import step
from .errors import UsageError
from .output import counted

SUFFIXES: Final = (".yaml", ".yml", ".json")
"""The files that are read in a directory."""
STDIN: Final = "-"
_PATTERN: Final = frozenset("*?[")
_LARGEST: Final = 8_000_000
"""Bytes of a file in a directory above which it is skipped; etcd accepts 1.5 MB per object."""


class UnreadableDocumentError(UsageError):
    """A file is neither YAML nor JSON, or kube-scheduler would not read it."""


@dataclass(frozen=True, slots=True)
class InputFiles:
    contents: tuple[tuple[str, bytes], ...]  # (display name, content), each file once
    found: frozenset[str]  # the names of those that were found in a directory or by a pattern


def read_paths(names: Sequence[str]) -> InputFiles:
    """Read files, directories (with those below them), patterns and `-`.

    Raises:
        UsageError: one of them has nothing to read.
    """
    contents: dict[str, bytes] = {}
    found: set[str] = set()
    with step("reading files") as reading:
        for name in names:
            if name == STDIN or (Path(name).is_file() and name not in contents):
                contents[display_name(name)] = read_bytes(name)
                found.discard(name)
                continue
            for path in _search(name):
                if path not in contents:
                    contents[path] = read_bytes(path)
                    found.add(path)
                    reading.done = len(contents)
    return InputFiles(tuple(contents.items()), frozenset(found))


def _search(name: str) -> list[str]:
    """Return the files in a directory or of a pattern."""
    if Path(name).is_dir():
        paths, others = _files_in(name)
        if not paths:
            has = f" (it has {counted(others, 'other file')})" if others else " (it is empty)"
            raise UsageError(f"{name}: no file there ends in {_suffixes()}{has}")
        return paths
    if not _PATTERN.intersection(name):
        return [name]  # reading it reports what is wrong
    matches = sorted(glob.glob(name, recursive=True))  # noqa: PTH207  # absolute ones as well
    if not matches:
        raise UsageError(f"{name}: no file matches this pattern below {Path.cwd()}")
    paths = []
    for match in matches:
        paths += _files_in(match)[0] if Path(match).is_dir() else [match]
    if not paths:
        raise UsageError(f"{name}: the directories that match have no file in {_suffixes()}")
    return paths


def _suffixes() -> str:
    return f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"


def _files_in(directory: str) -> tuple[list[str], int]:
    """Return (files to read, number of others); hidden directories are left out, as Git's is.

    Raises:
        UsageError: a directory cannot be read.
    """
    paths, others = [], 0
    for folder, folders, files in os.walk(directory, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in sorted(files):
            path = os.path.join(folder, file)  # noqa: PTH118  # keeps a leading ./ as typed
            if file.endswith(SUFFIXES) and _is_readable(path):
                paths.append(path)
            else:
                others += 1
    return paths, others


def _unreadable(error: OSError) -> NoReturn:
    raise UsageError(f"{error.filename}: {error.strerror}") from None


def _is_readable(path: str) -> bool:
    """Return whether it is a file of a size that is read; not a socket or a broken link."""
    file = Path(path)
    return file.is_file() and file.stat().st_size <= _LARGEST


def display_name(name: str) -> str:
    return "<stdin>" if name == STDIN else name


def read_bytes(name: str) -> bytes:
    """Read a file, or standard input, for base.source.reader.read.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        if name != STDIN:
            return Path(name).read_bytes()
        binary = getattr(sys.stdin, "buffer", None)
        return sys.stdin.read().encode() if binary is None else bytes(binary.read())
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{name!r} is not the name of a file: {error}") from None


def read_documents(name: str) -> list[Any]:
    """Return the objects in a file: its documents without empty ones, and the items of Lists.

    Raises:
        UnreadableDocumentError: kube-scheduler would not read it; one line for each problem.
        UsageError: it cannot be read.
    """
    objects, errors = _parse(read_bytes(name), display_name(name))
    if errors:
        raise UnreadableDocumentError(*errors)
    return objects


def objects_of(files: InputFiles) -> Iterator[tuple[str, bool, list[Any]]]:
    """Yield (display name, whether it was found rather than named, objects) of each file.

    A file that was found in a directory or by a pattern and is not YAML is skipped.

    Raises:
        UnreadableDocumentError: kube-scheduler would not read a file; one line for each problem.
    """
    for name, content in files.contents:
        objects, errors = _parse(content, name)
        found = name in files.found
        if errors and not found:
            raise UnreadableDocumentError(*errors)
        if not errors:
            yield name, found, objects


def embedded_document(text: Any) -> Any:
    """Return the first object in a value of a ConfigMap; None without an object."""
    objects = _parse(text, "")[0] if isinstance(text, str) else []
    return objects[0] if objects else None


def embedded_errors(text: Any, name: str) -> list[str]:
    """Return why kube-scheduler would not read a value of a ConfigMap; `name` is displayed."""
    return _parse(text, name)[1] if isinstance(text, str) else []


def _parse(content: str | bytes, name: str) -> tuple[list[Any], list[str]]:
    """Return (objects, errors with their positions)."""
    from ...base.source.encoding import characters
    from ...base.source.reader import read
    from ...config.lint.documents.other_files import foreign_file, template_of

    documents, error = read(content)
    foreign = None
    if error is not None or not any(isinstance(doc.value, Mapping) for doc in documents):
        foreign = foreign_file(content.encode() if isinstance(content, str) else content)
    if foreign is not None:
        at = foreign.position
        return [], [f"{name}:{at.line}:{at.column}: {foreign.message}; {foreign.fix}"]
    problems = [(flaw.position, flaw.message) for doc in documents for flaw in doc.flaws]
    if error is not None:
        text = content if isinstance(content, str) else characters(content).text
        template = template_of(text)
        if template is None:
            problems.append((error.position, error.message))
        else:
            problems.append((template.position, f"{template.message}; {template.fix}"))
    errors = [f"{name}:{at.line}:{at.column}: {message}" for at, message in problems]
    return [obj.value for doc in documents for obj in doc.objects()], errors
