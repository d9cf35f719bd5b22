"""The exporter program: samples the node's load and serves it over HTTP.

`/statistics` is flat JSON with usage in percent, under the keys of crane-scheduler-plus'
node-metrics, so that its controller can read this exporter, too. `/metrics` is for Prometheus.
"""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .recorder import INTERVAL, UsageRecorder, exposition
from .saved_windows import StateError, StateFile, boot_id, boot_time
from .server import Answer, ExporterServer
from .usage_source import CgroupSource, HostSource, UsageSource

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)

PORT: Final = 19101
FIRST_INTERVAL: Final = 1.0
"""Seconds until the second sample, which gives the first values after a start."""

SAVE_INTERVAL: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterOptions:
    """The flags of `kube-scheduler-operator node-metrics`, under their names."""

    address: str = "0.0.0.0"
    port: int = PORT
    root: Path = Path("/")
    cgroup: str = ""
    cpu_capacity: float | None = None
    memory_capacity: float | None = None
    interval: float = INTERVAL
    moments_window: float = 86400.0
    max_of_samples: bool = False
    state_file: Path | None = None
    tls_cert_file: Path | None = None
    tls_private_key_file: Path | None = None
    client_ca_file: Path | None = None

    def source(self) -> UsageSource:
        host = HostSource(self.root / "proc")
        if not self.cgroup:
            return host
        groups = self.root / "sys/fs/cgroup"
        return CgroupSource(groups, self.cgroup, self.cpu_capacity, self.memory_capacity, host)


def answers(recorder: UsageRecorder, path: str) -> Answer:
    """Return the response for a path."""
    if path == "/healthz":
        if recorder.fresh:
            return Answer(200, b"ok\n")
        return _unavailable(recorder)
    if path not in ("/statistics", "/metrics"):
        return Answer(404, b"not found; use /statistics, /metrics or /healthz\n")
    statistics = recorder.statistics()
    if path == "/metrics":
        text = exposition(statistics, recorder)
        return Answer(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")
    if statistics is None:
        return _unavailable(recorder)
    body = json.dumps(statistics, separators=(",", ":")) + "\n"
    return Answer(200, body.encode(), "application/json")


def _unavailable(recorder: UsageRecorder) -> Answer:
    why = recorder.trouble or "waiting for the first sample"
    return Answer(503, f"no sample: {why}\n".encode())


def main(options: ExporterOptions) -> int:
    """Export until SIGTERM; return the exit code."""
    recorder = UsageRecorder(
        options.source(),
        boot_time,
        interval=options.interval,
        moments_window=options.moments_window,
        max_of_samples=options.max_of_samples,
    )
    state = StateFile(options.state_file, boot=boot_id()) if options.state_file else None
    if state:
        _resume(recorder, state)
    try:
        server = ExporterServer(
            (options.address, options.port),
            lambda path: answers(recorder, path),
            tls=_tls(options),
        )
    except OSError as error:
        log.error("Failed to listen on %s:%d: %s", options.address, options.port, error)
        return 1
    with contextlib.closing(server), _termination() as ended:
        server.wake_by(ended)
        log.info("Listening on %s:%d", options.address, server.port)
        try:
            _run(recorder, server, state, options.interval)
        finally:
            _save(recorder, state)
    log.info("Terminated")
    return 0


def _run(
    recorder: UsageRecorder, server: ExporterServer, state: StateFile | None, interval: float
) -> None:
    """Sample and serve until the server is woken."""
    pause, saved, well = min(FIRST_INTERVAL, interval), time.monotonic(), True
    due = time.monotonic()
    while True:
        recorder.sample()
        if time.monotonic() - saved >= SAVE_INTERVAL:
            saved, well = time.monotonic(), _save(recorder, state, quiet=not well)
        due = max(due + pause, time.monotonic())
        if server.serve(due - time.monotonic()):
            return
        pause = interval


def _resume(recorder: UsageRecorder, state: StateFile) -> None:
    try:
        saved = state.load()
        if saved:
            recorder.load(*saved)
            log.info("Loaded the history from %s", state.path)
    except StateError as error:
        log.warning("Ignoring the history in %s: %s", state.path, error)


def _save(recorder: UsageRecorder, state: StateFile | None, *, quiet: bool = False) -> bool:
    try:
        if state:
            state.save(recorder.dump())
    except OSError as error:
        if not quiet:
            log.warning("Failed to save the history: %s", error)
        return False
    return True


def _tls(options: ExporterOptions) -> Callable[[], ssl.SSLContext] | None:
    """Return a function that returns the context for a new connection; None: plain HTTP."""
    if not options.tls_cert_file:
        return None
    import ssl  # deferred: it costs 5 MiB

    from ...serving.tls_files import TlsError, TlsFiles

    paths = options.tls_cert_file, options.tls_private_key_file, options.client_ca_file
    files = TlsFiles(ssl.CERT_REQUIRED, *(str(path or "") for path in paths))

    def current() -> ssl.SSLContext:
        try:
            if files.reload():
                log.info("Reloaded the certificate %s", files.certificate)
        except TlsError as error:
            log.warning("Failed to reload the certificate, keeping the previous one: %s", error)
        return files.current

    return current


@contextlib.contextmanager
def _termination() -> Iterator[socket.socket]:
    """Return a socket that receives a byte on SIGTERM or SIGINT."""
    near, far = socket.socketpair()
    far.setblocking(False)
    near.setblocking(False)
    wakeup = signal.set_wakeup_fd(far.fileno(), warn_on_full_buffer=False)
    handlers = {
        number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield near
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        near.close()
        far.close()
