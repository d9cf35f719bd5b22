"""Compares the extender's HTTP server with uvicorn and granian, which serve the same verbs.

Each server runs in a process of its own: the unchanged extender, and the extender with its HTTP
server replaced by a library and a thin adapter. The rounds are interleaved, and each ratio compares
two servers of the same round, so that changes in the machine's speed affect both.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import calls
from benchmarks.extender_calls import Times, percentile
from benchmarks.intervals import estimate
from benchmarks.played_api import PlayedApi
from benchmarks.table import REPOSITORY, Row
from cluster import paths

PINNED: Final = ("uvicorn==0.54.0", "granian==2.8.7")
OURS: Final = "ours"
SERVERS: Final = (OURS, "uvicorn", "granian-asgi", "granian-rsgi")
LIMIT: Final = 1.15
"""Ratio up to which a library would replace our own server."""

NAMES: Final = 500
PODS: Final = 400
"""Pods per server and round; each is one filter and one prioritize call."""

Measured = dict[str, dict[str, list[float]]]
"""Measurement -> server -> one value per round."""


def measure(agents: Sequence[str], repeat: int) -> Iterator[Row]:
    """Rows for each agent: all measurements of every server, and the ratios to ours."""
    folder = installed()
    with PlayedApi([calls.node(number) for number in range(calls.NODES)]) as api:
        for agent in agents:
            with contextlib.ExitStack() as stack:
                processes = {
                    server: stack.enter_context(_extender(api, folder, server, agent))
                    for server in SERVERS
                }
                yield from _rows(agent, _rounds(processes, api, repeat))


def _rounds(processes: Mapping[str, calls.Process], api: PlayedApi, repeat: int) -> Measured:
    found: Measured = {}
    for number in range(-1, repeat):  # round -1 is the warm-up
        start = number % len(SERVERS)
        for server in (*SERVERS[start:], *SERVERS[:start]):
            times: Times = {"filter": [], "prioritize": []}
            cpu = calls.play(processes[server], api, NAMES, PODS, times)
            if number < 0:
                continue
            figures = {"CPU of a pod": cpu}
            for verb, took in times.items():
                figures[f"{verb}, p50"] = 1000 * percentile(took, 0.5)
                figures[f"{verb}, p99"] = 1000 * percentile(took, 0.99)
            for figure, value in figures.items():
                found.setdefault(figure, {}).setdefault(server, []).append(value)
    return found


def _rows(agent: str, measured: Measured) -> Iterator[Row]:
    for figure, servers in measured.items():
        for server, values in servers.items():
            yield Row(f"{agent}: {figure}, {server}", values, "us", None)
            if server == OURS:
                continue
            ratios = [value / ours for value, ours in zip(values, servers[OURS], strict=True)]
            interval = estimate(ratios)
            relation = "within" if interval.low <= LIMIT else "beyond"
            between = f"{interval.low:.2f}..{interval.high:.2f}"
            notes = (f"95 % interval {between}: {relation} the limit of {LIMIT}",)
            yield Row(f"{agent}: {figure}, {server} {between}", ratios, "x ours", None, notes)


def installed() -> Path:
    """The folder with the libraries, installed on first use."""
    folder = paths.cache_dir() / "http-servers" / "-".join(PINNED)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = folder.with_suffix(f".{os.getpid()}")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(part)]
        subprocess.run([*command, *PINNED], check=True)
        part.rename(folder)
    return folder


@contextlib.contextmanager
def _extender(api: PlayedApi, folder: Path, server: str, agent: str) -> Iterator[calls.Process]:
    with tempfile.TemporaryDirectory() as directory, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        file = calls.write_config(Path(directory), port, calls.AGENTS[agent])
        kubeconfig = api.kubeconfig(Path(directory))
        command = [sys.executable, "-m", "benchmarks.http_servers", server, file, str(kubeconfig)]
        path = f"{REPOSITORY / 'operator'}:{REPOSITORY / 'hack'}:{folder}"
        environ = {**os.environ, "PYTHONPATH": path, "LOG_LEVEL": "WARNING"}
        process = subprocess.Popen(command, env=environ)
        try:
            calls.until_ready(process, port)
            yield calls.Process(process, port)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


# --- the measured process -----------------------------------------------------------------------

App = Callable[[Any], Any]


class LibraryServer:
    """A library with the interface of the extender's HTTP server."""

    connections: Mapping[object, None] = {}
    refused: Mapping[int, int] = {}
    port = 0

    def __init__(self, app: App, _limits: object = None) -> None:
        self.app = app
        self.task: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int, _tls: object = None) -> None:
        """Listen."""
        self.port = port
        self.task = asyncio.create_task(self.serve(host, port))

    async def serve(self, host: str, port: int) -> None:
        """Serve until cancelled."""
        raise NotImplementedError

    async def stop(self, _grace: float) -> None:
        """Stop listening."""
        if self.task is not None:
            self.task.cancel()


class Uvicorn(LibraryServer):
    """uvicorn with httptools, in the extender's uvloop."""

    async def serve(self, host: str, port: int) -> None:
        """See LibraryServer."""
        uvicorn: Any = importlib.import_module("uvicorn")
        config = uvicorn.Config(
            asgi(self.app), host, port, http="httptools", ws="none", lifespan="off",
            access_log=False, log_config=None, server_header=False, date_header=False,
        )  # fmt: skip
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext
        await server.serve()


class GranianAsgi(LibraryServer):
    """granian with ASGI, embedded in the extender's uvloop."""

    interface = "asgi"

    def adapted(self) -> Any:
        """The handler as an application of the interface."""
        return asgi(self.app)

    async def serve(self, host: str, port: int) -> None:
        """See LibraryServer."""
        embed: Any = importlib.import_module("granian.server.embed")
        server = embed.Server(
            self.adapted(), host, port, interface=self.interface, http="1", log_enabled=False
        )
        await server.serve()


class GranianRsgi(GranianAsgi):
    """granian with RSGI, its native interface."""

    interface = "rsgi"

    def adapted(self) -> Any:
        """The handler as an application of the interface."""
        return rsgi(self.app)


def asgi(app: App) -> Callable[..., Awaitable[None]]:
    """The extender's handler as an ASGI application, with the limit on bodies."""
    messages: Any = importlib.import_module("kube_scheduler_operator.programs.extender.http_types")
    most = messages.Limits().body

    async def application(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
            if len(body) > most:
                raise ValueError("too large")
        answer = app(
            messages.HttpRequest(
                scope["method"].encode(), scope["path"].encode(), scope["query_string"], body
            )
        )
        if inspect.isawaitable(answer):
            answer = await answer
        status, kind = 200, messages.JSON
        if not isinstance(answer, bytes):
            status, kind, answer = answer.status, answer.content_type, answer.body
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return application


def rsgi(app: App) -> Callable[..., Awaitable[None]]:
    """The extender's handler as an RSGI application."""
    messages: Any = importlib.import_module("kube_scheduler_operator.programs.extender.http_types")

    async def application(scope: Any, protocol: Any) -> None:
        body = await protocol()
        query = scope.query_string.encode()
        answer = app(messages.HttpRequest(scope.method.encode(), scope.path.encode(), query, body))
        if inspect.isawaitable(answer):
            answer = await answer
        status, kind = 200, messages.JSON
        if not isinstance(answer, bytes):
            status, kind, answer = answer.status, answer.content_type, answer.body
        headers = [("content-type", kind.decode()), ("content-length", str(len(answer)))]
        protocol.response_bytes(status, headers, answer)

    return application


LIBRARIES: Final = {"uvicorn": Uvicorn, "granian-asgi": GranianAsgi, "granian-rsgi": GranianRsgi}


def main() -> int:
    """Run the extender with one of the servers: SERVER CONFIG KUBECONFIG."""
    server, file, kubeconfig = sys.argv[1:]
    reader: Any = importlib.import_module("kube_scheduler_operator.programs.extender.config_reader")
    program: Any = importlib.import_module("kube_scheduler_operator.programs.extender.program")
    if server != OURS:
        program.HttpServer = LIBRARIES[server]
    read = reader.read(Path(file).read_text())
    return int(program.run(program.ExtenderOptions(read, kubeconfig=kubeconfig)))


if __name__ == "__main__":
    sys.exit(main())
