"""Health checks, and a server of /healthz, /livez, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Final, TypeAlias

from ..base.foreign_text import one_line
from .connections import Sharing
from .http_connection import Connection
from .http_server import HttpServer
from .http_types import Answer, App, HttpRequest, HttpResponse, Limits

Checks: TypeAlias = Callable[[], Mapping[str, str | None]]
"""Returns the checks by name: None if passed, otherwise the reason."""

MAX_CONNECTIONS: Final = 64
"""Open connections; a kubelet and each Prometheus have one."""

MAX_BODY: Final = 16 * 1024
"""Bytes of a body, which is read only to be ignored."""

SHARING: Final = Sharing(
    rate=10.0,  # a kubelet's probe is a new connection
    burst=100,
    patience=1.0,  # a kubelet waits for 5 s
    handshake_seconds=5.0,
    handshakes=4,
    connections=16,
)


def check_result(checks: Checks) -> tuple[int, str]:
    """Return (status, text) of the checks, in the format of Kubernetes' health endpoints."""
    results = checks()
    lines = [
        f"[+]{name} ok" if problem is None else f"[-]{name} failed: {one_line(problem)}"
        for name, problem in sorted(results.items())
    ]
    failed = any(problem is not None for problem in results.values())
    lines.append("check failed" if failed else "ok")
    return 503 if failed else 200, "\n".join(lines) + "\n"


class HealthConnection(Connection):
    """Keeps the headers of a request; used as intended if metrics were read on it."""

    BUG: ClassVar = HttpResponse(500, b"500 Internal Server Error")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._headers[name.lower()] = value

    def proves(self, request: HttpRequest, answer: HttpResponse) -> bool:
        return request.path == b"/metrics" and answer.status == 200


class HealthServer(HttpServer):
    """Serves health checks and metrics from `start` to `stop`.

    `alive` has the checks of /healthz and /livez, `ready` those of /readyz. Idle connections are
    closed after `keep_alive` seconds, or after 10 s until /metrics has been read on them. Clients
    share MAX_CONNECTIONS by their addresses; see `Sharing`.
    """

    def __init__(
        self,
        metrics: App,
        *,
        alive: Checks = dict,
        ready: Checks = dict,
        keep_alive: float = 30.0,
    ) -> None:
        limits = Limits(
            body=MAX_BODY,
            bodies=MAX_CONNECTIONS * MAX_BODY,
            idle_seconds=keep_alive,
            connections=MAX_CONNECTIONS,
        )
        super().__init__(self._respond, limits, HealthConnection, SHARING)
        self._metrics = metrics
        self._checks = {b"/healthz": alive, b"/livez": alive, b"/readyz": ready}

    def _respond(self, request: HttpRequest) -> Answer | Awaitable[Answer]:
        checks = self._checks.get(request.path)
        if checks is None and request.path != b"/metrics":
            return HttpResponse(404, b"404: Not Found")
        if request.method not in (b"GET", b"HEAD"):
            allow = b"Allow: GET,HEAD\r\n"
            return HttpResponse(405, b"405: Method Not Allowed", headers=allow)
        return self._metrics(request) if checks is None else health_response(checks)


def health_response(checks: Checks) -> HttpResponse:
    status, report = check_result(checks)
    return HttpResponse(status, report.encode())
