"""The HTTPS server: authorization, probes and limits."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from kube_scheduler_operator.base import tasks
from kube_scheduler_operator.base.backoff import Backoff
from kube_scheduler_operator.operator.telemetry import server as server_module
from kube_scheduler_operator.operator.telemetry.authorize import (
    AuthorizationResult,
    TooManyReviewsError,
    User,
)
from kube_scheduler_operator.operator.telemetry.metrics import OperatorMetrics
from kube_scheduler_operator.operator.telemetry.server import TelemetryServer
from kube_scheduler_operator.serving.certificate import ServingCertificate
from kube_scheduler_operator.serving.tls_settings import TLSSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ...conftest import CertificateFiles

DECISIONS = {
    "good": AuthorizationResult(authenticated=True, allowed=True),
    "poor": AuthorizationResult(
        authenticated=True, allowed=False, reason='user "poor" may not read /metrics'
    ),
    "forged": AuthorizationResult(
        authenticated=False, allowed=False, reason="the bearer token is not valid"
    ),
}


async def decide(token: str, path: str, address: str) -> AuthorizationResult:
    assert (path, address) == ("/metrics", "127.0.0.1")
    if token == "outage":
        raise ConnectionError("no route to host")
    return DECISIONS[token]


@contextlib.asynccontextmanager
async def running(**changes: Any) -> AsyncIterator[TelemetryServer]:
    arguments: dict[str, Any] = {
        "render": OperatorMetrics("0.1.0").render,
        "authorize": decide,
        "alive": lambda: {"ping": None},
        "ready": lambda: {"ping": None},
        "certificate": None,
        "address": ("127.0.0.1", 0),
    }
    server = TelemetryServer(**(arguments | changes))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def get(
    server: TelemetryServer, path: str, headers: dict[str, str] | None = None
) -> tuple[int, str, dict[str, str]]:
    url = f"http://127.0.0.1:{server.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, await response.text(), dict(response.headers)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_allowed_client_gets_metrics() -> None:
    async with running() as server:
        status, body, headers = await get(server, "/metrics", bearer("good"))
    assert status == 200
    assert 'kube_scheduler_operator_build_info{python_version="' in body
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")


async def test_openmetrics_if_the_client_prefers_it() -> None:
    accept = {"Accept": "application/openmetrics-text;version=1.0.0"}
    async with running() as server:
        _, body, headers = await get(server, "/metrics", bearer("good") | accept)
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith("# EOF\n")


async def test_metrics_are_compressed_if_the_client_accepts_it() -> None:
    async with running() as server:
        _, _, headers = await get(server, "/metrics", bearer("good") | {"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        pytest.param({}, 401, "a bearer token is required", id="no-token"),
        pytest.param({"Authorization": "Basic Zm9v"}, 401, "a bearer token is", id="basic"),
        pytest.param({"Authorization": "Bearer "}, 401, "a bearer token is", id="empty-token"),
        pytest.param(bearer("forged"), 401, "token is not valid", id="unknown-token"),
        pytest.param(bearer("poor"), 403, 'user "poor" may not read /metrics', id="not-allowed"),
        pytest.param(bearer("outage"), 503, "cannot verify the token", id="api-server-away"),
    ],
)
async def test_other_clients_are_refused_with_a_reason(
    headers: dict[str, str], status: int, message: str
) -> None:
    async with running() as server:
        actual, body, answer = await get(server, "/metrics", headers)
    assert (actual, message in body) == (status, True)
    assert "build_info" not in body
    assert ("WWW-Authenticate" in answer) == (status == 401)


async def test_a_client_with_too_many_unknown_tokens_must_wait() -> None:
    async def authorize(token: str, path: str, address: str) -> AuthorizationResult:
        raise TooManyReviewsError

    async with running(authorize=authorize) as server:
        status, body, headers = await get(server, "/metrics", bearer("t"))
    assert (status, headers["Retry-After"]) == (429, "1")
    assert "retry" in body


async def test_scheme_of_the_token_may_have_any_case() -> None:
    async with running() as server:
        status, _, _ = await get(server, "/metrics", {"Authorization": "bearer good"})
    assert status == 200


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_probes_need_no_token(path: str) -> None:
    async with running() as server:
        status, body, _ = await get(server, path)
    assert (status, body) == (200, "[+]ping ok\nok\n")


async def test_readyz_lists_failed_checks_and_healthz_is_independent() -> None:
    def ready() -> dict[str, str | None]:
        return {"watches": "pods has not been listed yet", "api": None}

    async with running(ready=ready) as server:
        status, body, _ = await get(server, "/readyz")
        healthy, _, _ = await get(server, "/healthz")
    assert status == 503
    assert body == ("[+]api ok\n[-]watches failed: pods has not been listed yet\ncheck failed\n")
    assert healthy == 200


async def test_concurrent_scrapes_are_limited_and_probes_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "MAX_IN_FLIGHT", 1)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(_token: str, _path: str, _address: str) -> AuthorizationResult:
        asked.set()
        await answer.wait()
        return DECISIONS["good"]

    async with running(authorize=slow) as server:
        first = asyncio.create_task(get(server, "/metrics", bearer("good")))
        await asked.wait()
        status, _, headers = await get(server, "/metrics", bearer("good"))
        assert (status, headers["Retry-After"]) == (429, "1")
        assert (await get(server, "/healthz"))[0] == 200
        answer.set()
        assert (await first)[0] == 200
        assert (await get(server, "/metrics", bearer("good")))[0] == 200


async def test_hanging_request_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", 0.01)

    async def hang(_token: str, _path: str, _address: str) -> AuthorizationResult:
        await asyncio.Event().wait()
        raise AssertionError

    async with running(authorize=hang) as server:
        assert (await get(server, "/metrics", bearer("good")))[0] == 504


async def test_unknown_path_is_404_and_other_methods_are_405() -> None:
    async with running() as server:
        assert (await get(server, "/debug/pprof"))[0] == 404
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"http://127.0.0.1:{server.port}/healthz") as response,
        ):
            assert response.status == 405


async def test_certificate_is_reloaded_while_serving(
    monkeypatch: pytest.MonkeyPatch,
    served: CertificateFiles,
    second_certificate: CertificateFiles,
) -> None:
    monkeypatch.setattr(server_module, "REFRESH_SECONDS", 0.01)
    certificate = ServingCertificate(served.certificate, served.key)

    async def refresh() -> bool:
        certificate.reload()
        return False

    async def served_certificate(port: int) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            await writer.wait_closed()
        assert isinstance(der, bytes)
        return der

    async with running(certificate=certificate, refresh=refresh) as server:
        first = ssl.PEM_cert_to_DER_cert(served.certificate.read_text())
        assert await served_certificate(server.port) == first
        served.key.write_bytes(second_certificate.key.read_bytes())
        served.certificate.write_bytes(second_certificate.certificate.read_bytes())
        second = ssl.PEM_cert_to_DER_cert(second_certificate.certificate.read_text())
        seen = {first}
        while second not in seen:
            seen.add(await served_certificate(server.port))
        assert seen == {first, second}


async def test_an_error_does_not_end_the_renewal_of_certificates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "REFRESH_SECONDS", 0.01)
    monkeypatch.setattr(tasks, "RESTARTS", Backoff((0.01,)))
    errors, refreshed = [OSError(28, "No space left on device")] * 3, asyncio.Event()

    async def refresh() -> bool:
        if started and errors:
            raise errors.pop()
        if started:
            refreshed.set()
        return False

    started = False
    async with running(refresh=refresh):
        started = True
        await asyncio.wait_for(refreshed.wait(), 5)
    assert not errors


async def test_port_is_free_after_stop() -> None:
    async with running() as first:
        port = first.port
    async with running(address=("127.0.0.1", port)) as second:
        assert second.port == port


async def test_outdated_settings_end_open_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "REFRESH_SECONDS", 0.01)
    outdated = False

    async def refresh() -> bool:
        nonlocal outdated
        changed, outdated = outdated, False
        return changed

    async with running(refresh=refresh) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in range(2):  # the connection is kept open
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"ok\nok\n")
        outdated = True
        assert await asyncio.wait_for(reader.read(), 5) == b"", "the server closes it"
        writer.close()


@pytest.mark.parametrize(
    ("client_ca", "status"), [("second", 200), ("", 401)], ids=["requested", "not-requested"]
)
async def test_a_client_certificate_identifies_a_client_without_a_token(
    served: CertificateFiles,
    second_certificate: CertificateFiles,
    client_ca: str,
    status: int,
) -> None:
    certificate = ServingCertificate(served.certificate, served.key)
    certificate.use(TLSSettings(), second_certificate.certificate.read_text() if client_ca else "")
    seen: list[object] = []

    async def allow(client: object, _path: str, _address: str) -> AuthorizationResult:
        seen.append(client)
        return DECISIONS["good"]

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(second_certificate.certificate, second_certificate.key)
    async with (
        running(certificate=certificate, authorize=allow) as server,
        aiohttp.ClientSession() as session,
        session.get(f"https://127.0.0.1:{server.port}/metrics", ssl=context) as response,
    ):
        assert response.status == status
    assert seen == ([User("second", ("system:authenticated",))] if client_ca else [])
