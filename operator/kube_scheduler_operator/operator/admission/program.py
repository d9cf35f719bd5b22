"""The webhook's process: it follows the orders of the operator, within limits of its own.

It is a child of the operator in the same container, so that a flood of requests neither delays the
operator's event loop nor takes its memory: it has a lower priority, and only this process fails at
its memory limit. It ends with its standard input, and so with the operator.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import uvloop

from ...base import names
from ...base.defects import contained
from ...base.klog import plain
from ...kube.client import ApiClient
from ...kube.credentials import find
from ...kube.errors import CredentialsError
from ...serving.certificate import CertificateError, KeyPair, ServingCertificate
from ...serving.connections import Listener, Sharing
from .decisions import ReviewDecisions
from .pipe import LINE, SchedulersOrder, ServeOrder, StartOrder, WebhookReport, read_order
from .review_connection import ReviewConnection, SharedDesk

log = logging.getLogger(__name__)

MEMORY: Final = 256 * 1024 * 1024
"""The memory limit, bytes; at rest the process uses some 30 MiB."""

NICENESS: Final = 5
"""Added to the operator's, which must renew its Lease while requests take all processors."""

MAX_CONNECTIONS: Final = 128

SHARING: Final = Sharing(
    rate=50.0,  # each takes some 1 ms
    # API servers keep 25 connections, and open one for each Pod that is created at the same time.
    burst=100,
    patience=1.0,  # the API server has given up by then
    handshake_seconds=2.0,
    handshakes=8,  # so that other addresses do not wait for long
    connections=32,  # API servers keep 25 at most
)

REPORT_SECONDS: Final = 1.0
"""The longest time between two reports, which show that the process is alive."""

GATHER_SECONDS: Final = 0.05
"""The time in which results are gathered into one report."""

RETRY_SECONDS: Final = 1.0
"""Between two attempts to listen."""

GRACE: Final = 1.0
"""Seconds in which requests in progress end, when the process ends."""

_MESSAGES: Final = 5
"""The most messages of one report; strangers may cause any number."""

_TEXT: Final = 500
_STACK: Final = 1024 * 1024
_SET_PDEATHSIG: Final = 1


class WebhookReports(logging.Handler):
    """Gathers what the operator receives, and writes it when there is something new."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.port, self.certificate, self.problem = 0, "", ""
        self._results: Counter[str] = Counter()
        self._messages: list[tuple[int, str]] = []
        self._news = asyncio.Event()

    def count(self, result: str) -> None:
        self._results[result] += 1
        self._news.set()

    def changed(self) -> None:
        self._news.set()

    def emit(self, record: logging.LogRecord) -> None:
        """Forward a message to the operator's log."""
        if len(self._messages) < _MESSAGES:
            self._messages.append((record.levelno, plain(record)[:_TEXT]))
            self._news.set()

    async def write(self, output: asyncio.StreamWriter) -> None:
        """Write reports until the operator has gone."""
        with contextlib.suppress(ConnectionError):
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REPORT_SECONDS):
                        await self._news.wait()
                        await asyncio.sleep(GATHER_SECONDS)
                self._news.clear()
                results, self._results = self._results, Counter()
                messages, self._messages = self._messages, []
                report = WebhookReport(
                    self.port, self.certificate, self.problem, dict(results), messages
                )
                output.write(report.line())
                await output.drain()


class WebhookServer:
    """The port, its certificate and its connections."""

    def __init__(
        self, start: StartOrder, decisions: ReviewDecisions, reports: WebhookReports
    ) -> None:
        self._start, self._reports = start, reports
        self._shared = SharedDesk(decisions.decide, reports.count)
        self._serving: ServeOrder | None = None
        self._certificate: ServingCertificate | None = None
        self._listener: Listener | None = None

    async def serve(self, serving: ServeOrder) -> None:
        """Serve with this certificate from now on; a problem is reported."""
        pair = KeyPair(serving.certificate.encode(), serving.key.encode())
        while True:
            try:
                await self._use(pair)
            except CertificateError as error:
                self._report(str(error))
            except OSError as error:  # a full disk, no file descriptor
                self._report(str(error))
                await asyncio.sleep(RETRY_SECONDS)
                continue
            except Exception as error:  # another certificate may do
                self._report(contained("webhook", names.ASSIGNMENT, error))
            else:
                self._report("")
            return

    async def _use(self, pair: KeyPair) -> None:
        if self._certificate is None:
            self._certificate = await asyncio.to_thread(ServingCertificate, pair=pair)
        else:
            await asyncio.to_thread(self._certificate.load, pair)
        self._reports.certificate = pair.certificate.decode()
        if self._listener is None:
            await self._listen(self._certificate)

    async def close(self) -> None:
        """Stop listening, and end the requests in progress."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        with contextlib.suppress(OSError):
            await listener.close()
        ends = time.monotonic() + GRACE
        while self._shared.busy and time.monotonic() < ends:  # noqa: ASYNC110 - a second at most
            await asyncio.sleep(0.02)
        listener.abort()

    async def _listen(self, certificate: ServingCertificate) -> None:
        while True:
            listener = Listener(
                lambda: ReviewConnection(self._shared),
                MAX_CONNECTIONS,
                certificate.context,
                SHARING,
            )
            try:
                await listener.start(self._start.host, self._start.port)
            except OSError as error:
                self._report(str(error))
                await asyncio.sleep(RETRY_SECONDS)
                continue
            break
        self._listener = listener
        self._reports.port = listener.address[1]

    def _report(self, problem: str) -> None:
        self._reports.problem = problem
        self._reports.changed()


async def _run(source: Any, sink: Any) -> None:
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader(LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), source)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
    output = asyncio.StreamWriter(transport, protocol, None, loop)
    reports = WebhookReports()
    logging.getLogger().handlers[:] = [reports]
    logging.getLogger().setLevel(logging.INFO)
    start = read_order(await orders.readline())
    if not isinstance(start, StartOrder):
        raise TypeError("the first order is not Start")
    if os.getppid() != start.parent:
        return  # the operator ended before prctl took effect
    credentials = find(start.kubeconfig)
    with contextlib.suppress(CredentialsError):  # the first read reports it
        await credentials.access()  # slow the first time
    async with ApiClient(credentials, field_manager=names.FIELD_MANAGER) as api:
        decisions = ReviewDecisions(api, start.excluded)
        server = WebhookServer(start, decisions, reports)
        writing = asyncio.create_task(reports.write(output))
        obeying = asyncio.create_task(_obey(orders, decisions, server))
        try:
            await asyncio.wait({writing, obeying}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await server.close()
            for task in (writing, obeying):
                task.cancel()
            await asyncio.gather(writing, obeying, return_exceptions=True)
            transport.close()


async def _obey(
    orders: asyncio.StreamReader, decisions: ReviewDecisions, server: WebhookServer
) -> None:
    """Follow the operator's orders until it ends; only the last certificate counts."""
    serving: asyncio.Task[None] | None = None
    try:
        while line := await orders.readline():
            order = read_order(line)
            if isinstance(order, SchedulersOrder):
                decisions.use(order.items)
            elif isinstance(order, ServeOrder):
                if serving is not None:
                    serving.cancel()
                    await asyncio.gather(serving, return_exceptions=True)
                serving = asyncio.create_task(server.serve(order))
                gc.collect()
                gc.freeze()  # what is loaded now stays
    finally:
        if serving is not None:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def _limit() -> None:
    """Limit this process; where the system does not support a limit, the others still apply."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core would contain the key
    threading.stack_size(_STACK)
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGTERM, signal.SIGINT):  # the operator ends this, after all requests
        signal.signal(number, signal.SIG_IGN)


def main() -> int:
    """Run until standard input ends."""
    _limit()
    sys.stdout = sys.stderr  # output of libraries is not a report
    source, sink = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(source, sink))
    return 0


if __name__ == "__main__":
    sys.exit(main())
