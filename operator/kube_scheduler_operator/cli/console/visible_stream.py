"""The streams of a command, which show visible characters only."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from ...base.foreign_text import visible
from .colour import coloured, is_coloured, is_terminal
from .progress_line import LINE


class VisibleStream:
    """A text stream that writes out what is not visible, apart from line breaks.

    Python colours help (3.14) and tracebacks (3.13) on a terminal, so it does not show itself as
    one. Its own colours come after that (`write_coloured`), and the line of progress is erased
    before.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._is_coloured = is_coloured(stream)

    def write(self, text: str) -> int:
        """Write the text; return its length, as a stream does."""
        self._write(visible(text))
        return len(text)

    def write_coloured(self, text: str) -> None:
        """Write text for people; problems and states are coloured on a terminal."""
        shown = visible(text)
        self._write(coloured(shown) if self._is_coloured else shown)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def _write(self, text: str) -> None:
        with LINE.erased(text):
            self.stream.write(text)

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def guard_streams() -> TextIO | None:
    """Restrict standard output and standard error to visible characters from now on.

    Returns the terminal of standard error, for the line of progress; None if it is none.
    """
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)
    stream = cast("VisibleStream", sys.stderr).stream
    return stream if is_terminal(stream) else None


def write_for_people(stream: TextIO, text: str) -> None:
    """Write text to standard output or standard error, coloured on a terminal."""
    if isinstance(stream, VisibleStream):
        stream.write_coloured(text)
    else:
        stream.write(text)


def _guarded(stream: TextIO) -> TextIO:
    already = isinstance(stream, VisibleStream)
    return stream if already else cast("TextIO", VisibleStream(stream))
