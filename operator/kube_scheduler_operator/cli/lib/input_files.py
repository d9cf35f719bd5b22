"""Reads files and standard input, and the documents in them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .errors import UsageError


def display_name(name: str) -> str:
    """The name of a file in findings."""
    return "<stdin>" if name == "-" else name


def read_text(name: str) -> str:
    """The text of a file, or of standard input.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{display_name(name)} is not UTF-8: {error.reason}") from None


def read_documents(name: str) -> list[Any]:
    """The documents of a file without empty ones.

    Raises:
        UsageError: it cannot be read.
    """
    import yaml

    shown = "standard input" if name == "-" else name
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        return [each for each in yaml.safe_load_all(text) if each is not None]
    except OSError as error:
        raise UsageError(f"{shown}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{shown} is neither YAML nor JSON: {error}") from error


def embedded_document(text: Any) -> Any:
    """The document in a value of a ConfigMap, a new object each time; None without a document."""
    import yaml

    try:
        return yaml.safe_load(text) if isinstance(text, str) else None
    except yaml.YAMLError:
        return None
