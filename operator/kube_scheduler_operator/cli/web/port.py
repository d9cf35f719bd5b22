"""The port of the console, which every user and program of the machine can connect to.

Who has no token costs little: connections are few, those without an accepted request make room for
others, and what is not HTTP is neither logged nor quoted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from ...serving.connections import Listener
from ...serving.handled import HandledConnections
from .security import HEADERS

ADDRESS: Final = "127.0.0.1"

CONNECTIONS: Final = 96
"""Open connections; a browser has six for each of the console's two host names."""

_SILENT: Final = logging.getLogger(f"{__name__}.silent")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # a stranger would write lines to the reader's terminal without end


class _Handler(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it quotes the request
    ) -> web.StreamResponse:
        """Answer what is not HTTP: with the headers of every response."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the response has been sent") from exc
        response = web.Response(status=status, text="not a valid request\n", headers=HEADERS)
        response.force_close()
        return response


@asynccontextmanager
async def listening(
    app: web.Application, connections: HandledConnections, port: int
) -> AsyncIterator[int]:
    """Serve on loopback for the block; return the port. Port 0 selects a free one.

    Raises:
        OSError: the port is in use.
    """
    runner = web.AppRunner(app, handle_signals=False, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    server, loop = runner.server, asyncio.get_running_loop()
    if server is None:
        raise RuntimeError("aiohttp has not set up its server")

    def handler() -> web.RequestHandler:
        return _Handler(server, loop=loop, logger=_SILENT, access_log=None, auto_decompress=False)  # type: ignore[arg-type] # None: no log

    listener = Listener(connections.factory(handler), CONNECTIONS)
    try:
        await listener.start(ADDRESS, port)
        yield listener.address[1]
    finally:
        await listener.close()
        await runner.cleanup()
        listener.abort()
