"""A real extender process gets invalid input and continues to work.

KSO_FUZZ_SECONDS makes it longer.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import POD, names_body, node, nodes_body, request
from .test_program import Process, extender

SECONDS = float(os.environ.get("KSO_FUZZ_SECONDS", "0"))
EXAMPLES = 150 if not SECONDS else int(SECONDS * 20)
GROWTH = 32
"""MiB by which the process may grow after the first run of all inputs."""

VICTIMS = {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0}}
BODIES = (
    names_body("a", "b"),
    nodes_body(node("a"), node("b")),
    json.dumps({"Pod": POD, "NodeNameToMetaVictims": VICTIMS}).encode(),
    json.dumps({"PodName": "p", "PodNamespace": "n", "PodUID": "u", "Node": "a"}).encode(),
)
PATHS = [
    f"/{agent}/{verb}"
    for agent in ("foo", "both")
    for verb in ("filter", "prioritize", "preempt", "bind")
]
HOSTILE = (
    b"[" * 200_000,
    b'{"Pod":' * 50_000,
    b'{"Pod":{},"Pod":{},"NodeNames":["a"],"NodeNames":{},"nodenames":[1]}',
    b'{"Pod":{"metadata":{"name":1e400}},"NodeNames":["a"]}',
    b'{"Pod":{"metadata":' + b"9" * 100_000 + b'},"NodeNames":["a"]}',
    b'{"Pod":{"metadata":{"name":NaN}},"NodeNames":["a"]}',
    b'{"Pod":{"metadata":{"name":"\\ud800"}},"NodeNames":["\\udfff"]}',
    b'{"Pod":{"metadata":[],"spec":7,"status":"x"},"Nodes":null,"NodeNames":["a"]}',
    b'{"Pod":{"spec":{"containers":[null,7,{"resources":{"requests":{"cpu":{}}}}]}},"NodeNames":[]}',
    b'{"Pod":{"spec":{"containers":[{"resources":{"requests":{"cpu":"1e999","memory":"-5"}}}]}},'
    b'"Nodes":null,"NodeNames":["a"]}',
    b'{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"a","labels":7,"annotations":[]},'
    b'"status":{"allocatable":[],"capacity":{"cpu":[]}},"spec":{"taints":5}}]}}',
    b'{"Pod":{},"Nodes":null,"NodeNames":[' + b'"a",' * 200_000 + b'"a"]}',
    b'{"Pod":{},"Nodes":null,"NodeNames":["' + b"x" * 1_000_000 + b'"]}',
    b"\xff\xfe" * 1000,
    b"\x00" * 10_000,
)
BIG = nodes_body(*(node(f"n{number}", filler="x" * 4000) for number in range(2000)))


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    directory = tmp_path_factory.mktemp("fuzz")
    file = directory / "config.json"
    both: list[Any] = [{"policy": "safe-overload"}, {"policy": "safe-balance", "weight": 3}]
    document = {
        "policies": [{"policy": "foo"}],
        "agents": [{"name": "both", "policies": both}],
        "listen": {"port": 0},
        "watch": False,
        "logLevel": "ALERT",
    }
    file.write_text(json.dumps({**document, "logLevel": "INFO"}))
    with extender(directory, "--config", str(file), HTTP_PORT="") as found:
        found.port  # noqa: B018 - waits until it listens
        yield found


def resident(process: Process) -> float:
    """MiB."""
    text = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def send(process: Process, data: bytes, *, how: str = "wait") -> bytes:
    """Send bytes on a new connection; returns the immediate response."""
    answer = b""
    connection = socket.create_connection(("127.0.0.1", process.port), timeout=20)
    with connection, contextlib.suppress(OSError):
        connection.sendall(data)
        if how == "reset":
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if how != "wait":
            return b""
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(1 << 16):
            answer += part
    return answer


def well(process: Process) -> None:
    """Check that the process works as before."""
    assert process.process.poll() is None, process.log.read_text()[-2000:]
    assert process.ask("/healthz")
    answer = process.ask("/foo/filter", BODIES[0])
    assert answer["NodeNames"] == ["a", "b"]
    assert answer["Error"] == ""
    text = process.log.read_text()
    assert "A request failed" not in text, text[-3000:]
    assert "A policy failed" not in text, text[-3000:]


JUNK = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [b"null", b"1e999", b"-0", b'"\\u0000"', b"[]", b"{}", b"\r\n\r\n", b",", b"\x00"]
    ),
)
HOW = st.sampled_from(["wait", "wait", "wait", "hang up", "reset"])


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
@given(
    st.sampled_from(PATHS),
    st.sampled_from(BODIES),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), JUNK), max_size=4),
    st.booleans(),
    HOW,
)
def test_mutated_requests_are_answered(
    process: Process,
    path: str,
    body: bytes,
    changes: list[tuple[float, int, bytes]],
    whole_request: bool,
    how: str,
) -> None:
    """A request with replaced bytes, in the body or anywhere."""
    data = request("POST", path, body) if whole_request else body
    for where, length, junk in changes:
        at = int(where * len(data))
        data = data[:at] + junk + data[at + length :]
    if not whole_request:
        data = request("POST", path, data)
    send(process, data, how=how)
    well(process)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "100m", "1Gi", "-1", "1e99", "٣", "x" * 300]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["metadata", "name", "namespace", "uid", "labels", "annotations", "spec", "status",
             "containers", "initContainers", "resources", "requests", "limits", "cpu", "memory",
             "allocatable", "capacity", "items", "ownerReferences", "overhead", "taints",
             "mean-free-cpu", "std-free-cpu", "creationTimestamp", "conditions", "Pods", "UID"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
@given(st.sampled_from(PATHS), JSON, JSON, st.booleans())
def test_arbitrary_objects_are_answered(
    process: Process, path: str, pod: Any, node_like: Any, names: bool
) -> None:
    body: dict[str, Any] = {"Pod": pod, "Nodes": None, "NodeNames": ["a", "b"]}
    if not names:
        shaped = {**node_like, "metadata": {**_object(node_like, "metadata"), "name": "a"}} if (
            isinstance(node_like, dict)
        ) else node_like  # fmt: skip
        body |= {"NodeNames": None, "Nodes": {"items": [shaped]}}
    if path.endswith("preempt"):
        body["NodeNameToVictims"] = {"a": node_like}
    answer = send(process, request("POST", path, json.dumps(body).encode()))
    assert answer.split(b" ")[1] in (b"200", b"400")
    well(process)


def _object(found: Any, key: str) -> dict[str, Any]:
    value = found.get(key)
    return value if isinstance(value, dict) else {}


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_bodies_are_answered(process: Process, number: int) -> None:
    for path in PATHS:
        answer = send(process, request("POST", path, HOSTILE[number]))
        assert answer.split(b" ")[1] in (b"200", b"400"), answer[:200]
    well(process)


@pytest.mark.timeout(300)
def test_memory_does_not_grow(process: Process) -> None:
    """After the first run of all inputs, repeated runs do not grow the process."""
    dice = random.Random(7)

    def round_() -> None:
        for path in PATHS[:3]:
            send(process, request("POST", path, BIG))
        for hostile in HOSTILE:
            send(process, request("POST", dice.choice(PATHS), hostile))
        for _ in range(100):
            bent = bytearray(dice.choice(BODIES))
            for _ in range(dice.randrange(4)):
                bent[dice.randrange(len(bent))] = dice.randrange(256)
            data = request("POST", dice.choice(PATHS), bytes(bent))
            how = dice.choice(["wait", "hang up", "reset"])
            send(
                process, data[: dice.randrange(len(data))] if dice.random() < 0.3 else data, how=how
            )
        for number in range(100):  # ever new pods and nodes
            pod = {"metadata": {"name": f"p{dice.random()}", "namespace": f"n{number}"}}
            send(process, request("POST", "/both/filter", names_body(f"x{dice.random()}", pod=pod)))
            send(
                process,
                request("POST", "/both/filter", nodes_body(node(f"y{dice.random()}"), pod=pod)),
            )

    for _ in range(2):
        round_()
    before = resident(process)
    for _ in range(4):
        round_()
    well(process)
    assert resident(process) - before < GROWTH
