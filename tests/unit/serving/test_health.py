"""The health server, and the format of checks."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import aiohttp

from kube_scheduler_operator.serving.health import MAX_CONNECTIONS, HealthServer, check_result
from kube_scheduler_operator.serving.http_types import HttpRequest, HttpResponse


def metrics(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(200, b"up 1\n")


def test_checks_are_formatted_as_in_kubernetes() -> None:
    assert check_result(dict) == (200, "ok\n")
    assert check_result(lambda: {"watch": "not synced", "ping": None}) == (
        503,
        "[+]ping ok\n[-]watch failed: not synced\ncheck failed\n",
    )


async def test_health_and_metrics_are_served() -> None:
    server = HealthServer(metrics, ready=lambda: {"leader": "not elected"})
    host, port = await server.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(f"http://{host}:{port}") as client:
            found = {}
            for path in ("/healthz", "/livez", "/readyz", "/metrics", "/other"):
                async with client.get(path) as response:
                    found[path] = response.status, await response.text()
    finally:
        await server.stop()
    assert found == {
        "/healthz": (200, "ok\n"),
        "/livez": (200, "ok\n"),
        "/readyz": (503, "[-]leader failed: not elected\ncheck failed\n"),
        "/metrics": (200, "up 1\n"),
        "/other": (404, "404: Not Found"),
    }


async def test_many_connections_do_not_lock_out_a_probe() -> None:
    server = HealthServer(metrics)
    address = await server.start("127.0.0.1", 0)
    strangers = [await asyncio.open_connection(*address) for _ in range(MAX_CONNECTIONS + 20)]
    try:
        url = f"http://{address[0]}:{address[1]}/healthz"
        async with aiohttp.ClientSession() as client, client.get(url) as response:
            assert response.status == 200
        ended = [reader for reader, _ in strangers if reader.at_eof() or reader.exception()]
        assert len(ended) >= 20
    finally:
        for _, writer in strangers:
            writer.close()
        await server.stop()


def test_checks_do_not_load_a_server() -> None:
    program = (
        "import sys, kube_scheduler_operator.serving.health;"
        "print([m for m in ('aiohttp', 'prometheus_client') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )
    assert done.stdout == "[]\n"
