"""Prints the files that a provider accepts, or writes them, and reports what it rejects."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...base.findings import ERROR
from ...base.source.yaml_text import yaml_text
from ..console.errors import UsageError
from ..console.output import json_text, print_lines, print_remark, text_of
from .findings import finding_lines

if TYPE_CHECKING:
    from ...config.lint.providers.provider_format import (
        ProviderFile,
        ProviderFinding,
        ProviderFormat,
        ProviderOutput,
    )

_FILE_MODE: Final = 0o644
_FINDING_FIELDS: Final = ("severity", "reason", "path", "message", "fix")


def show_provider_output(
    provider: ProviderFormat, output: ProviderOutput, form: str, directory: str | None
) -> int:
    """Print JSON with everything, or YAML files, with the findings on standard error.

    With a directory, the files are written into it. Returns the exit code: 0 if the provider takes
    all of it, 1 if not.

    Raises:
        UsageError: a file cannot be written.
    """
    if directory is not None:
        _write_files(directory, output.files)
        _print_findings(output.findings)
    elif form == "json":
        document = {
            "for": provider.name,
            "source": provider.source,
            "files": [asdict(file) for file in output.files],
            "findings": [
                {name: getattr(finding, name) for name in _FINDING_FIELDS}
                for finding in output.findings
            ],
        }
        sys.stdout.write(json_text(document))
    else:
        sys.stdout.write("---\n".join(map(_file_text, output.files)))
        _print_findings(output.findings)
    return 1 if any(finding.severity == ERROR for finding in output.findings) else 0


def _write_files(directory: str, files: Iterable[ProviderFile]) -> None:
    """Write the files below a directory, and print their paths.

    Raises:
        UsageError: a file cannot be written.
    """
    for file in files:
        path = Path(directory, file.path.lstrip("/"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_file_text(file), encoding="utf-8")
            path.chmod(_FILE_MODE)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
        print_lines(str(path))


def _file_text(file: ProviderFile) -> str:
    """Return the file, headed by comments with its path and its use."""
    return f"{text_of((f'# {file.path}', f'# {file.use}'))}\n{yaml_text([file.content])}"


def _print_findings(findings: Iterable[ProviderFinding]) -> None:
    """Print them on standard error, in the form of `validate`."""
    for finding in findings:
        for line in finding_lines(finding):
            print_remark(line)
