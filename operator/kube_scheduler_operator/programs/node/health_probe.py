"""Whether a server of the node's answers, asked as the kubelet asks: HTTPS, any certificate."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .manifest import Probe

TIMEOUT: Final = 2.0
"""Seconds for one question; the scheduler answers in milliseconds or has a problem."""


def is_ready(probe: Probe, timeout: float = TIMEOUT) -> bool:
    """Whether a GET of the probe is answered with 200."""
    return _status(probe, timeout) == "200"


def answers(probe: Probe, timeout: float = TIMEOUT) -> bool:
    """Whether a GET of the probe is answered at all, even by a refusal, but not by a failure."""
    status = _status(probe, timeout)
    return bool(status) and not status.startswith("5")


def _status(probe: Probe, timeout: float) -> str:
    """The status with which a GET of the probe is answered; empty if it is not."""
    import ssl  # here: a program that only prints its help does not need it

    # Self-signed, as for the kubelet: what is asked is whether it is ready, not who it is.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = (
        f"GET {probe.path} HTTP/1.0\r\nHost: {_host(probe)}\r\n"
        "User-Agent: kube-scheduler-operator\r\nAccept: */*\r\n\r\n"
    )
    try:
        with (
            socket.create_connection((probe.host, probe.port), timeout) as plain,
            context.wrap_socket(plain) as connection,
        ):
            connection.sendall(request.encode())
            with connection.makefile("rb") as answer:
                status = answer.readline(256).split()
    except (OSError, ValueError):
        return ""
    return status[1].decode(errors="replace") if len(status) > 1 else ""


def is_port_free(probe: Probe) -> bool:
    """Whether a scheduler could listen where the probe goes.

    Asked by binding, as the scheduler will: a connection to an address that is not this node's
    would get no answer, and an address of somebody else is nothing to wait for.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            probe.host, probe.port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as bound:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True


def _host(probe: Probe) -> str:
    return f"[{probe.host}]" if ":" in probe.host else probe.host
