"""`hack/release`: build all files of a release, or prepare one."""

from __future__ import annotations

import argparse
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from cluster import operator_image, paths
from cluster.console import SandboxError, say, step
from releasing import (
    chart,
    debian,
    distributions,
    image,
    krew,
    notes,
    provenance,
    sbom,
    signatures,
    source,
    standalone,
)
from releasing.source import Source

PARTS = ("python", "chart", "standalone", "image")


def main() -> int:
    """Run a subcommand; errors are one line."""
    parser = argparse.ArgumentParser(prog="hack/release", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="write all files into dist/")
    build.add_argument("--version", default="", help="must be the checkout's (default)")
    build.add_argument("--directory", type=Path, default=paths.REPOSITORY / "dist")
    build.add_argument("--part", action="append", choices=PARTS, help="only these; repeatable")
    build.add_argument(
        "--dirty", action="store_true", help="also with files that are not committed"
    )
    build.set_defaults(run=_build)
    prepare = commands.add_parser("prepare", help="write a version into the files that have it")
    prepare.add_argument("version")
    prepare.set_defaults(run=_prepare)
    lock = commands.add_parser("lock", help="pin the newest Debian packages for the image")
    lock.set_defaults(run=_lock)
    manifest = commands.add_parser("krew", help="write the plugin manifest for archives")
    manifest.add_argument("archives", nargs="+", type=Path)
    manifest.set_defaults(run=_krew)
    chart_command = commands.add_parser("chart", help="write the chart alone")
    chart_command.add_argument("--directory", type=Path, default=paths.REPOSITORY / "dist")
    chart_command.set_defaults(run=_chart)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except SandboxError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def _build(arguments: argparse.Namespace) -> None:
    shutil.rmtree(arguments.directory, ignore_errors=True)
    arguments.directory.mkdir(parents=True)
    parts = arguments.part or PARTS
    found = source.discover(arguments.version, dirty=arguments.dirty)
    for file in build_parts(found, arguments.directory, parts):
        say(f"  {file.stat().st_size / 2**20:8.1f} MiB  {file.name}")


def build_parts(found: Source, folder: Path, parts: tuple[str, ...] = PARTS) -> list[Path]:
    """Build parts of a release, with notes, bills, provenance, checksums and signatures.

    Raises:
        SandboxError: a part cannot be built.
    """
    changes = notes.notes((paths.REPOSITORY / "CHANGELOG.md").read_text(), found.version)
    (folder / "RELEASE_NOTES.md").write_text(changes)
    files = [folder / "RELEASE_NOTES.md"]
    requirements = (paths.REPOSITORY / "requirements.lock").read_text()
    if "python" in parts:
        with step("wheel and source distribution"):
            files += distributions.build(found, folder)
    if "chart" in parts:
        with step("chart"):
            files.append(chart.package(found, folder, changes))
    if "standalone" in parts:
        with step("standalone archive"):
            made = standalone.build(found, folder)
        files += [made.archive, krew.write(found, [made.archive], folder)]
        files.append(sbom.write(found, made.archive, sbom.installed_components(made.packages)))
    if "image" in parts:
        with step("image"):
            layout = image.write(image.build(found), found, folder)
        lock = debian.read(debian.LOCK.read_text())
        components = [
            *sbom.python_components(requirements),
            *sbom.debian_components(lock, operator_image.SUITE),
        ]
        files += [layout, sbom.write(found, layout, components)]
    files.append(provenance.write(found, files, folder))
    files.append(signatures.write_sums(files, folder))
    return files + signatures.sign(files)


def _prepare(arguments: argparse.Namespace) -> None:
    day = datetime.now(UTC).date().isoformat()
    for name in source.prepare(arguments.version, day):
        say(f"  {name}")
    say(f"review and commit, then: git tag v{arguments.version.removeprefix('v')}")


def _lock(_arguments: argparse.Namespace) -> None:
    say(f"hack/releasing/debian.lock: {debian.write()} packages")


def _krew(arguments: argparse.Namespace) -> None:
    found = source.discover("", dirty=True)
    say(str(krew.write(found, arguments.archives, arguments.archives[0].parent)))


def _chart(arguments: argparse.Namespace) -> None:
    found = source.discover("", dirty=True)
    changes = notes.notes((paths.REPOSITORY / "CHANGELOG.md").read_text(), found.version)
    arguments.directory.mkdir(parents=True, exist_ok=True)
    say(str(chart.package(found, arguments.directory, changes)))
