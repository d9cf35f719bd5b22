"""A pseudo terminal that records what is written to it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
import tty
from typing import TextIO


class Terminal:
    def __init__(self, columns: int = 60) -> None:
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream: TextIO = os.fdopen(slave, "w", buffering=1, encoding="utf-8")
        self._read = b""
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        try:
            while data := os.read(self._master, 65536):
                self._read += data
        except OSError:  # EIO: the other side is closed
            pass

    @property
    def text(self) -> str:
        """What was written so far."""
        return self._read.decode(errors="replace")

    def close(self) -> str:
        """Return all that was written."""
        self.stream.close()
        self._thread.join(10)
        os.close(self._master)
        return self.text


def shown(text: str) -> str:
    """Return what a terminal shows of a text with carriage returns and erased lines."""
    lines = [""]
    for part in text.replace("\r\x1b[K", "\r").split("\n"):
        lines[-1] += part
        lines[-1] = lines[-1].rpartition("\r")[2]
        lines.append("")
    return "\n".join(lines[:-1])
