"""`kubectl scheduler` as a folder that needs no Python: for krew, and for machines without one.

PyInstaller puts the interpreter, its libraries and the modules of this environment beside a small
loader. shiv and pex need a Python on the target; one file instead of a folder would be unpacked at
every start, which takes longer than `validate`.
"""

from __future__ import annotations

import ast
import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Final

from cluster import binaries, paths
from cluster.console import run
from kube_scheduler_operator.__main__ import PLUGIN_COMMANDS
from releasing import tarballs
from releasing.source import Source

PROGRAM: Final = "kubectl-scheduler"
_PACKAGE: Final = "kube_scheduler_operator"
_ENTRY: Final = f"""\
import sys
from {_PACKAGE}.__main__ import kubectl_plugin
sys.exit(kubectl_plugin())
"""
_DATA: Final = ("crds", "templates", "bindata")


@dataclass(frozen=True, slots=True)
class Standalone:
    """An archive, and the Python packages in it with their versions."""

    archive: Path
    packages: dict[str, str]


def build(source: Source, folder: Path) -> Standalone:
    """Write the archive for this machine's platform.

    Raises:
        SandboxError: PyInstaller fails.
    """
    target = folder / f"{PROGRAM}-{source.tag}-linux-{binaries.architecture()}.tar.gz"
    with tempfile.TemporaryDirectory() as work:
        made = _freeze(source, Path(work))
        files = tarballs.members(made, PROGRAM)
        files[f"{PROGRAM}/LICENSE"] = paths.REPOSITORY / "LICENSE"
        tarballs.write(target, files, source.epoch)
        modules = _modules(Path(work))
    return Standalone(target, _packages(modules))


def archives(folder: Path) -> list[Path]:
    """The archives of all platforms in a folder."""
    return sorted(folder.glob(f"{PROGRAM}-*.tar.gz"))


def _freeze(source: Source, work: Path) -> Path:
    entry = work / "entry.py"
    entry.write_text(_ENTRY)
    imports = [f"{_PACKAGE}.cli.{command.module}" for command in PLUGIN_COMMANDS]
    run(
        sys.executable, "-m", "PyInstaller", "--onedir", "--noconfirm", "--log-level", "ERROR",
        "--name", PROGRAM, "--distpath", work / "dist", "--workpath", work / "build",
        "--specpath", work, "--paths", paths.REPOSITORY / "operator",
        # Policies are loaded by name.
        "--collect-submodules", f"{_PACKAGE}.policies",
        *(word for name in imports for word in ("--hidden-import", name)),
        *(
            word
            for kind in _DATA
            for word in ("--add-data", f"{paths.REPOSITORY / kind}:{_PACKAGE}/_data/{kind}")
        ),
        entry,
        cwd=work, timeout=900,
        # Sets and dicts of strings decide the order in which modules are stored.
        env={**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": str(source.epoch)},
    )  # fmt: skip
    return work / "dist" / PROGRAM


def _modules(work: Path) -> set[str]:
    """The top-level modules that PyInstaller put into its archive of modules."""
    (table,) = (work / "build" / PROGRAM).glob("PYZ-*.toc")
    _archive, entries = ast.literal_eval(table.read_text())
    return {name.partition(".")[0] for name, *_ in entries}


def _packages(modules: Iterable[str]) -> dict[str, str]:
    """The packages that the modules are from; the standard library has none."""
    owners = packages_distributions()
    names = {name for module in modules for name in owners.get(module, ())}
    return {name: version(name) for name in sorted(names)}
