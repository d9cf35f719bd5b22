"""`kubectl scheduler` as a folder that needs no Python: for krew, and for machines without one.

PyInstaller puts the interpreter, its libraries and the modules of this environment beside a small
loader. shiv and pex need a Python on the target; one file instead of a folder would be unpacked at
every start, which takes longer than `validate`.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import packages_distributions, requires, version
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

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
_DATA: Final = {
    "crds": "crds",
    "templates": "templates",
    "bindata": "bindata",
    "docs/rules.md": "docs",
}
"""What the program reads -> its folder in the package's data."""


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
        "--collect-submodules", f"{_PACKAGE}.scheduling.policies",
        *(word for name in imports for word in ("--hidden-import", name)),
        *(word for name in sorted(_unwanted()) for word in ("--exclude-module", name)),
        *(
            word
            for source, folder in _DATA.items()
            for word in ("--add-data", f"{paths.REPOSITORY / source}:{_PACKAGE}/_data/{folder}")
        ),
        entry,
        cwd=work, timeout=900,
        # Sets and dicts of strings decide the order in which modules are stored.
        env={**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": str(source.epoch)},
    )  # fmt: skip
    return work / "dist" / PROGRAM


def _unwanted() -> set[str]:
    """Modules of this environment that no command needs.

    Libraries import some if they are there: pydantic has a plugin of mypy, and the Kubernetes
    client its own tests.
    """
    wanted = {_normal(name) for name in _closure({"kube-scheduler-operator[cluster]"})}
    return {
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and not {_normal(owner) for owner in owners} & wanted
    }


def _closure(requirements: Iterable[str]) -> set[str]:
    """The names of all packages that requirements install here."""
    found: set[str] = set()
    pending = [Requirement(each) for each in requirements]
    while pending:
        one = pending.pop()
        found.add(one.name)
        for text in requires(one.name) or ():
            each = Requirement(text)
            extras = ("", *one.extras)
            applies = each.marker is None or any(
                each.marker.evaluate({"extra": extra}) for extra in extras
            )
            if applies and each.name not in found:
                pending.append(each)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


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
