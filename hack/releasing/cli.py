"""`hack/release`: build all files of a release, or prepare one."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Collection
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
    arguments = parser().parse_args()
    try:
        arguments.run(arguments)
    except SandboxError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The subcommands and their options."""
    made = argparse.ArgumentParser(prog="hack/release", description=__doc__)
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="write all files into dist/")
    build.add_argument("--version", default="", help="must be the checkout's (default)")
    build.add_argument("--directory", type=Path, default=paths.REPOSITORY / "dist")
    build.add_argument("--part", action="append", choices=PARTS, help="only these; repeatable")
    build.add_argument(
        "--architecture",
        action="append",
        choices=debian.ARCHITECTURES,
        help="images for these alone; repeatable (default: all, another machine's by emulation)",
    )
    build.add_argument(
        "--dirty", action="store_true", help="also with files that are not committed"
    )
    build.set_defaults(run=_build)
    prepare = commands.add_parser("prepare", help="write a version into the files that have it")
    prepare.add_argument("version")
    prepare.set_defaults(run=_prepare)
    lock = commands.add_parser("lock", help="pin the newest Debian packages for the image")
    lock.set_defaults(run=_lock)
    finish = commands.add_parser(
        "finish", help="write manifest, provenance and checksums of a folder with all platforms"
    )
    finish.add_argument("--version", default="", help="must be the checkout's (default)")
    finish.add_argument("--directory", type=Path, default=paths.REPOSITORY / "dist")
    finish.set_defaults(run=_finish)
    return made


def _build(arguments: argparse.Namespace) -> None:
    shutil.rmtree(arguments.directory, ignore_errors=True)
    arguments.directory.mkdir(parents=True)
    found = source.discover(arguments.version, dirty=arguments.dirty)
    architectures = arguments.architecture or debian.ARCHITECTURES
    build_parts(found, arguments.directory, arguments.part or PARTS, architectures)
    for file in sorted(arguments.directory.iterdir()):
        say(f"  {file.stat().st_size / 2**20:8.1f} MiB  {file.name}")


def build_parts(
    found: Source,
    folder: Path,
    parts: Collection[str] = PARTS,
    architectures: Collection[str] = debian.ARCHITECTURES,
) -> None:
    """Build parts of a release, with notes, bills, provenance, checksums and signatures.

    Args:
        found: the commit.
        folder: an empty one.
        parts: some of PARTS.
        architectures: those of the images.

    Raises:
        SandboxError: a part cannot be built.
    """
    changes = notes.notes((paths.REPOSITORY / "CHANGELOG.md").read_text(), found.version)
    (folder / "RELEASE_NOTES.md").write_text(changes)
    requirements = (paths.REPOSITORY / "requirements.lock").read_text()
    if "python" in parts:
        with step("wheel and source distribution"):
            distributions.build(found, folder)
    if "chart" in parts:
        with step("chart"):
            chart.package(found, folder, changes)
    if "standalone" in parts:
        with step("standalone archive"):
            made = standalone.build(found, folder)
        sbom.write(found, made.archive, sbom.installed_components(made.packages))
    for architecture in architectures if "image" in parts else ():
        lock = debian.read(architecture)
        with step(f"image for {architecture}"):
            layout = image.write(image.build(found, lock), found, folder)
        components = [
            *sbom.python_components(requirements),
            *sbom.debian_components(lock, operator_image.SUITE),
        ]
        sbom.write(found, layout, components)
    finish_parts(found, folder)


def _prepare(arguments: argparse.Namespace) -> None:
    day = datetime.now(UTC).date().isoformat()
    for name in source.prepare(arguments.version, day):
        say(f"  {name}")
    say(f"review and commit, then: git tag v{arguments.version.removeprefix('v')}")


def _lock(_arguments: argparse.Namespace) -> None:
    for architecture in debian.ARCHITECTURES:
        count = debian.write(architecture)
        say(f"{debian.file(architecture).relative_to(paths.REPOSITORY)}: {count} packages")


def _finish(arguments: argparse.Namespace) -> None:
    found = source.discover(arguments.version, dirty=True)  # the folder itself is not committed
    for file in finish_parts(found, arguments.directory):
        say(f"  {file.name}")


def finish_parts(found: Source, folder: Path) -> list[Path]:
    """Write what is about all files of a folder: manifest, provenance, checksums, signatures.

    Raises:
        SandboxError: a file cannot be signed.
    """
    made = (provenance.NAME, signatures.SUMS)
    if archives := standalone.archives(folder):
        krew.write(found, archives, folder)
    files = sorted(file for file in folder.iterdir() if file.name not in made)
    statement = provenance.write(found, files, folder)
    sums = signatures.write_sums([*files, statement], folder)
    return [statement, sums, *signatures.sign([sums])]
