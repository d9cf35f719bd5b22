"""Health checks, and a server of /healthz, /livez, /readyz and /metrics."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Final, TypeAlias

from ..base.foreign_text import one_line
from .address_rate import AddressRate
from .connections import Sharing
from .http_connection import Connection
from .http_server import HttpServer
from .http_types import Answer, App, HttpRequest, HttpResponse, Limits

Checks: TypeAlias = Callable[[], Mapping[str, str | None]]
"""Returns the checks by name: None if passed, otherwise the reason."""

MAX_CONNECTIONS: Final = 64
"""Open connections; a kubelet and each Prometheus have one."""

CONNECTIONS_OF_ONE: Final = 16
"""Open connections of one address."""

HANDSHAKES: Final = 10.0
"""New connections a second of one address, in the long run; a kubelet's probe is a new one."""

HANDSHAKES_AT_ONCE: Final = 100
HANDSHAKES_TOGETHER: Final = 4
"""Handshakes of one address at a time."""

MAX_BODY: Final = 16 * 1024
"""Bytes of a body, which is read only to be ignored."""

HANDSHAKE_SECONDS: Final = 5.0
PATIENCE: Final = 1.0
"""How long a connection waits for its handshake; a kubelet waits for 5 s."""


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
        sharing = Sharing(
            AddressRate(HANDSHAKES, HANDSHAKES_AT_ONCE, PATIENCE, time.monotonic),
            HANDSHAKE_SECONDS,
            HANDSHAKES_TOGETHER,
            CONNECTIONS_OF_ONE,
        )
        super().__init__(self._respond, limits, HealthConnection, sharing)
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
