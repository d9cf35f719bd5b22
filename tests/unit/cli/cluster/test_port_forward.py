from __future__ import annotations

import socket
import struct
from typing import Any

import pytest
from kubernetes.stream.ws_client import PortForward
from websocket import WebSocket

from kube_scheduler_operator.cli.cluster.port_forward import end_quietly

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
        port_forward: Any = PortForward  # has no types
        tunnel = port_forward(websocket, [80])
        if reset:
            api_server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        api_server.close()
        with tunnel.socket(80)._socket as local:
            local.settimeout(30)
            assert local.recv(1) == b""
        assert websocket.sock is None
