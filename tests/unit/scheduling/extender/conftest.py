"""A stub policy, a cluster, and clients of a running server."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.extender.agent import Member, PolicyAgent
from kube_scheduler_operator.scheduling.extender.config import AgentSpec, PodSelector
from kube_scheduler_operator.scheduling.extender.config import MemberSpec as MemberSpec
from kube_scheduler_operator.scheduling.extender.decisions import Decisions
from kube_scheduler_operator.scheduling.extender.verbs import VerbContext
from kube_scheduler_operator.scheduling.extender.wire import Fragments
from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.scheduling.policies.policy import Arguments, Policy, Rejections
from kube_scheduler_operator.serving.http_server import HttpServer
from kube_scheduler_operator.serving.http_types import App, Limits

from .... import builders

POD = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "labels": {"app": "web"}},
    "spec": {"schedulerName": "mine", "containers": [{"name": "c"}]},
}


class StubPolicy(Policy):
    """Returns the results that a test sets."""

    name = "stub"
    filters = True
    scores = True

    def __init__(
        self,
        cluster: Cluster,
        scores: Any = None,
        reasons: Mapping[int, str] | None = None,
        unresolvable: Sequence[int] = (),
        error: Exception | None = None,
        figures: Mapping[int, str] | None = None,
    ) -> None:
        super().__init__(Arguments(), cluster)
        self.figures = dict(figures or {})
        self.result = scores
        self.reasons = dict(reasons or {})
        self.unresolvable = set(unresolvable)
        self.error = error
        self.asked: list[list[str]] = []

    def filter(self, pod: Any, indices: Any) -> Rejections | None:
        self._ask(indices)
        if not self.reasons:
            return None
        return Rejections(dict(self.reasons), set(self.unresolvable), dict(self.figures))

    def score(self, pod: Any, indices: Any) -> Any:
        self._ask(indices)
        return self.result(len(indices)) if callable(self.result) else self.result

    def _ask(self, indices: Any) -> None:
        if self.error is not None:
            raise self.error
        self.asked.append([self.cluster.names[index] for index in indices])


def node(name: str, **annotations: str) -> dict[str, Any]:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return builders.node(name, annotations=annotations, resources=resources)


@pytest.fixture
def cluster() -> Cluster:
    """Nodes a, b and c."""
    found = Cluster(lambda: 1_000_000.0)
    for name in "abc":
        found.set_node(node(name))
    return found


def agent_of(
    *policies: Policy | tuple[Policy, int],
    name: str = "agent",
    selector: PodSelector | None = None,
    failure_policy: str = "Ignore",
    clock: Callable[[], float] = lambda: 0.0,
) -> PolicyAgent:
    members = [
        Member(f"p{position}", *(given if isinstance(given, tuple) else (given,)))
        for position, given in enumerate(policies)
    ]
    spec = AgentSpec(name, tuple(MemberSpec(m.name) for m in members), failure_policy)
    return PolicyAgent(spec, members, selector or PodSelector(), clock)


@pytest.fixture
def context(cluster: Cluster) -> VerbContext:
    return VerbContext(cluster, Fragments(cluster), Decisions(10, cluster.now))


def names_body(*names: str, pod: Any = POD) -> bytes:
    """A body from kube-scheduler with nodeCacheCapable: true."""
    text = json.dumps(
        {"Pod": pod, "Nodes": None, "NodeNames": list(names)},
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return text.encode()


def nodes_body(*nodes: Any, pod: Any = POD) -> bytes:
    """A body from kube-scheduler with nodeCacheCapable: false."""
    listed = {"metadata": {}, "items": list(nodes)}
    return json.dumps({"Pod": pod, "Nodes": listed, "NodeNames": None}).encode()


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    sent: list[bytes] = field(default_factory=list)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, *, head: bool = False) -> Answer:
        async with asyncio.timeout(20):
            while True:
                raw = await self.reader.readuntil(b"\r\n\r\n")
                first, *lines = raw.decode().split("\r\n")[:-2]
                status = int(first.split(" ")[1])
                if status != 100:
                    break
                self.sent.append(raw)
            headers = {key.lower(): value for key, _, value in (s.partition(": ") for s in lines)}
            size = 0 if head else int(headers["content-length"])
            return Answer(status, headers, await self.reader.readexactly(size))

    async def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        await self.send(request(method, path, body, **headers))
        return await self.answer(head=method == "HEAD")

    async def ended(self) -> bool:
        """Whether the server closes the connection, after any remaining data."""
        async with asyncio.timeout(20):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(65536):
                    pass
            return True

    def close(self) -> None:
        self.writer.close()


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """A request in the form of Go's client."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1:5401", "User-Agent: Go-http-client/1.1"]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{key.replace('_', '-')}: {value}" for key, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass
class Running:
    server: HttpServer

    @contextlib.asynccontextmanager
    async def client(self, **given: Any) -> AsyncIterator[Client]:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.server.port, **given))
        try:
            yield client
        finally:
            client.close()
            with contextlib.suppress(Exception):
                await client.writer.wait_closed()


@contextlib.asynccontextmanager
async def running(app: App, limits: Limits | None = None, **given: Any) -> AsyncIterator[Running]:
    server = HttpServer(app, limits)
    await server.start("127.0.0.1", 0, **given)
    try:
        yield Running(server)
    finally:
        await server.stop(0.2)
