"""The duration of single calls from the client's side, without other load.

kube-scheduler has no metric for the duration of extender calls, and sends a sample of the nodes;
this client sends all of them. The host of a virtual machine may take processors away during a call,
so calls are made in short spells for which the stolen time is known.
"""

from __future__ import annotations

import math
import socket
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.extenders import AGENT
from benchmarks.processors import stolen
from cluster import scheduling
from cluster.api import Api, Object
from cluster.console import SandboxError
from cluster.recording import wire

PODS_A_SECOND = 50.0
SPELL_PODS = 50
STOLEN = 0.01
"""Largest share of stolen time in an undisturbed spell: two of the 200 ticks per second of two
processors."""
PATIENCE = 8
"""Largest multiple of Pods until enough of them had an undisturbed spell."""
_RECEIVE = 1 << 16

Times = dict[str, list[float]]
"""Verb to the duration of each call in milliseconds."""


@dataclass
class Calls:
    """The durations of the calls of each verb in milliseconds."""

    took: Times = field(default_factory=dict)  # all calls
    undisturbed: Times = field(default_factory=dict)  # calls in spells without stolen time

    def add(self, spell: Times, *, disturbed: bool = False) -> None:
        """Add a spell."""
        for calls in (self.took,) if disturbed else (self.took, self.undisturbed):
            for verb, times in spell.items():
                calls.setdefault(verb, []).extend(times)

    @property
    def pods(self) -> int:
        """The number of Pods in undisturbed spells."""
        return min(map(len, self.undisturbed.values()), default=0)

    def as_json(self) -> dict[str, dict[str, float]]:
        """The statistics."""
        shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        return {
            verb: {
                "calls": len(times),
                **{name: percentile(times, share) for name, share in shares.items()},
                "calls undisturbed": len(self.undisturbed.get(verb, [])),
                **{
                    f"{name} undisturbed": percentile(self.undisturbed.get(verb, []), share)
                    for name, share in shares.items()
                },
            }
            for verb, times in self.took.items()
        }


def percentile(times: Sequence[float], share: float) -> float:
    """The percentile by nearest rank; NaN without values."""
    ordered = sorted(times)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else math.nan


def call(
    api: Api, namespace: str, prefix: str, verbs: Sequence[str], names: Sequence[str], pods: int
) -> Calls:
    """Call an extender for one Pod after the other, as kube-scheduler does.

    Args:
        api: completes the Pod.
        namespace: namespace of the Pods.
        prefix: the extender's urlPrefix, http.
        verbs: verbs to call for each Pod, in this order.
        names: the nodes; rotated for each Pod.
        pods: number of Pods in undisturbed spells; fewer on a host that always disturbs.

    Raises:
        SandboxError: a response is not 200, or the extender closes the connection.
    """
    path = f"{scheduling.pods_of(namespace)}?dryRun=All"
    pod = api.request("POST", path, scheduling.pod("called", 1))
    host, _, rest = prefix.removeprefix("http://").partition("/")
    address, _, port = host.rpartition(":")
    targets = {verb: f"/{rest}/{verb}" if rest else f"/{verb}" for verb in verbs}
    calls = Calls()
    with socket.create_connection((address, int(port)), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for first in range(0, PATIENCE * pods, SPELL_PODS):
            taken, passed = stolen()
            spell: Times = {verb: [] for verb in verbs}
            for number in range(first, first + SPELL_PODS):
                begun = time.monotonic()
                body = _body(pod, number, names)
                for verb, target in targets.items():
                    request = post(host, target, body)
                    sent = time.monotonic()
                    exchange(connection, request)
                    spell[verb].append(1000 * (time.monotonic() - sent))
                time.sleep(max(begun + 1 / PODS_A_SECOND - time.monotonic(), 0))
            taken, passed = stolen()[0] - taken, stolen()[1] - passed
            calls.add(spell, disturbed=taken > STOLEN * passed)
            if calls.pods >= pods:
                break
    return calls


def _body(pod: Object, number: int, names: Sequence[str]) -> bytes:
    pod["metadata"] |= {"name": f"{AGENT}-{number}", "uid": str(uuid.UUID(int=number + 1))}
    start = (number * 7) % len(names)
    nodes = [*names[start:], *names[:start]]
    return wire({"Pod": pod, "Nodes": None, "NodeNames": nodes})


def post(host: str, target: str, body: bytes) -> bytes:
    """A request in the form of kube-scheduler's."""
    head = (
        f"POST {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Go-http-client/1.1\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + body


def exchange(connection: socket.socket, request: bytes) -> None:
    """Send a request and read the response.

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
        raise SandboxError(f"the response to a call is {lines[0]}: {body[:500]!r}")
    lengths = [line.split(":")[1] for line in lines if line.startswith("content-length:")]
    if not lengths:
        raise SandboxError("a response has no Content-Length")
    left = int(lengths[0]) - len(body)
    while left > 0:
        left -= len(_received(connection))


def _received(connection: socket.socket) -> bytes:
    found = connection.recv(_RECEIVE)
    if not found:
        raise SandboxError("the extender closed the connection")
    return found
