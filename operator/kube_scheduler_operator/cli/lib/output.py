"""Prints lines, tables and documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ...schedulerconfig.yaml_text import yaml_text


def print_now(line: str) -> None:
    """Print a line with the time of day in front."""
    now = datetime.now().astimezone()
    print(f"{now:%H:%M:%S} {line}", flush=True)


def print_document(document: Any, output: str, text: str = "") -> None:
    """Print JSON, YAML or (`output` "text") the text."""
    if output == "text":
        print(text)
    elif output == "json":
        sys.stdout.write(json_text(document))
    else:
        sys.stdout.write(yaml_text([document]))


def json_text(document: Any) -> str:
    """Indented JSON with a line break at its end."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def counted(number: int, noun: str) -> str:
    """The number with the noun in its form: `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
