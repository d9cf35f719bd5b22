"""Health is what the kubelet would say: 200 over HTTPS with any certificate."""

from __future__ import annotations

import socket
import threading

import pytest

from kube_scheduler_operator.node.health import is_port_free, is_ready
from kube_scheduler_operator.node.manifest import Probe


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def probe(server):
    return Probe("127.0.0.1", server.getsockname()[1], "/readyz")


def test_nobody_listens(listener):
    where = probe(listener)
    listener.close()
    assert is_port_free(where)
    assert not is_ready(where)


def test_somebody_listens(listener):
    assert not is_port_free(probe(listener))


def test_somebody_listens_on_all_addresses():
    with socket.create_server(("0.0.0.0", 0)) as server:
        assert not is_port_free(probe(server))


def test_a_connection_that_was_closed_just_now_does_not_keep_the_port(listener):
    where = probe(listener)
    with socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        accepted.close()  # the server closes first: its port is in TIME_WAIT for a minute
    listener.close()
    assert is_port_free(where)


@pytest.mark.parametrize("host", ["203.0.113.77", "2001:db8::77", "no.such.host.invalid"])
def test_an_address_of_nobody_is_nothing_to_wait_for(host):
    assert is_port_free(Probe(host, 10259, "/readyz"))


def test_who_does_not_speak_tls_is_not_ready(listener):
    def answer():
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nok")

    thread = threading.Thread(target=answer)
    thread.start()
    assert not is_ready(probe(listener))
    thread.join()
