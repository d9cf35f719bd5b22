"""A server that does not share the event loop of its process."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from kube_scheduler_operator.operator.telemetry.server import ServerThread
from kube_scheduler_operator.serving.certificate import ServingCertificate
from kube_scheduler_operator.serving.health import HealthServer
from kube_scheduler_operator.serving.http_types import HttpResponse

if TYPE_CHECKING:
    from ...conftest import CertificateFiles


def _ask(port: int, results: list[int]) -> None:
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    url = f"https://127.0.0.1:{port}/healthz"
    with urllib.request.urlopen(url, timeout=30, context=trust) as response:
        results.append(response.status)


async def test_probes_are_answered_while_the_main_loop_is_blocked(
    first_certificate: CertificateFiles,
) -> None:
    threads: list[int] = []
    ports: list[int] = []
    certificate = ServingCertificate(first_certificate.certificate, first_certificate.key)

    def alive() -> dict[str, str | None]:
        threads.append(threading.get_ident())
        return {}

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        threads.append(threading.get_ident())
        server = HealthServer(lambda _: HttpResponse(200, b""), alive=alive)
        _, port = await server.start("127.0.0.1", 0, certificate.context)
        ports.append(port)
        yield
        await server.stop()
        ports.clear()

    thread = ServerThread(serving)
    await thread.start()
    answers: list[int] = []
    client = threading.Thread(target=_ask, args=(ports[0], answers))
    client.start()
    client.join(60)  # blocks this event loop
    assert answers == [200]
    await thread.stop()
    assert ports == [], "it has ended"
    assert len(set(threads)) == 1
    assert threading.get_ident() not in threads


async def test_an_error_of_the_start_is_raised() -> None:
    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        raise OSError("in use")
        yield

    thread = ServerThread(serving)
    with pytest.raises(OSError, match="in use"):
        await thread.start()
    await thread.stop()


async def test_a_start_that_is_cancelled_is_undone() -> None:
    ended = threading.Event()

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        time.sleep(0.2)  # noqa: ASYNC251 - as while a certificate is generated
        try:
            yield
        finally:
            ended.set()

    thread = ServerThread(serving)
    starting = asyncio.create_task(thread.start())
    await asyncio.sleep(0.01)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await thread.stop()
    assert ended.is_set()


async def test_a_thread_that_was_never_started_is_stopped() -> None:
    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        yield

    await ServerThread(serving).stop()
