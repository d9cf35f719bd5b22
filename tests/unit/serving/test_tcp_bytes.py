"""The kernel's count of bytes of a connection."""

from __future__ import annotations

import socket

from kube_scheduler_operator.serving.tcp_bytes import bytes_read


def test_only_bytes_that_were_read_count() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            assert bytes_read(accepted) == 0
            client.sendall(70_000 * b"x")
            left = 70_000
            while left > 20_000:
                left -= len(accepted.recv(min(left - 20_000, 4096)))
            assert bytes_read(accepted) == 50_000
            client.sendall(b"y")
            while left > -1:
                left -= len(accepted.recv(4096))
            assert bytes_read(accepted) == 70_001
        assert bytes_read(accepted) is None, "closed"


def test_other_sockets_have_no_count() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert bytes_read(one) is None
