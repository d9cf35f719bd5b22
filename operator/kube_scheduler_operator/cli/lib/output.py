"""Prints lines, tables and documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any


def print_now(line: str) -> None:
    """Print a line with the time of day in front."""
    now = datetime.now().astimezone()
    print(f"{now:%H:%M:%S} {line}", flush=True)


def print_document(document: Any, output: str, text: str = "") -> None:
    """Print JSON, YAML or (`output` "text") the text."""
    if output == "text":
        print(text)
    elif output == "json":
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(yaml_text([document]))


def yaml_text(documents: Iterable[Any]) -> str:
    """YAML that kube-scheduler and kubectl read as these values, without anchors.

    PyYAML leaves strings unquoted that are booleans or numbers to them, such as `y` and `1e1`.
    """
    import yaml

    from ...schedulerconfig.source_values import scalar
    from ...schedulerconfig.source_yaml import Scalar

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's signature
            return True

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        read = scalar(Scalar(0, text))
        style = None if "\n" in text or read == text else "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, represent)
    return yaml.dump_all(documents, None, Dumper, sort_keys=False, allow_unicode=True)


def format_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
