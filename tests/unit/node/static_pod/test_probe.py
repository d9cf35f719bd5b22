"""Probes work like the kubelet's: status 200 over HTTPS with any certificate."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from kube_scheduler_operator.node.static_pod.host import answers, is_port_free, is_ready
from kube_scheduler_operator.node.static_pod.manifest import Probe


@pytest.fixture
def listener() -> Iterator[Any]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def probe(server: Any) -> Probe:
    return Probe("127.0.0.1", server.getsockname()[1], "/readyz")


def test_unused_port_is_free(listener: Any) -> None:
    where = probe(listener)
    listener.close()
    assert is_port_free(where)
    assert not is_ready(where)


def test_port_in_use_is_not_free(listener: Any) -> None:
    assert not is_port_free(probe(listener))


def test_port_in_use_on_all_addresses_is_not_free() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        assert not is_port_free(probe(server))


def test_closed_connection_does_not_block_the_port(listener: Any) -> None:
    where = probe(listener)
    with socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        accepted.close()  # the server closes first: its port is in TIME_WAIT for a minute
    listener.close()
    assert is_port_free(where)


@pytest.mark.parametrize("host", ["203.0.113.77", "2001:db8::77", "no.such.host.invalid"])
def test_address_of_another_host_counts_as_free(host: Any) -> None:
    assert is_port_free(Probe(host, 10259, "/readyz"))


def test_server_without_tls_is_not_ready(listener: Any) -> None:
    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nok")

    thread = threading.Thread(target=answer)
    thread.start()
    assert not is_ready(probe(listener))
    thread.join()


@pytest.fixture
def server(first_certificate: Any) -> Iterator[Any]:
    """A function that makes a TLS server, which answers everything with a status."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(first_certificate.certificate, first_certificate.key)
    with ExitStack() as stack:

        def start(status: Any) -> Probe:
            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    self.send_response(status)
                    self.end_headers()

                def log_message(self, *_: Any) -> None:
                    pass

            httpd = HTTPServer(("127.0.0.1", 0), Handler)
            httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
            thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
            thread.start()
            stack.callback(httpd.server_close)
            stack.callback(thread.join)
            stack.callback(httpd.shutdown)
            return Probe("127.0.0.1", httpd.server_port, "/readyz")

        yield start


@pytest.mark.parametrize(
    ("status", "ready", "there"),
    [(200, True, True), (401, False, True), (403, False, True), (500, False, False)],
)
def test_client_errors_count_as_an_answer_and_server_errors_do_not(
    server: Any, status: Any, ready: Any, there: Any
) -> None:
    where = server(status)
    assert (is_ready(where), answers(where)) == (ready, there)


def test_closed_port_does_not_answer(listener: Any) -> None:
    where = probe(listener)
    listener.close()
    assert not answers(where)
