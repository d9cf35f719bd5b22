"""A terminal whose commands and outputs become a page."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import paths, teardown
from cluster.console import SandboxError, say, succeeds
from pages.text import ALL, Keep, Shown, places_in, shorten, without_places

if TYPE_CHECKING:
    from cluster.model import Sandbox

COLUMNS = 98
"""Width of the terminal: what fits into a line of this repository, in a block."""

_PLUGIN = """#!/bin/sh
PYTHONPATH={operator} exec {python} -c '
import sys
from kube_scheduler_operator.__main__ import kubectl_plugin
sys.exit(kubectl_plugin())' "$@"
"""
_NEEDED = "import aiohttp, kopf, kubernetes, yaml"


class Terminal:
    """Runs commands in a folder of its own, as the administrator of a sandbox or without one.

    Attributes:
        folder: where the commands run; its files can be named without their path.
        surprises: commands that ended otherwise than the page expects.
    """

    def __init__(self, sandbox: Sandbox | None, folder: Path, binaries: Path | None = None) -> None:
        """Prepare; `binaries` are the programs of the terminal without a sandbox."""
        self.folder = folder
        self.surprises: list[str] = []
        tools = folder / ".bin"
        install_plugin(tools)
        self._places = places(sandbox, folder)
        if sandbox is not None:
            binaries = sandbox.state / "bin"
        self._environment = {
            "PATH": f"{tools}:{binaries}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder / ".home"),
            "KUBECONFIG": str(sandbox.kubeconfig if sandbox is not None else ""),
            "COLUMNS": str(COLUMNS),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",  # so that both streams mix as they do on a terminal
        }

    def run(
        self, command: str, keep: Keep = ALL, *, code: int = 0, timeout: float = 240.0
    ) -> Shown:
        """Run a command to its end.

        Args:
            command: words, quoted as a shell wants them; no other syntax of a shell.
            keep: how much of its output is shown.
            code: how it should end; anything else is a surprise.
            timeout: seconds.

        Raises:
            SandboxError: it did not end in time.
        """
        say(f"$ {command}")
        begun = time.monotonic()
        try:
            done = subprocess.run(
                shlex.split(command),
                check=False,
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"{command}: did not end within {timeout:.0f} s") from error
        text = done.stdout.decode(errors="replace")
        output = shorten(without_places(text, self._places), keep)
        say(f"  {done.returncode} after {time.monotonic() - begun:.1f} s")
        if done.returncode != code:
            output = text.strip()[-1000:]
            self.surprises.append(f"{command}: exit code {done.returncode}, not {code}: {output}")
        return Shown(command, output, done.returncode)

    def run_until_interrupted(self, command: str, last: str, *, timeout: float = 60.0) -> Shown:
        """Run a command that ends with Ctrl-C, and interrupt it after a line that contains `last`.

        Raises:
            SandboxError: it ended without that line, or did not print it in time.
        """
        say(f"$ {command}")
        lines: list[str] = []
        with subprocess.Popen(
            shlex.split(command),
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            limit = threading.Timer(timeout, process.kill)
            limit.start()
            for line in process.stdout or ():
                lines.append(line)
                if last in line:
                    process.send_signal(signal.SIGINT)
                    break
            else:
                raise SandboxError(f"{command}: ended without {last!r}")
            code = process.wait()
            limit.cancel()
        return Shown(command, without_places("".join(lines), self._places).rstrip(), code)

    def check(self, document: str) -> None:
        """See to it that a page does not name this machine's folders.

        Raises:
            SandboxError: it does.
        """
        if left := places_in(document, self._places):
            raise SandboxError(f"the page would name folders of this machine: {', '.join(left)}")


def places(sandbox: Sandbox | None, folder: Path) -> dict[str, str]:
    """This machine's folders that an output may name, and their replacements on a page."""
    return {
        str(folder): ".",
        **({str(sandbox.state): "sandbox"} if sandbox is not None else {}),
        str(paths.state_root()): "sandboxes",
        str(paths.cache_dir()): "cache",
        str(paths.REPOSITORY): "kube-scheduler-operator",
        str(Path.home()): "~",
    }


def python() -> Path:
    """A Python that has what the operator needs.

    Raises:
        SandboxError: it does not exist.
    """
    import sys

    for candidate in (paths.REPOSITORY / ".venv/bin/python", Path(sys.executable)):
        if candidate.exists() and succeeds(candidate, "-c", _NEEDED):
            return candidate
    raise SandboxError("kubectl scheduler needs this repository's virtual environment: hack/setup")


def install_plugin(folder: Path) -> None:
    """Put `kubectl-scheduler` into a folder: of this checkout, whatever is installed elsewhere."""
    text = _PLUGIN.format(
        operator=shlex.quote(str(paths.REPOSITORY / "operator")), python=shlex.quote(str(python()))
    )
    paths.write_atomically(folder / "kubectl-scheduler", text, 0o755)


@contextmanager
def thrown_away(name: str) -> Iterator[None]:
    """No sandbox of that name is left before the block and after it, however it ends.

    SIGTERM ends the block the way Ctrl-C does. While the sandbox is being removed, neither of
    them interrupts.
    """
    teardown.down(name)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        try:
            teardown.down(name)
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminated(*_: object) -> None:
    raise KeyboardInterrupt


def sizes(folder: Path) -> Mapping[str, int]:
    """The files below a folder: path, with slashes, and bytes."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }


def keep_for_later(name: str, text: str) -> Path:
    """Write what a run that did not succeed has found, so that it need not run again.

    Returns:
        Where it is, below build/, which is not part of the repository.
    """
    path = paths.REPOSITORY / "build" / name
    paths.write_atomically(path, text)
    return Path(os.path.relpath(path))
