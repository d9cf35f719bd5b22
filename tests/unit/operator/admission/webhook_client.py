"""The webhook's process with a played API server, and clients of it from several addresses."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from kube_scheduler_operator.operator.admission.supervisor import WebhookProcess
from kube_scheduler_operator.operator.engine.webhook_certificates import issue
from kube_scheduler_operator.operator.secondary.admission_review import essentials

HOST = "webhook.test.svc"
API_SERVER, STRANGER = "127.0.0.1", "127.0.0.2"
SCHEDULER: Mapping[str, Any] = {
    "metadata": {"name": "packed", "uid": "u"},
    "status": {
        "assignment": {
            "schedulerName": "packed",
            "pods": {"namespaceSelector": {"matchLabels": {"team": "batch"}}},
        }
    },
}


def review(namespace: str = "jobs", pod: Mapping[str, Any] | None = None, **spec: Any) -> bytes:
    """An AdmissionReview of a new Pod."""
    made = {
        "metadata": {"name": "a"}, "spec": {"schedulerName": "default-scheduler", **spec},
        **(pod or {}),
    }  # fmt: skip
    request = {
        "uid": "of-the-request",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": namespace,
        "object": made,
    }
    text = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(text).encode()


def post(body: bytes, *headers: str) -> bytes:
    """A request with this body."""
    lines = ("POST /assign?timeout=1s HTTP/1.1", "Host: x", f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, *headers, "", "")).encode() + body


def assigned_to(status: int, body: bytes) -> str:
    """The scheduler that an answer gives a Pod; empty: unchanged."""
    assert status == 200, body
    response = json.loads(body)["response"]
    assert (response["uid"], response["allowed"]) == ("of-the-request", True)
    if "patch" not in response:
        return ""
    (operation,) = json.loads(base64.b64decode(response["patch"]))
    assert (operation["op"], operation["path"]) == ("replace", "/spec/schedulerName")
    return str(operation["value"])


@dataclass
class Client:
    """A connection with a TLS session; it is kept alive as an API server's."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request; the status and the body of its answer."""
        self.writer.write(request)
        return await self.answer()

    async def answer(self) -> tuple[int, bytes]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        return int(head.split()[1]), await self.reader.readexactly(length)

    async def ended(self) -> bool:
        """Wait for the end of the connection."""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while await self.reader.read(1 << 16):
                pass
        return True

    def close(self) -> None:
        self.writer.transport.abort()


@dataclass
class Webhook:
    """The process, as the operator has it."""

    process: WebhookProcess  # the operator's side
    issued: dict[str, str]  # its certificate
    results: Counter[str]  # what it reported, counted
    namespaces: dict[str, Mapping[str, str]]  # labels by name
    reads: list[str]  # namespaces that were read
    clients: list[Client] = field(default_factory=list)

    async def serves(self) -> None:
        """Wait until it listens."""
        async with asyncio.timeout(90):
            while not self.process.port:  # noqa: ASYNC110 - another process decides
                await asyncio.sleep(0.01)

    async def counted(self, **results: int) -> None:
        """Wait until that many results were reported."""
        async with asyncio.timeout(90):
            while any(self.results[name] < number for name, number in results.items()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def becomes(self, scheduler: str) -> None:
        """Wait until new Pods get this scheduler."""
        async with asyncio.timeout(90):
            while await self.scheduler_of() != scheduler:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def connect(self, address: str = API_SERVER) -> Client:
        """A connection from an address of this machine."""
        context = ssl.create_default_context(cadata=self.issued["ca.crt"])
        made = Client(
            *await asyncio.open_connection(
                "127.0.0.1", self.process.port, local_addr=(address, 0), ssl=context,
                server_hostname=HOST,
            )
        )  # fmt: skip
        self.clients.append(made)
        return made

    async def scheduler_of(self, **review_of: Any) -> str:
        """The scheduler that a new Pod gets by a connection of its own."""
        client = await self.connect()
        try:
            return assigned_to(*await client.ask(post(review(**review_of))))
        finally:
            client.close()


@contextlib.asynccontextmanager
async def webhook(
    folder: Path, schedulers: Sequence[Mapping[str, Any]] = (SCHEDULER,), port: int = 0
) -> AsyncIterator[Webhook]:
    """The process with a certificate; `jobs` is a namespace of team batch."""
    namespaces: dict[str, Mapping[str, str]] = {"jobs": {"team": "batch"}}
    reads: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        reads.append(name)
        if name not in namespaces:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        return web.json_response({"metadata": {"name": name, "labels": namespaces[name]}})

    app = web.Application()
    app.router.add_get("/api/v1/namespaces/{name}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    kubeconfig = folder / "kubeconfig"
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": "anything"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    results: Counter[str] = Counter()

    def count(result: str, number: int) -> None:
        results[result] += number

    process = WebhookProcess(("127.0.0.1", port), str(kubeconfig), ["kube-system"], count)
    issued = await asyncio.to_thread(issue, HOST, 30)
    process.use(essentials(schedulers))
    process.serve(issued["tls.crt"], issued["tls.key"])
    made = Webhook(process, issued, results, namespaces, reads)
    try:
        yield made
    finally:
        for client in made.clients:
            client.close()
        await process.stop()
        await runner.cleanup()
