"""The kube-scheduler of another container of the same Pod.

An operand's image has a kube-scheduler and nothing else: no shell that could copy it. Its container
runs it with a configuration for which it waits indefinitely (`WAITING`), and containers of a Pod
that share a process namespace see each other's files below /proc
(https://kubernetes.io/docs/tasks/configure-pod-container/share-process-namespace/). So the program
is started from there, any number of times, without a copy and without a right: both containers
have the same user.
"""

from __future__ import annotations

import os
import shlex
import struct
from pathlib import Path
from typing import Final

from .process import PROGRAM, SimulationError

WAITING: Final = "--config=/dev/stdin"
"""The flag of the operand's container: nothing is ever written to its standard input."""

_INTERPRETER: Final = 3  # PT_INTERP of elf(5)
_ELF_64: Final = b"\x7fELF\x02\x01"
_LIBRARIES: Final = ("lib64", "usr/lib64", "lib", "usr/lib")
_MULTIARCH: Final = ("x86_64-linux-gnu", "aarch64-linux-gnu")


def find_operand(proc: Path = Path("/proc")) -> Path | None:
    """The folder of the operand's process; None: it does not run yet."""
    for folder in proc.glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if WAITING.encode() in arguments[1:]:
            return folder
    return None


def operand_program(process: Path, folder: Path) -> Path:
    """The program of a process, as a file that can be started while this process runs.

    A program with a dynamic linker gets that and the libraries of its own image.

    Args:
        process: its folder in /proc.
        folder: for a file that starts it.

    Raises:
        SimulationError: it cannot be read, or is not a program for this machine.
    """
    program = process / "exe"
    try:
        opened = os.open(program, os.O_RDONLY)
        interpreter = _interpreter(opened)
    except (OSError, ValueError, struct.error) as error:
        raise SimulationError(
            f"the program of the operand's image cannot be read: {error}; both containers have to "
            "run as the same user"
        ) from None
    if not interpreter:
        # The open file stays valid even if the container restarts.
        return Path(f"/proc/{os.getpid()}/fd/{opened}")
    os.close(opened)
    root = process / "root"
    libraries = [root / name for name in _LIBRARIES]
    libraries += [root / "usr/lib" / name for name in _MULTIARCH]
    libraries += [root / "lib" / name for name in _MULTIARCH]
    command = [
        str(root / interpreter.lstrip("/")),
        "--argv0",
        PROGRAM,
        "--library-path",
        ":".join(map(str, libraries)),
        str(program),
    ]
    started = folder / PROGRAM
    started.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    started.chmod(0o700)
    return started


def _interpreter(program: int) -> str:
    """The dynamic linker that a program names; empty: it is statically linked.

    Raises:
        ValueError, struct.error, OSError: it is not a 64-bit program.
    """
    head = os.pread(program, 64, 0)
    if head[:6] != _ELF_64:
        raise ValueError("it is not a 64-bit ELF file")
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    for at in range(count):
        entry = os.pread(program, 56, offset + at * size)
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", entry)
        if kind == _INTERPRETER:
            return os.pread(program, length, start).rstrip(b"\0").decode()
    return ""
