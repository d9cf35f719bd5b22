"""Copies Python and the launcher so that they run in any image.

The interpreter brings its own loader and libraries along. Of its modules it needs those that
the launcher imports, some 100 KB: a fresh interpreter imports the launcher and reports them.
The copy is some 10 MB.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from . import launcher

_LOADER: Final = "ld.so"
_PYTHON: Final = "bin/python3"
"""Not at the top: the interpreter may look for its library in $ORIGIN/../lib."""
_LIBRARIES: Final = "lib"
_PROGRAM: Final = "launcher.py"
_FLAGS: Final = ("-I", "-S", "-B", "-X", "utf8")
"""Isolated from the environment, without site-packages and byte code, in any locale."""

_REPORT: Final = """
import sys
sys.path.insert(0, sys.argv[1])
import launcher
import os
own = [getattr(each, "__file__", None) for each in sys.modules.values() if each is not launcher]
import json
json.dump([os.path.realpath("/proc/self/exe"), os.__file__, [each for each in own if each]],
          sys.stdout)
"""
_LIBRARY: Final = re.compile(r"^\s*(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x", re.MULTILINE)
"""A line of `ld.so --list`: a library's name and file, or the loader's file."""


def launcher_command(folder: Path, address: str, command: Sequence[str]) -> list[str]:
    """Return the command that runs the launcher from a folder of `copy_launcher`.

    It listens at `address` and starts `command`.
    """
    loader = [str(folder / _LOADER), "--inhibit-cache", "--library-path", str(folder / _LIBRARIES)]
    return [*loader, str(folder / _PYTHON), *_FLAGS, str(folder / _PROGRAM), address, *command]


def copy_launcher(folder: Path) -> None:
    """Copy the launcher and all that it needs.

    Raises:
        OSError, subprocess.SubprocessError: this machine's Python cannot be copied.
    """
    source = Path(launcher.__file__)
    report = subprocess.run(
        [sys.executable, *_FLAGS, "-c", _REPORT, source.parent],
        stdout=subprocess.PIPE,
        check=True,
    )
    program, landmark, modules_found = json.loads(report.stdout)
    modules = {Path(each) for each in (landmark, *modules_found)}
    top = Path(landmark).parent
    library = folder / _LIBRARIES / top.name
    # Python looks for this directory, and for os.py, to know where its modules are.
    (library / "lib-dynload").mkdir(parents=True)
    for module in modules:
        _copy(module, library / module.relative_to(top))
    loader = _loader(program)
    _copy(loader, folder / _LOADER)
    _copy(Path(program), folder / _PYTHON)
    binaries = [program, *(str(each) for each in modules if ".so" in each.suffixes)]
    for name, path in set(_libraries(loader, binaries)):
        _copy(path, folder / _LIBRARIES / name)
    _copy(source, folder / _PROGRAM)


def _loader(program: str) -> Path:
    """Return the dynamic loader of a program, which is mapped into each process of it."""
    maps = Path("/proc/self/maps").read_text()
    if (match := re.search(r"/\S+/ld-[^/\s]+$", maps, re.MULTILINE)) is None:
        raise FileNotFoundError(f"{program} has no dynamic loader")
    return Path(match[0])


def _libraries(loader: Path, binaries: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield (name, file) of the libraries of programs."""
    for binary in binaries:
        listed = subprocess.run(
            [loader, "--list", binary], stdout=subprocess.PIPE, text=True, check=True
        )
        for line in _LIBRARY.finditer(listed.stdout):
            if line["name"]:
                yield Path(line["name"]).name, Path(line["path"])


def _copy(source: Path, target: Path) -> None:
    """Copy a file that every user may read and run."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
