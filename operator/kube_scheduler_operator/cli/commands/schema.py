"""`schema`: prints JSON Schemas, with which editors complete and check files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from ..console.errors import UsageError, named, prints_errors
from ..console.flags import add_version_flag
from ..console.output import json_text, print_lines

DEFAULT_KIND: Final = "KubeSchedulerConfiguration"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "schema",
        description="Prints the JSON Schema of a kind, for yaml-language-server and other editors. "
        "It refuses nothing that kube-scheduler accepts; validate reports more. A file names its "
        "schema in a first line: # yaml-language-server: $schema=FILE",
    )
    parser.add_argument(
        "kind",
        nargs="?",
        default=DEFAULT_KIND,
        metavar="KIND",
        help="KubeSchedulerConfiguration or a kind of the operator (default: %(default)s)",
    )
    add_version_flag(parser, "the files")
    parser.add_argument(
        "--write",
        metavar="FOLDER",
        help="write the schemas of all kinds and versions, and catalog.json for a schema store",
    )
    parser.set_defaults(run=run)


@prints_errors()
def run(args: argparse.Namespace) -> int:
    if args.write:
        _write(Path(args.write))
    else:
        sys.stdout.write(json_text(_schema(args.kind, args.kubernetes_version)))
    return 0


def _schema(kind: str, version: str) -> dict[str, Any]:
    from ...base.findings import did_you_mean, listing
    from ...config.language.plugins.in_tree_plugins import NEWEST, OLDEST, on_record
    from ...config.language.versions import Version
    from ...config.lint.json_schemas import KINDS, schema_of

    by_lower = {known.lower(): known for known in KINDS}
    if kind.lower() not in by_lower:
        hint = did_you_mean(kind, KINDS) or f"; use {listing(KINDS)}"
        raise UsageError(f'"{kind}" has no schema{hint}')
    with named("--kubernetes-version"):
        parsed = Version.parse(version)
    if not on_record(parsed):
        raise UsageError(
            f"--kubernetes-version: {parsed.short} is not on record; use {OLDEST.short} to "
            f"{NEWEST.short}"
        )
    return schema_of(by_lower[kind.lower()], parsed)


def _write(folder: Path) -> None:
    from ...config.lint.json_schemas import schema_files

    files = schema_files()
    with named(f"--write: {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_text(json_text(content), encoding="utf-8")
    print_lines(f"{len(files)} files written to {folder}")
