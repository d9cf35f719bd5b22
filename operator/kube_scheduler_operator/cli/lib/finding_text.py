"""One finding as text, as all formats have it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from ...base.foreign_text import one_line
from ...offline.report import Diagnosis


def sentence(each: Diagnosis) -> str:
    """`path: what is wrong; how to fix it`."""
    path = f"{each.path}: " if each.path else ""
    return f"{path}{each.message}; {each.fix}"


def place(each: Diagnosis) -> str:
    """`file:line:column`."""
    return f"{one_line(each.file)}:{each.position.line}:{each.position.column}"


def file_path(file: str) -> str:
    """The name of a file without `./`, as CI systems compare it with those of a repository."""
    return Path(file).as_posix()


def file_uri(file: str) -> str:
    """A URI reference; a relative path stays relative, as code scanning requires."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(file_path(file))
