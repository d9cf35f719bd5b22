"""The head of a request, checked before anything of its body is read.

The body must have a length: each chunk of a chunked body would cost a call, and any client may send
chunks of one byte. API servers always send a length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import httptools

from .decisions import ReviewAnswer, text

PATH: Final = b"/assign"

MAX_BODY: Final = 4 * 1024 * 1024
"""Bytes of a review. API servers accept requests of 3 MiB and store objects of 1.5 MiB; a review
has the Pod once, with its defaults."""

MAX_DISCARDED: Final = 32 * 1024 * 1024
"""Bytes of a larger body that are read and discarded, so that the connection stays: a Pod of a
tenant must not cost the API server its connections."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    length: int  # of the body, bytes
    alive: bool  # whether the client may send another request


class _Reader:
    """Callbacks of httptools."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: dict[bytes, bytes] = {}

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value


def read_head(head: bytes) -> RequestHead | ReviewAnswer:
    """Read a head; a ReviewAnswer rejects the request and ends the connection."""
    reader = _Reader()
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(head)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return text(400, "the request is not HTTP/1.1")
    if reader.url.partition(b"?")[0] != PATH:
        return text(404, f"the path is {PATH.decode()}")
    if parser.get_method() != b"POST":
        return text(405, "the method is POST")
    if reader.headers.get(b"content-encoding"):
        return text(415, "send the body without Content-Encoding", "invalid")
    length = reader.headers.get(b"content-length", b"").strip()
    if b"transfer-encoding" in reader.headers or not length.isdigit():
        return text(411, "send the body with Content-Length, not in chunks", "invalid")
    if len(length) > 12 or int(length) > MAX_DISCARDED:
        return TOO_LARGE
    return RequestHead(int(length), parser.should_keep_alive())


TOO_LARGE: Final = text(413, f"the body has more than {MAX_BODY} bytes", "invalid")
