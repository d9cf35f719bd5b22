"""The kube-scheduler of the container `operand`, started by the launcher there.

Its only output is the text of a foreign program, which is bounded and treated like a log.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .launcher import REFUSED, STDERR, STDOUT, Order, encoded, socket_address
from .process import (
    VERSION_SECONDS,
    SimulationError,
    configuration_arguments,
    configuration_files,
)

ADDRESS: Final = "@kube-scheduler-operator/launcher"
"""Where the launcher of the Pod listens."""
FOLDERS: Final = "/tmp"  # noqa: S108  # a volume of the launcher's container
"""The directory of its folders, one for each process."""

_POLL: Final = 0.02
_CHUNK: Final = 2**16
_LONGEST_VERSION: Final = 4096


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
        end = time.monotonic() + VERSION_SECONDS
        received = b""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(VERSION_SECONDS)
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
    ) -> LaunchedProcess:
        folder = self._folder()
        arguments = [*configuration_arguments(folder), *flags]
        files = configuration_files(folder, config, url)
        try:
            order = encoded(Order(folder, STDERR, arguments, files))
        except ValueError as error:
            raise SimulationError(f"kube-scheduler cannot be started: {error}") from None
        try:
            reader, writer = await self._connected()
        except OSError:
            raise _not_running() from None
        writer.write(order)
        return LaunchedProcess(reader, writer)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(socket_address(self.address), limit=_CHUNK)

    def _folder(self) -> str:
        return f"{self.folders}/kube-scheduler-{secrets.token_hex(8)}"


class LaunchedProcess:
    """A process that a launcher has started; it lives as long as the connection."""

    def __init__(self, log: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.log = log  # its standard error
        self._writer = writer

    async def end(self) -> None:
        """End it; the launcher closes the connection when it has ended."""
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()

    async def close(self) -> None:
        """Close the connection; the launcher ends what is left."""
        await _close(self._writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()  # what was not sent yet must not keep it open
    with contextlib.suppress(OSError):  # the other side was first
        await writer.wait_closed()


def _not_running() -> SimulationError:
    return SimulationError("the container of the operand's image does not run")
