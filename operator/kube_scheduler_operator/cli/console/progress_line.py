"""One line on a terminal that names what a command does, once it takes more than two seconds.

It is replaced in place and erased before anything else is written, so it is never part of the
output. A thread of its own writes it: work may keep the event loop busy.
"""

from __future__ import annotations

import os
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO

from ...base.foreign_text import one_line
from ...base.progress import Steps, collect

DELAY: Final = 2.0
"""Seconds of work before the line appears."""
_PERIOD: Final = 0.2
_GAP: Final = 1.0
"""Seconds without a step after which work counts as ended: a watch that waits."""
_ERASE: Final = "\r\x1b[K"
_COLUMNS: Final = 80
"""Of a terminal that does not say how wide it is."""


class ProgressLine:
    """The line of a process; without a terminal it does nothing."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._steps: Steps = []
        self._terminal: TextIO | None = None
        self._shown = ""
        self._at_line_start = True
        self._since: float | None = None  # when the work began
        self._last = 0.0  # when a step was seen last

    @contextmanager
    def on(self, terminal: TextIO | None) -> Iterator[None]:
        """Show the steps of the block on a terminal; None: nowhere."""
        if terminal is None:
            yield
            return
        ended = threading.Event()
        self._terminal, self._since, self._steps = terminal, None, []
        thread = threading.Thread(target=self._run, args=(ended,), daemon=True)
        thread.start()
        try:
            with collect(self._steps):
                yield
        finally:
            ended.set()
            thread.join()
            with self.erased():
                self._terminal = None

    @contextmanager
    def erased(self, text: str = "\n") -> Iterator[None]:
        """Erase the line while the block writes `text`."""
        with self._lock:
            if self._shown:
                self._write(_ERASE)
                self._shown = ""
            yield
            if text:
                self._at_line_start = text.endswith("\n")

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(_PERIOD):
            with self._lock:
                self._draw(time.monotonic())

    def _draw(self, now: float) -> None:
        steps = tuple(self._steps)
        if steps:
            self._last = now
            self._since = now if self._since is None else self._since
        elif now - self._last > _GAP:
            self._since = None
            with self.erased(""):
                return
        if not steps or self._since is None or now - self._since < DELAY:
            return
        if not self._at_line_start:  # a question that waits for its answer
            return
        text = f"{': '.join(map(str, steps))} ({now - self._since:.0f} s)"
        line = _cut(one_line(text), self._columns())
        if line != self._shown:
            self._write(_ERASE + line)
            self._shown = line

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._terminal.fileno()).columns if self._terminal else 0
        except (OSError, ValueError):
            return 0

    def _write(self, text: str) -> None:
        if self._terminal is not None:
            with suppress(OSError, ValueError):  # the terminal is gone, the work is not
                self._terminal.write(text)
                self._terminal.flush()


def _cut(text: str, columns: int) -> str:
    """Return what fits into a line: one that wraps could not be erased."""
    columns = columns or _COLUMNS
    wide = 0
    for at, character in enumerate(text):
        wide += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if wide >= columns:
            return text[: max(at - 1, 0)] + "…"
    return text


LINE: Final = ProgressLine()
"""That of this process: there is one standard error."""
