"""Reads files and standard input, and the documents in them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .errors import UsageError


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


def read_documents(name: str) -> list[Any]:
    """The objects in a file: its documents without empty ones, and the items of Lists.

    Raises:
        UsageError: it cannot be read, or kube-scheduler would not read it.
    """
    from ...schedulerconfig.source import read

    documents, error = read(read_bytes(name))
    problems = [(flaw.position, flaw.message) for each in documents for flaw in each.flaws]
    if error is not None:
        problems.append((error.position, error.message))
    for where, message in problems:
        raise UsageError(f"{display_name(name)}:{where.line}:{where.column}: {message}")
    return [each.value for document in documents for each in document.objects()]


def embedded_document(text: Any) -> Any:
    """The document in a value of a ConfigMap, a new object each time; None without a document."""
    import yaml

    try:
        return yaml.safe_load(text) if isinstance(text, str) else None
    except yaml.YAMLError:
        return None
