"""Counts the bytes of a connection that were read, including those that TLS swallowed.

TLS has records without data, such as KeyUpdate: they cost processor time, and no limit of HTTP
notices them. Only the kernel counts them.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
import sys
import termios
from typing import Final

_TCP_INFO: Final = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
_BYTES_RECEIVED: Final = 128
"""The offset of `tcpi_bytes_received`, a u64, in `struct tcp_info` of Linux 4.1 and later."""


def bytes_read(sock: socket.socket) -> int | None:
    """Return the bytes that arrived on a TCP connection and were read; None: not known."""
    if _TCP_INFO is None:
        return None
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _BYTES_RECEIVED + 8)
        unread = array.array("i", [0])
        fcntl.ioctl(sock, termios.FIONREAD, unread)
    except (OSError, ValueError):  # not TCP, or closed
        return None
    if len(info) < _BYTES_RECEIVED + 8:
        return None
    (received,) = struct.unpack_from("=Q", info, _BYTES_RECEIVED)
    return max(int(received) - unread[0], 0)
