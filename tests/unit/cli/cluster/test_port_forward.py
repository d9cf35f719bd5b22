from __future__ import annotations

import socket
import struct
from typing import Any
from unittest.mock import Mock

import pytest
from kubernetes.stream.ws_client import PortForward
from websocket import WebSocket

from kube_scheduler_operator.base.limits import Size
from kube_scheduler_operator.cli.cluster import port_forward
from kube_scheduler_operator.cli.cluster.port_forward import Tunnel, end_quietly
from kube_scheduler_operator.cli.console.errors import CommandError

RESET = struct.pack("ii", 1, 0)
"""A linger time of 0: `close` resets the connection."""


@pytest.mark.parametrize("reset", [False, True])
def test_an_ended_connection_ends_the_tunnel_without_a_traceback(reset: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        websocket = WebSocket()
        websocket.sock = socket.create_connection(listener.getsockname())
        websocket.connected = True
        end_quietly(websocket)
        api_server, _ = listener.accept()
        forward: Any = PortForward  # has no types
        tunnel = forward(websocket, [80])
        if reset:
            api_server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        api_server.close()
        with tunnel.socket(80)._socket as local:
            local.settimeout(30)
            assert local.recv(1) == b""
        assert websocket.sock is None


def test_the_answer_of_a_pod_is_read_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_forward, "ANSWER", Size(1_000_000, 1))
    answer = Mock(status=200)
    answer.read = lambda count: b"x" * count  # without end
    tunnel = Tunnel(Mock(), "n", "p", 8080)
    tunnel._connection = Mock(getresponse=lambda: answer)
    tunnel._stream = Mock()
    with pytest.raises(CommandError, match="has more than 1000000 bytes"):
        tunnel.post("/ask", "key", b"", 1.0)
