"""A stranger that floods the webhook for `spec.assign`, as a program of its own.

Its arguments are a port, the stranger's address, a key of KINDS and a number of connections, each
of which repeats one thing as fast as it is allowed to, until the program is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

BODY: Final = b"[" + b"[]," * (8 * 1024 * 1024 // 3) + b"1]"
HEAD: Final = b"POST /assign?timeout=1s HTTP/1.1\r\nHost: x\r\n"
PAUSE: Final = 0.01
TIMEOUT: Final = 10.0


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


CONTEXT: Final = _context()


def _bodies(client: ssl.SSLSocket) -> None:
    """Large bodies of values, on a connection that stays."""
    while True:
        client.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY))
        client.sendall(BODY)
        if not client.recv(1 << 16):
            return


def _chunked(client: ssl.SSLSocket) -> None:
    client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    piece = b"2\r\n[]\r\n" * 16384
    while True:
        client.sendall(piece)


def _small(client: ssl.SSLSocket) -> None:
    """The most expensive bodies within the limits."""
    body = b"[" + b'{"a":1},' * 32_000 + b"1]"
    while True:
        client.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        if not client.recv(1 << 16):
            return


def _slow(client: ssl.SSLSocket) -> None:
    """A head that announces a body, and then a byte of it now and then."""
    client.sendall(HEAD + b"Content-Length: 300000\r\n\r\n")
    while True:
        client.sendall(b" ")
        time.sleep(0.1)


def _slow_heads(client: ssl.SSLSocket) -> None:
    while True:
        client.sendall(b"P")
        time.sleep(0.1)


def _nothing(_client: ssl.SSLSocket) -> None:
    """Handshakes alone."""


def _idle(client: ssl.SSLSocket) -> None:
    client.recv(1)


KINDS: Final[Mapping[str, Callable[[ssl.SSLSocket], None]]] = {
    "bodies": _bodies,
    "chunked": _chunked,
    "small": _small,
    "slow": _slow,
    "slow-heads": _slow_heads,
    "handshakes": _nothing,
    "idle": _idle,
}


def _one(port: int, address: str, kind: str) -> None:
    while True:
        with contextlib.suppress(OSError):
            plain = socket.create_connection(("127.0.0.1", port), TIMEOUT, (address, 0))
            with plain, CONTEXT.wrap_socket(plain) as client:
                KINDS[kind](client)
        time.sleep(PAUSE)


@contextlib.contextmanager
def flooded(port: int, address: str, kind: str, connections: int) -> Iterator[None]:
    """Flood while the context is open."""
    command = [sys.executable, __file__, str(port), address, kind, str(connections)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGKILL)


def main() -> None:
    port, address, kind, connections = sys.argv[1:]
    for _ in range(int(connections)):
        arguments = (int(port), address, kind)
        threading.Thread(target=_one, args=arguments, daemon=True).start()
    while os.getppid() != 1:
        time.sleep(0.5)


if __name__ == "__main__":
    main()
