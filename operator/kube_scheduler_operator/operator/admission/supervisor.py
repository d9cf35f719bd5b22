"""The operator's side of the webhook's process: starts and restarts it, and takes its reports."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ...base.backoff import Backoff
from ...base.klog import kv
from ...base.objects import Object
from ...base.tasks import keep
from .pipe import REPORT_LINE, SchedulersOrder, ServeOrder, StartOrder, WebhookReport, order_line

log = logging.getLogger(__name__)

RESTARTS: Final = Backoff((0.0, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0))
"""Before each restart in a row; the first has no delay."""

STEADY_SECONDS: Final = 30.0
"""A process that ran for this long has not failed in a row."""

SILENT_SECONDS: Final = 60.0
"""A process that reports nothing for this long is killed."""

END_SECONDS: Final = 3.0
"""How long a process may take to end."""

PROGRAM: Final = ("-m", "kube_scheduler_operator.operator.admission.program")


@dataclass(slots=True)
class _Desired:
    """What the process should know; a new process receives all of it."""

    serving: ServeOrder | None = None
    schedulers: Sequence[Object] = ()


class WebhookProcess:
    """Runs the process from the first certificate until `stop`.

    `observer` is called with a result of requests and their number; see `StartOrder` for the rest.
    The attributes `port`, `certificate` and `problem` are those of the last `WebhookReport`; `pid`
    is 0 while no process runs.
    """

    def __init__(
        self,
        address: tuple[str, int],
        kubeconfig: str | None,
        excluded: Sequence[str],
        observer: Callable[[str, int], None],
    ) -> None:
        self.port, self.pid = 0, 0
        self.certificate = self.problem = ""
        self._address, self._kubeconfig, self._excluded = address, kubeconfig, tuple(excluded)
        self._observer = observer
        self._desired = _Desired()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def serve(self, certificate: str, key: str) -> None:
        """Serve with this certificate; starts the process if none runs."""
        serving = ServeOrder(certificate, key)
        if serving != self._desired.serving:
            self._desired.serving = serving
            self._news.set()
        if self._task is None:
            self._task = asyncio.create_task(
                keep("webhook process", self._keep), name="webhook process"
            )

    def use(self, schedulers: Sequence[Object]) -> None:
        """Decide by these SecondarySchedulers, reduced by `admission_review.essentials`."""
        if schedulers != self._desired.schedulers:
            self._desired.schedulers = schedulers
            self._news.set()

    async def stop(self) -> None:
        """Stop listening; requests in progress have a second to end."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # --- one process after the other --------------------------------------------------------------

    async def _keep(self) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            try:
                reason = await self._run()
            except OSError as error:  # no process can be started now
                reason = str(error)
            failures = 0 if time.monotonic() - began > STEADY_SECONDS else failures
            delay = RESTARTS.delay(failures)
            failures += 1
            log.warning(
                "The webhook's process ended; it starts again",
                extra=kv(reason=reason, seconds=delay),
            )
            await asyncio.sleep(delay)

    async def _run(self) -> str:
        """Run a process until it ends, and return the reason."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=REPORT_LINE,
        )
        self.pid = process.pid
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        ordering = asyncio.create_task(self._order(process.stdin))
        following = asyncio.create_task(self._follow(process.stdout))
        try:
            # Without orders it would keep an old certificate.
            await asyncio.wait({ordering, following}, return_when=asyncio.FIRST_COMPLETED)
            if ordering.done():
                ordering.result()
            if reason := await following:
                process.kill()
            code = await _ended(process)
            return reason or _described(code)
        finally:
            self.port, self.pid, self.certificate = 0, 0, ""
            ordering.cancel()
            following.cancel()
            await asyncio.gather(ordering, following, return_exceptions=True)
            process.stdin.close()
            await _ended(process)

    async def _order(self, pipe: asyncio.StreamWriter) -> None:
        host, port = self._address
        pipe.write(
            order_line(StartOrder(host, port, self._kubeconfig, self._excluded, os.getpid()))
        )
        sent = _Desired()
        with contextlib.suppress(ConnectionError):
            while True:
                self._news.clear()
                desired = self._desired
                # Schedulers first: a process that listens without them would assign nothing.
                if desired.schedulers != sent.schedulers:
                    sent.schedulers = desired.schedulers
                    pipe.write(order_line(SchedulersOrder(sent.schedulers)))
                if desired.serving is not None and desired.serving != sent.serving:
                    sent.serving = desired.serving
                    pipe.write(order_line(sent.serving))
                await pipe.drain()
                await self._news.wait()

    async def _follow(self, pipe: asyncio.StreamReader) -> str:
        """Take its reports until it ends, or return why it must be killed."""
        while True:
            try:
                async with asyncio.timeout(SILENT_SECONDS):
                    line = await pipe.readline()
                if not line.endswith(b"\n"):
                    return ""
                self._take(WebhookReport.read(line))
            except TimeoutError:
                return f"it has reported nothing for {SILENT_SECONDS:.0f} s"
            except ValueError as error:
                return str(error)

    def _take(self, report: WebhookReport) -> None:
        if report.port and not self.port:
            log.info("Serving the webhook", extra=kv(port=report.port))
        if report.problem and report.problem != self.problem:
            log.warning("Cannot serve the webhook, will retry: %s", report.problem)
        self.port, self.certificate = report.port, report.certificate
        self.problem = report.problem
        for result, number in report.results.items():
            self._observer(result, number)
        for level, message in report.messages:
            log.log(level, "%s", message)


async def _ended(process: asyncio.subprocess.Process) -> int:
    """Wait for a process that should end now; return its exit code."""
    try:
        async with asyncio.timeout(END_SECONDS):
            return await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        return await process.wait()


def _described(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
