"""The stories of docs/stories.md: each command is typed, and what it prints is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .conftest import REPOSITORY, Cluster
from .documented import commands

_PROGRAMS = Path(sys.executable).parent
_LOG = "background.log"
_ANSWERS = ("kubectl scheduler pending", "kubectl scheduler why", "kubectl scheduler check")
"""Their exit code is 1 if they find something."""


class Story:
    """A terminal in a folder. Programs that it starts in the background end with it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []
        path = [str(cluster.sandbox.state / "bin"), str(_PROGRAMS), os.environ["PATH"]]
        self._environment: Mapping[str, str] = {
            **os.environ,
            "PATH": os.pathsep.join(path),
            "KUBECONFIG": str(cluster.sandbox.kubeconfig),
            "PYTHONPATH": str(REPOSITORY / "operator"),
        }

    def lines(self, name: str) -> list[str]:
        return commands(f"story {name}").splitlines()

    def type(self, line: str) -> str:
        """Run a command line; what it printed."""
        print(f"$ {line}", flush=True)
        if line.endswith("&"):
            words = f"exec env {line.removesuffix('&')} >{_LOG} 2>&1"
            self._started.append(self._popen(words, subprocess.DEVNULL))
            return ""
        process = self._popen(line, subprocess.PIPE)
        text, _ = process.communicate(timeout=400)
        print(text, flush=True)
        assert process.returncode == 0 or line.startswith(_ANSWERS), f"{line}: {text}"
        return text

    def background(self) -> str:
        """What programs in the background have printed."""
        return (self._folder / _LOG).read_text()

    def _popen(self, line: str, out: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "-c", line],
            cwd=self._folder,
            env=self._environment,
            text=True,
            stdout=out,
            stderr=subprocess.STDOUT,
        )

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait(10)
