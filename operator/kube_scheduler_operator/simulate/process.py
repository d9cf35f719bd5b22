"""Finds, starts, limits and always ends a kube-scheduler.

It is a program of this machine, or that of the container `operand`, started by the launcher there.
Its only output is the text of a foreign program, which is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import re
import resource as limits
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_LINE, MESSAGE_LENGTH
from ..config.language.versions import Version
from .launcher import REFUSED, STDERR, STDOUT, Order, encoded, socket_address

PROGRAM: Final = "kube-scheduler"
ADDRESS: Final = "@kube-scheduler-operator/launcher"
"""Where the launcher of the Pod listens."""
NEXT_ADDRESS: Final = f"{ADDRESS}-next"
"""Where that of another version's kube-scheduler listens, in a Pod with two."""
FOLDERS: Final = "/tmp"  # noqa: S108  # a volume of the launcher's container
"""The directory of its folders, one for each process."""
_MEMORY: Final = 8 * 2**30
"""Bytes of data that kube-scheduler may have; with 5,000 nodes it needs 0.5 GiB."""
_GOGC: Final = "200"
"""Of a process that lives for seconds, and whose memory grows until it knows the world. With more,
`pending` at 5,000 nodes needs 0.85 GiB. Where memory has a limit, in a container, Go's default of
100 stays."""
_CONFIG: Final = "config.json"
_KUBECONFIG: Final = "kubeconfig"
_KEPT_VERSIONS: Final = 16
_VERSION_SECONDS: Final = 20.0
"""Seconds for the response to --version."""
_CHUNK: Final = 2**16
_LONGEST_LINE: Final = 2**20
"""Bytes that are read of a line of its log."""
_KEPT_LINES: Final = 40
_UNDECODABLE: Final = re.compile(
    r"failed to list \*\w+\.(\w+): "
    r"((?:json: cannot unmarshal|quantities must match|unable to parse quantity).*?)\" "
)
"""What client-go's reflector repeatedly logs about objects that Go cannot decode."""
_STOP_SECONDS: Final = 2.0
_POLL: Final = 0.02
_LONGEST_VERSION: Final = 4096
_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG


class SimulationError(Exception):
    """The simulation could not be run; the message, one line, states the reason and the remedy."""

    def __init__(self, text: str) -> None:
        super().__init__(foreign(text, MESSAGE_LENGTH))


@dataclass(frozen=True, slots=True)
class Started:
    """A kube-scheduler that was started."""

    log: asyncio.StreamReader  # its standard error, until it ends
    end: Callable[[], Awaitable[None]]  # ends it, and so its log
    resources: contextlib.AsyncExitStack  # to be closed when its log was read


def binary_version(binary: Binary) -> Version:
    """Return the version of a kube-scheduler.

    Raises:
        SimulationError: it does not run, or its answer is not a version.
    """
    try:
        return _version_of(binary, binary.stat() if isinstance(binary, Path) else None)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        reason = foreign(str(error), FOREIGN_LINE)
        raise SimulationError(f"{binary} does not report its version: {reason}") from None


@lru_cache(_KEPT_VERSIONS)
def _version_of(binary: Binary, _state: os.stat_result | None) -> Version:
    """Return the version that a kube-scheduler in this state reports: it takes 0.1 s each time."""
    words = _program(binary).version().split() or ["nothing"]
    return Version.parse(words[-1])


class KubeSchedulerProcess:
    """A running kube-scheduler.

    Its log may be that of any program: lines are cut at a limit, and of the text that messages may
    quote only the latest is kept, without control characters.
    """

    def __init__(self, binary: Binary, on_line: Callable[[bytes], None]) -> None:
        # the latest lines of its log, for error messages
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self.ended = asyncio.Event()  # set when the process has ended
        self._panic = ""  # the line of Go that is before its long stack traces
        self._program = _program(binary)
        self._on_line = on_line
        self._started: Started | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start(
        self,
        config: Mapping[str, Any],
        url: str,
        flags: Sequence[str] = (),
    ) -> None:
        self._started = await self._program.start(config, url, flags)
        self._reader = asyncio.create_task(self._read(self._started.log))

    async def _read(self, log: asyncio.StreamReader) -> None:
        try:
            async for line in _lines(log):
                self._on_line(line)
                if line[:1] in (b"E", b"F") or not line[1:5].isdigit():
                    text = line[: 4 * FOREIGN_LINE].decode(errors="replace").rstrip()
                    self.lines.append(foreign(text, FOREIGN_LINE))
                    if line.startswith(b"panic: "):
                        self._panic = self.lines[-1]
        finally:
            self.ended.set()

    def failure(self) -> str:
        """Return the last error in its log, or what it panicked with."""
        if self._panic:
            return self._panic
        text = [line for line in self.lines if line.strip()]
        return foreign(text[-1], FOREIGN_LINE) if text else "its log is empty"

    def undecodable(self) -> str:
        """Return which kind of objects it cannot decode, and why; empty if it decodes all."""
        for line in self.lines:
            if (match := _UNDECODABLE.search(line)) is not None:
                reason = match[2].replace("\\", "")
                return f"kube-scheduler cannot decode a {match[1]}: {reason}; correct that field"
        return ""

    async def stop(self) -> None:
        """End it and remove its folder."""
        try:
            if self._started is not None:
                await self._started.end()
            if self._reader is not None:
                await asyncio.wait((self._reader,), timeout=_STOP_SECONDS)
                self._reader.cancel()
                await asyncio.gather(self._reader, return_exceptions=True)
        finally:
            if self._started is not None:
                await self._started.resources.aclose()


async def _lines(log: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a log, each cut at a limit."""
    rest, skips = b"", False
    while chunk := await log.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if not skips:
                yield line[:_LONGEST_LINE]
            skips = False
        if len(rest) > _LONGEST_LINE:
            if not skips:
                yield rest[:_LONGEST_LINE]
            rest, skips = b"", True
    if rest and not skips:
        yield rest


# --- a program of this machine --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LocalProgram:
    path: Path

    def version(self) -> str:
        return subprocess.run(
            [PROGRAM, "--version"],
            executable=self.path,
            capture_output=True,
            text=True,
            timeout=_VERSION_SECONDS,
            check=True,
        ).stdout

    async def start(
        self, config: Mapping[str, Any], url: str, flags: Sequence[str] = ()
    ) -> Started:
        async with contextlib.AsyncExitStack() as resources:
            prefix = "kube-scheduler-simulation-"
            folder = resources.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
            process = self._process(folder, config, url, flags)

            async def end() -> None:
                process.kill()  # it has nothing to save

            async def reap() -> None:
                """Wait for its end, which polls: after its log has ended, there is little left."""
                process.kill()
                await asyncio.to_thread(process.wait, _STOP_SECONDS * 5)

            resources.push_async_callback(reap)
            log = asyncio.StreamReader(limit=_CHUNK)
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(log), process.stderr
            )
            resources.callback(transport.close)
            return Started(log, end, resources.pop_all())

    def _process(
        self, folder: str, config: Mapping[str, Any], url: str, flags: Sequence[str]
    ) -> subprocess.Popen[bytes]:
        for name, content in _configuration_files(folder, config, url).items():
            path = Path(folder, name)
            path.touch(0o600)
            path.write_text(content)
        parent = os.getpid()

        def bound() -> None:
            """Limit the child's memory and end it with its parent (runs in the child)."""
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
                limits.setrlimit(limits.RLIMIT_DATA, (_MEMORY, _MEMORY))

        return subprocess.Popen(
            # The name selects the component of a multi-component program.
            [PROGRAM, *_configuration_arguments(folder), *flags],
            executable=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=bound,  # the death signal belongs to the child
            start_new_session=True,  # Ctrl-C is handled here
            env={"PATH": os.environ.get("PATH", ""), "HOME": folder, "TZ": "UTC", "GOGC": _GOGC},
        )


# --- the program of another container -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaunchedProgram:
    """The kube-scheduler that a launcher starts."""

    address: str = ADDRESS
    folders: str = FOLDERS  # the directory of its container in which a process has its folder

    def __str__(self) -> str:
        return "the kube-scheduler of the operand's image"

    async def wait(self, seconds: float) -> None:
        """Wait until the launcher listens.

        Raises:
            SimulationError: it does not within this time.
        """
        end = time.monotonic() + seconds
        while True:
            try:
                _, writer = await self._connected()
            except OSError:
                if time.monotonic() > end:
                    raise _not_running() from None
                await asyncio.sleep(_POLL)
            else:
                await _close(writer)
                return

    def version(self) -> str:
        end = time.monotonic() + _VERSION_SECONDS
        received = b""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_VERSION_SECONDS)
            connection.connect(socket_address(self.address))
            connection.sendall(encoded(Order(self._folder(), STDOUT, ["--version"], {})))
            while len(received) < _LONGEST_VERSION:
                connection.settimeout(max(end - time.monotonic(), 0.001))
                part = connection.recv(_LONGEST_VERSION)
                if not part:
                    break
                received += part
        text = received.decode(errors="replace")
        if text.startswith(REFUSED):
            raise OSError(text.strip())
        return text

    async def start(
        self, config: Mapping[str, Any], url: str, flags: Sequence[str] = ()
    ) -> Started:
        folder = self._folder()
        arguments = [*_configuration_arguments(folder), *flags]
        files = _configuration_files(folder, config, url)
        try:
            order = encoded(Order(folder, STDERR, arguments, files))
        except ValueError as error:
            raise SimulationError(f"kube-scheduler cannot be started: {error}") from None
        try:
            reader, writer = await self._connected()
        except OSError:
            raise _not_running() from None
        writer.write(order)

        async def end() -> None:
            """End it; the launcher closes the connection when it has ended."""
            if writer.can_write_eof() and not writer.is_closing():
                writer.write_eof()

        resources = contextlib.AsyncExitStack()
        resources.push_async_callback(_close, writer)
        return Started(reader, end, resources)

    async def run(
        self,
        arguments: Callable[[str], Sequence[str]],
        files: Mapping[str, str],
        seconds: float,
    ) -> bytes:
        """Run it to its end with files in a folder, whose name `arguments` gets; return its log.

        Raises:
            SimulationError: it cannot be run, or does not end within this time.
        """
        folder = self._folder()
        log = b""
        try:
            order = encoded(Order(folder, STDERR, arguments(folder), files))
        except ValueError as error:
            raise SimulationError(f"kube-scheduler cannot be started: {error}") from None
        try:
            reader, writer = await self._connected()
        except OSError:
            raise _not_running() from None
        try:
            async with asyncio.timeout(seconds):
                writer.write(order)
                while part := await reader.read(_CHUNK):
                    log = (log + part)[-_LONGEST_LINE:]
        except (TimeoutError, OSError) as error:
            raise SimulationError(f"{self} did not answer: {error or 'too late'}") from None
        finally:
            await _close(writer)
        return log

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(socket_address(self.address), limit=_CHUNK)

    def _folder(self) -> str:
        return f"{self.folders}/kube-scheduler-{secrets.token_hex(8)}"


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection; the launcher ends what is left of its process."""
    writer.transport.abort()  # what was not sent yet must not keep it open
    with contextlib.suppress(OSError):  # the other side was first
        await writer.wait_closed()


def _not_running() -> SimulationError:
    return SimulationError("the container of the operand's image does not run")


Binary = Path | LaunchedProgram
"""A kube-scheduler: a file on this machine, or the program of another container."""


def _program(binary: Binary) -> LocalProgram | LaunchedProgram:
    return LocalProgram(binary) if isinstance(binary, Path) else binary


# --- what a kube-scheduler is started with --------------------------------------------------------


def _configuration_arguments(folder: str) -> list[str]:
    """Return the arguments of a kube-scheduler with the configuration in a folder."""
    return [f"--config={folder}/{_CONFIG}", "--secure-port=0"]


def _configuration_files(folder: str, config: Mapping[str, Any], url: str) -> dict[str, str]:
    """Return the files in its folder by name, for the API server at `url`."""
    connection = {
        **(config.get("clientConnection") or {}),
        "kubeconfig": f"{folder}/{_KUBECONFIG}",
        "contentType": "application/json",
        "acceptContentTypes": "application/json",
        "qps": 10000,
        "burst": 10000,
    }
    return {
        _KUBECONFIG: json.dumps(_kubeconfig(url)),
        _CONFIG: json.dumps({**config, "clientConnection": connection}),
    }


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "world", "cluster": {"server": url}}],
        "users": [{"name": "simulation", "user": {}}],
        "contexts": [{"name": "world", "context": {"cluster": "world", "user": "simulation"}}],
        "current-context": "world",
    }
