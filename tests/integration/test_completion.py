"""Completion in real shells and in kubectl, with names from a real API server.

A shell runs in a pseudo-terminal; the test types a line and the Tab key, and reads the screen.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cluster import packages

from .conftest import ApiServer, RefusedError

BIN = Path(sys.executable).parent
SECONDS = 30.0
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOAD = {
    "bash": "source <(kubectl-scheduler completion bash); PS1='$ '; echo load''ed",
    "zsh": "autoload -U compinit; compinit -u -D; source <(kubectl-scheduler completion zsh); "
    "PS1='$ '; echo load''ed",
    "fish": "kubectl-scheduler completion fish | source; echo load''ed",
}
_ESCAPES = re.compile(rb"\x1b(\[[0-9;?<>=]*[A-Za-z]|\][^\x07]*\x07|[()=>][B0]?)")


class Terminal:
    """A shell whose screen the test reads."""

    def __init__(self, shell: str, environment: dict[str, str], folder: Path) -> None:
        self._main, other = pty.openpty()
        self._process = subprocess.Popen(
            START[shell],
            stdin=other,
            stdout=other,
            stderr=other,
            cwd=folder,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # fish insists on it
        )
        os.close(other)
        self._shown = b""

    def type(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def until(self, text: str) -> str:
        """Wait until the text is on the screen; what was shown since the last call."""
        end = time.monotonic() + SECONDS
        while text not in self._screen():
            left = end - time.monotonic()
            assert left > 0, f"{text!r} is not shown: {self._screen()!r}"
            ready, _, _ = select.select([self._main], [], [], left)
            if ready:
                with suppress(OSError):
                    shown = os.read(self._main, 65536)
                    self._shown += shown
                    if b"\x1b[c" in shown or b"\x1b[0c" in shown:  # fish asks what terminal it is
                        self.type("\x1b[?6c")
        found, self._shown = self._screen(), b""
        return found

    def _screen(self) -> str:
        return _ESCAPES.sub(b"", self._shown).decode(errors="replace").replace("\r", "")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._main)


@pytest.fixture(scope="module")
def environment(api_server: ApiServer) -> dict[str, str]:
    packages.ensure(packages.SHELL_TOOLS)
    path = os.pathsep.join([str(BIN), str(api_server.binaries), os.environ["PATH"]])
    return {
        **os.environ,
        "PATH": path,
        "KUBECONFIG": str(api_server.kubeconfig),
        "TERM": "xterm",
        "COLUMNS": "200",
    }


@pytest.fixture(params=list(START))
def shell(
    request: pytest.FixtureRequest, environment: dict[str, str], tmp_path: Path
) -> Iterator[Terminal]:
    own = {**environment, "HOME": str(tmp_path)}
    terminal = Terminal(request.param, own, tmp_path)
    try:
        terminal.type(LOAD[request.param] + "\n")
        terminal.until("loaded")
        yield terminal
    finally:
        terminal.close()


@pytest.fixture(scope="module")
def pod(api_server: ApiServer) -> Iterator[str]:
    api_server.create_namespace("completed")
    spec = {"containers": [{"name": "c", "image": "x"}]}
    body = {"metadata": {"name": "waiting-for-tab"}, "spec": spec}
    path = "/api/v1/namespaces/completed/pods"
    api_server.request("POST", path, body)
    yield "waiting-for-tab"
    with suppress(RefusedError):
        api_server.request("DELETE", f"{path}/waiting-for-tab")


@pytest.mark.presubmit_first
@pytest.mark.timeout(120)
def test_a_shell_completes_commands_flags_and_names_of_the_cluster(
    shell: Terminal, pod: str
) -> None:
    shell.type("kubectl-scheduler must-g\t")
    shell.until("must-gather ")
    shell.type("\x15kubectl-scheduler rollout undo --to-rev\t")
    shell.until("--to-revision ")
    shell.type("\x15kubectl-scheduler status --platform=mana\t")
    shell.until("--platform=managed")
    shell.type("\x15kubectl-scheduler why -n completed waiting\t")
    shell.until(pod)


@pytest.mark.timeout(120)
def test_a_shell_completes_names_of_files(shell: Terminal, tmp_path: Path) -> None:
    (tmp_path / "my-configuration.yaml").touch()
    shell.type("kubectl-scheduler validate -f my-conf\t")
    shell.until("my-configuration.yaml")


def test_kubectl_completes_the_plugin_with_names_of_the_cluster(
    environment: dict[str, str], api_server: ApiServer, pod: str
) -> None:
    words = ["scheduler", "why", "-n", "completed", "wait"]
    done = subprocess.run(
        [api_server.kubectl_path, "__complete", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [pod, ":4"]
