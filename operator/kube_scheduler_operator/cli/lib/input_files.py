"""Reads files and standard input, and the documents in them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .errors import UsageError


class UnreadableDocumentError(UsageError):
    """A file is neither YAML nor JSON, or kube-scheduler would not read it."""


def display_name(name: str) -> str:
    """The name of a file in findings."""
    return "<stdin>" if name == "-" else name


def read_bytes(name: str) -> bytes:
    """The content of a file, or of standard input, for schedulerconfig.source.read.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        if name != "-":
            return Path(name).read_bytes()
        binary = getattr(sys.stdin, "buffer", None)
        return sys.stdin.read().encode() if binary is None else bytes(binary.read())
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{name!r} is not the name of a file: {error}") from None


def read_documents(name: str) -> list[Any]:
    """The objects in a file: its documents without empty ones, and the items of Lists.

    Raises:
        UnreadableDocumentError: kube-scheduler would not read it; one line for each problem.
        UsageError: it cannot be read.
    """
    objects, errors = _parse(read_bytes(name), display_name(name))
    if errors:
        raise UnreadableDocumentError("\n".join(errors))
    return objects


def embedded_document(text: Any) -> Any:
    """The first object in a value of a ConfigMap; None without an object."""
    objects = _parse(text, "")[0] if isinstance(text, str) else []
    return objects[0] if objects else None


def embedded_errors(text: Any, name: str) -> list[str]:
    """Why kube-scheduler would not read a value of a ConfigMap; `name` is displayed."""
    return _parse(text, name)[1] if isinstance(text, str) else []


def _parse(content: str | bytes, name: str) -> tuple[list[Any], list[str]]:
    """(objects, errors with their positions)."""
    from ...schedulerconfig.source import read

    documents, error = read(content)
    found = [(flaw.position, flaw.message) for each in documents for flaw in each.flaws]
    if error is not None:
        found.append((error.position, error.message))
    errors = [f"{name}:{at.line}:{at.column}: {message}" for at, message in found]
    return [each.value for document in documents for each in document.objects()], errors
