"""HTTPS probes of servers on the node; like the kubelet's, they accept any certificate."""

from __future__ import annotations

import errno
import socket
from typing import Final

from .manifest import Probe

TIMEOUT: Final = 2.0
"""Seconds for one probe; a healthy scheduler answers in milliseconds."""


def is_ready(probe: Probe) -> bool:
    """Return whether the probe is answered with status 200."""
    return _status(probe) == "200"


def answers(probe: Probe) -> bool:
    """Return whether the probe is answered with any status except a server error."""
    status = _status(probe)
    return bool(status) and not status.startswith("5")


def _status(probe: Probe) -> str:
    """Return the HTTP status of the response; empty without one."""
    import ssl  # deferred: printing help does not need it

    # The certificate may be self-signed: the probe checks readiness, not identity.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host = f"[{probe.host}]" if ":" in probe.host else probe.host
    request = (
        f"GET {probe.path} HTTP/1.0\r\nHost: {host}\r\n"
        "User-Agent: kube-scheduler-operator\r\nAccept: */*\r\n\r\n"
    )
    try:
        with (
            socket.create_connection((probe.host, probe.port), TIMEOUT) as plain,
            context.wrap_socket(plain) as connection,
        ):
            connection.sendall(request.encode())
            with connection.makefile("rb") as answer:
                status = answer.readline(256).split()
    except (OSError, ValueError):
        return ""
    return status[1].decode(errors="replace") if len(status) > 1 else ""


def is_port_free(probe: Probe) -> bool:
    """Return whether a scheduler could listen at the probe's address.

    Tested by binding, as the scheduler does: a connection attempt could not distinguish a free port
    from an address of another node, for which there is nothing to wait.
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
