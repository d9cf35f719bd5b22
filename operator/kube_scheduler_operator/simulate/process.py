"""The kube-scheduler process: found, started, bounded and always ended."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import re
import resource as limits
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from ..schedulerconfig.versions import Version

PROGRAM: Final = "kube-scheduler"
_ALL_COMPONENTS: Final = "controlplane"
"""The program of all components that `hack/sandbox` builds; its name selects one."""
_CACHE: Final = "KUBE_SCHEDULER_OPERATOR_CACHE"
_ASSETS: Final = "KUBEBUILDER_ASSETS"
_MEMORY: Final = 8 * 2**30
"""Bytes of data that kube-scheduler may have; with 5,000 nodes it needs 0.5 GiB."""
_KEPT_LINES: Final = 40
_UNDECODABLE: Final = re.compile(
    r"failed to list \*\w+\.(\w+): "
    r"((?:json: cannot unmarshal|quantities must match|unable to parse quantity).*?)\" "
)
"""What a reflector of client-go logs, again and again, about objects that Go cannot decode."""
_STOP_SECONDS: Final = 2.0
_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG


class SimulationError(Exception):
    """The simulation could not be run; the message states the reason and the remedy."""


def find_binary(path: str | None, version: str = "") -> Path:
    """The kube-scheduler to run: `path`, else of $PATH, $KUBEBUILDER_ASSETS or the cache.

    Args:
        path: what the user chose, or None.
        version: the cluster's version; the cache has several, and the same minor is preferred.

    Raises:
        SimulationError: no program was found, or `path` is not a program.
    """
    if path:
        found = shutil.which(path)
        if found is None:
            raise SimulationError(f"--kube-scheduler {path}: this is not an executable file")
        return Path(found).absolute()
    for candidate in candidates(version):
        return candidate
    raise SimulationError(
        "no kube-scheduler was found: name one with --kube-scheduler PATH; the program of a "
        "release is at https://dl.k8s.io/release/v1.35.4/bin/linux/amd64/kube-scheduler"
    )


def candidates(version: str) -> Iterator[Path]:
    """The programs of $KUBEBUILDER_ASSETS, $PATH and the cache, those of this version first."""
    found = []
    if assets := os.environ.get(_ASSETS):
        found.append(Path(assets, PROGRAM))
    if on_path := shutil.which(PROGRAM):
        found.append(Path(on_path))
    cached = _cached()
    minor = re.match(r"v?(\d+\.\d+)", version)
    if minor:
        same = [each for each in cached if each.parent.name.startswith(f"v{minor[1]}.")]
        cached = same or cached
    for candidate in (*found, *cached):
        if os.access(candidate, os.X_OK):
            yield candidate.absolute()


def _cached() -> list[Path]:
    base = Path(os.environ.get(_CACHE) or Path.home() / ".cache" / "kube-scheduler-operator")
    found = [*base.glob(f"build/v*/{PROGRAM}"), *base.glob(f"build/v*/{_ALL_COMPONENTS}")]

    def version(path: Path) -> tuple[int, ...]:
        return tuple(map(int, re.findall(r"\d+", path.parent.name)[:3]))

    return sorted(found, key=version, reverse=True)


def binary_version(binary: Path) -> Version:
    """The version of a kube-scheduler.

    Raises:
        SimulationError: it does not run, or its answer is not a version.
    """
    try:
        done = subprocess.run(
            [PROGRAM, "--version"],
            executable=binary,
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return Version.parse(done.stdout.split()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise SimulationError(f"{binary} does not report its version: {error}") from None


class KubeSchedulerProcess:
    """A running kube-scheduler with a folder of its own, which is deleted at the end.

    Attributes:
        lines: the latest lines of its log, for error messages.
        ended: set when the process has ended.
    """

    def __init__(self, binary: Path, on_line: Callable[[bytes], None]) -> None:
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self.ended = asyncio.Event()
        self._binary = binary
        self._on_line = on_line
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="kube-scheduler-simulation-")
        self._reader: asyncio.Task[None] | None = None

    def start(
        self,
        config: Mapping[str, Any],
        url: str,
        flags: Sequence[str] = (),
    ) -> None:
        """Start it with a configuration for the API server at `url`."""
        folder = Path(self._folder.name)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.touch(0o600)
        kubeconfig.write_text(json.dumps(_kubeconfig(url)))
        connection = {
            **(config.get("clientConnection") or {}),
            "kubeconfig": str(kubeconfig),
            "contentType": "application/json",
            "acceptContentTypes": "application/json",
            "qps": 10000,
            "burst": 10000,
        }
        path = folder / "config.json"
        path.touch(0o600)
        path.write_text(json.dumps({**config, "clientConnection": connection}))
        # The name selects the component of a program that is several.
        command = [PROGRAM, f"--config={path}", "--secure-port=0", *flags]
        parent = os.getpid()

        def bound() -> None:
            """In the child: end with the parent, whatever ends it, and take no more memory."""
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
                limits.setrlimit(limits.RLIMIT_DATA, (_MEMORY, _MEMORY))

        self._process = subprocess.Popen(
            command,
            executable=self._binary,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=bound,  # the death signal belongs to the child
            start_new_session=True,  # Ctrl-C is handled here
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "TZ": "UTC"},
        )
        if self._process.stderr is not None:
            self._reader = asyncio.create_task(self._read(self._process.stderr))

    async def _read(self, stderr: IO[bytes]) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=2**24)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), stderr
        )
        try:
            async for line in reader:
                self._on_line(line)
                if line[:1] in (b"E", b"F") or not line[1:5].isdigit():
                    self.lines.append(line.decode(errors="replace").rstrip()[:2000])
        finally:
            transport.close()
            self.ended.set()

    def failure(self) -> str:
        """The last error in its log."""
        text = [line for line in self.lines if line.strip()]
        return text[-1] if text else "its log is empty"

    def undecodable(self) -> str:
        """Which kind of objects it cannot decode, and why; empty if it decodes all."""
        for line in self.lines:
            if (found := _UNDECODABLE.search(line)) is not None:
                reason = found[2].replace("\\", "")
                return f"kube-scheduler cannot decode a {found[1]}: {reason}; correct that field"
        return ""

    async def stop(self) -> None:
        """End it and remove its folder."""
        try:
            process = self._process
            if process is not None:
                process.kill()  # it has nothing to save
                await asyncio.to_thread(process.wait, _STOP_SECONDS * 5)
            if self._reader is not None:
                await asyncio.wait((self._reader,), timeout=_STOP_SECONDS)
                self._reader.cancel()
                # It closes its end of the pipe before the number of the file is free again.
                await asyncio.gather(self._reader, return_exceptions=True)
        finally:
            if self._process is not None and self._process.stderr is not None:
                self._process.stderr.close()
            self._folder.cleanup()


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "world", "cluster": {"server": url}}],
        "users": [{"name": "simulation", "user": {}}],
        "contexts": [{"name": "world", "context": {"cluster": "world", "user": "simulation"}}],
        "current-context": "world",
    }
