"""A TCP relay on loopback that counts what a client reads from the API server.

TLS passes through it, so the bytes are those on the wire: compressed where the server compresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Final

_PIECE: Final = 1 << 18


class Relay:
    """Forwards connections to a port of this host; a context manager.

    Attributes:
        port: where clients connect.
        received: bytes that the server sent to all clients.
        connections: connections that clients made.
    """

    def __init__(self, to: int) -> None:
        self.port = self.received = self.connections = 0
        self._to = to
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Relay:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_PIECE)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(task)
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(OSError):
            there = await asyncio.open_connection("127.0.0.1", self._to, limit=_PIECE)
            ways = (
                asyncio.create_task(self._forward(reader, there[1], counted=False)),
                asyncio.create_task(self._forward(there[0], writer, counted=True)),
            )
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            there[1].transport.abort()
        writer.transport.abort()

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_PIECE):
                if counted:
                    self.received += len(data)
                writer.write(data)
                await writer.drain()
