"""The streams of a command, which show visible characters only."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from ...base.foreign_text import visible


class VisibleStream:
    """A text stream that writes out what is not visible, apart from line breaks.

    Python colours help (3.14) and tracebacks (3.13) on a terminal, so it does not show itself as
    one. A command that controls the terminal would have to write to `stream`; none does.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text; return its length, as a stream does."""
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.stream.writelines(map(visible, lines))

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def guard_streams() -> None:
    """Restrict standard output and standard error to visible characters from now on."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: TextIO) -> TextIO:
    already = isinstance(stream, VisibleStream)
    return stream if already else cast("TextIO", VisibleStream(stream))
