"""How long one call takes, as a caller sees it, with nothing else going on.

kube-scheduler does not say how long its extenders take, and sends a sample of the nodes; this sends
all of them.
"""

from __future__ import annotations

import math
import socket
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.extenders import AGENT
from cluster import scheduling
from cluster.api import Api, Object
from cluster.console import SandboxError
from cluster.recording import wire

PODS_A_SECOND = 50.0
_RECEIVE = 1 << 16


@dataclass
class Calls:
    """Milliseconds that the calls of each verb took."""

    took: dict[str, list[float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, dict[str, float]]:
        """What they come to."""
        shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        return {
            verb: {name: self.percentile(verb, share) for name, share in shares.items()}
            for verb in self.took
        }

    def percentile(self, verb: str, share: float) -> float:
        """Of the calls of one verb: the nearest rank; NaN without any."""
        ordered = sorted(self.took.get(verb, []))
        return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else math.nan


def call(
    api: Api, namespace: str, prefix: str, verbs: Sequence[str], names: Sequence[str], pods: int
) -> Calls:
    """Call an extender for so many pods, one after the other, as kube-scheduler does.

    Args:
        api: completes the pod.
        namespace: of the pods.
        prefix: the extender's urlPrefix, http.
        verbs: that are called for each pod, in this order.
        names: the nodes; sent from another one on for every pod.
        pods: how many.

    Raises:
        SandboxError: An answer is not 200, or the extender hangs up.
    """
    path = f"{scheduling.pods_of(namespace)}?dryRun=All"
    pod = api.request("POST", path, scheduling.pod("called", 1))
    host, _, rest = prefix.removeprefix("http://").partition("/")
    address, _, port = host.rpartition(":")
    calls = Calls({verb: [] for verb in verbs})
    with socket.create_connection((address, int(port)), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(pods):
            begun = time.monotonic()
            body = _body(pod, number, names)
            for verb in verbs:
                target = f"/{rest}/{verb}" if rest else f"/{verb}"
                request = post(host, target, body)
                sent = time.monotonic()
                exchange(connection, request)
                calls.took[verb].append(1000 * (time.monotonic() - sent))
            time.sleep(max(begun + 1 / PODS_A_SECOND - time.monotonic(), 0))
    return calls


def _body(pod: Object, number: int, names: Sequence[str]) -> bytes:
    pod["metadata"] |= {"name": f"{AGENT}-{number}", "uid": str(uuid.UUID(int=number + 1))}
    start = (number * 7) % len(names)
    nodes = [*names[start:], *names[:start]]
    return wire({"Pod": pod, "Nodes": None, "NodeNames": nodes})


def post(host: str, target: str, body: bytes) -> bytes:
    """A request as kube-scheduler writes it."""
    head = (
        f"POST {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Go-http-client/1.1\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + body


def exchange(connection: socket.socket, request: bytes) -> None:
    """Send it, and read the answer.

    Raises:
        SandboxError: The answer is not 200, or the extender hangs up.
    """
    connection.sendall(request)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += _received(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    if " 200 " not in f"{lines[0]} ":
        raise SandboxError(f"a call was answered with {lines[0]}: {body[:500]!r}")
    lengths = [line.split(":")[1] for line in lines if line.startswith("content-length:")]
    if not lengths:
        raise SandboxError("an answer has no Content-Length")
    left = int(lengths[0]) - len(body)
    while left > 0:
        left -= len(_received(connection))


def _received(connection: socket.socket) -> bytes:
    found = connection.recv(_RECEIVE)
    if not found:
        raise SandboxError("the extender hung up")
    return found
