"""The program of another container is found by its flag and started from its own files."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube_scheduler_operator.simulate.operand_program import (
    WAITING,
    find_operand,
    operand_program,
)
from kube_scheduler_operator.simulate.process import SimulationError


@pytest.fixture
def waiting() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for its standard input, with the flag of the operand's container."""
    command = ["kube-scheduler", "-c", "import sys; sys.stdin.read()", WAITING]
    process = subprocess.Popen(command, executable=sys.executable, stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_dynamic_program_is_started_with_its_own_linker(
    waiting: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    found = Path(f"/proc/{waiting.pid}")
    while WAITING.encode() not in (found / "cmdline").read_bytes():
        time.sleep(0.01)
    assert find_operand() is not None
    program = operand_program(found, tmp_path)
    assert f"/proc/{waiting.pid}/root/" in program.read_text()
    done = subprocess.run(
        ["kube-scheduler", "-c", "print(6 * 7)"],
        executable=program,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout == b"42\n"


def _elf(path: Path, interpreter: bytes = b"") -> None:
    """The headers of a 64-bit program, with or without a dynamic linker."""
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    header[32:40] = (64).to_bytes(8, "little")
    header[54:58] = (56).to_bytes(2, "little") + (1).to_bytes(2, "little")
    entry = bytearray(56)
    if interpreter:
        entry[0:4] = (3).to_bytes(4, "little")
        entry[8:16] = (120).to_bytes(8, "little")
        entry[32:40] = (len(interpreter) + 1).to_bytes(8, "little")
    path.write_bytes(bytes(header + entry) + interpreter + b"\0")


def test_a_static_program_stays_valid_without_its_process(tmp_path: Path) -> None:
    _elf(tmp_path / "exe")
    program = operand_program(tmp_path, tmp_path)
    (tmp_path / "exe").unlink()
    assert program.read_bytes()[:4] == b"\x7fELF"


def test_a_linker_is_taken_from_the_image(tmp_path: Path) -> None:
    _elf(tmp_path / "exe", b"/lib/ld-musl-x86_64.so.1")
    program = operand_program(tmp_path, tmp_path)
    assert f"{tmp_path}/root/lib/ld-musl-x86_64.so.1 --argv0 kube-scheduler" in program.read_text()


def test_no_operand_is_found_among_other_processes(tmp_path: Path) -> None:
    for number, arguments in (("7", b"kube-scheduler\0--config=/x\0"), ("8", b""), ("self", b"x")):
        (tmp_path / number).mkdir()
        (tmp_path / number / "cmdline").write_bytes(arguments)
    assert find_operand(tmp_path) is None


@pytest.mark.parametrize("content", [None, b"#!/bin/sh\n", b"\x7fELF\x02\x01"])
def test_another_file_than_a_program_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "exe").write_bytes(content)
    with pytest.raises(SimulationError, match="the program of the operand's image"):
        operand_program(tmp_path, tmp_path)
