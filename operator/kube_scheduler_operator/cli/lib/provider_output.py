"""Prints what a provider takes, or writes it into a directory, and what it does not take."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.findings import ERROR
from ...schedulerconfig.yaml_text import yaml_text
from .errors import UsageError, print_error
from .output import json_text, print_lines, print_remark, text_of

if TYPE_CHECKING:
    from ...offline.providers.provider_format import (
        ProviderFile,
        ProviderFinding,
        ProviderFormat,
        ProviderOutput,
    )

_FILE_MODE = 0o644


def show_provider_output(
    provider: ProviderFormat, output: ProviderOutput, form: str, directory: str | None
) -> int:
    """Print JSON with everything, or YAML files, with the findings on standard error.

    With a directory, the files are written into it. Returns the exit code: 0 if the provider takes
    all of it, 1 if not, 2 if a file cannot be written.
    """
    if directory is not None:
        try:
            write_provider_files(directory, output.files)
        except UsageError as error:
            print_error(error)
            return 2
        print_findings(output.findings)
    elif form == "json":
        document = {
            "for": provider.name,
            "source": provider.source,
            "files": [
                {"path": each.path, "use": each.use, "content": each.content}
                for each in output.files
            ],
            "findings": [
                {
                    "severity": each.severity,
                    "reason": each.reason,
                    "path": each.path,
                    "message": each.message,
                    "fix": each.fix,
                }
                for each in output.findings
            ],
        }
        sys.stdout.write(json_text(document))
    else:
        sys.stdout.write("---\n".join(file_text(each) for each in output.files))
        print_findings(output.findings)
    return 1 if any(each.severity == ERROR for each in output.findings) else 0


def write_provider_files(directory: str, files: Iterable[ProviderFile]) -> None:
    """Write the files below a directory, and print their paths.

    Raises:
        UsageError: a file cannot be written.
    """
    for each in files:
        path = Path(directory, each.path.lstrip("/"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file_text(each), encoding="utf-8")
            path.chmod(_FILE_MODE)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
        print_lines(str(path))


def file_text(file: ProviderFile) -> str:
    """Return the file, headed by comments with its path and its use."""
    return f"{text_of((f'# {file.path}', f'# {file.use}'))}\n{yaml_text([file.content])}"


def print_findings(findings: Iterable[ProviderFinding]) -> None:
    """Print them on standard error, in the form of `validate`."""
    for each in findings:
        path = f"{each.path}: " if each.path else ""
        print_remark(f"{each.severity}: {path}{each.message} [{each.reason}]")
        if each.fix:
            print_remark(f"    fix: {each.fix}")
