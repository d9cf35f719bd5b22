"""Bytes of a file as the characters that kube-scheduler's YAML decoder reads.

It recognizes UTF-16 and UTF-8 by their byte order marks, and decodes 512 bytes at a time: a
character that YAML does not allow is an error only if a document needs its block. An incomplete
character at the end is an error only if a document needs more than the text before it.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

from .tree import ParseError, Position

_MARKS: Final = (
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_BLOCK: Final = 512  # bytes that the decoder reads at a time
_WIDTHS: Final = ((0x80, 0x00, 1), (0xE0, 0xC0, 2), (0xF0, 0xE0, 3), (0xF8, 0xF0, 4))
"""(mask, value, bytes): the length of a UTF-8 character by its first byte, as in go-yaml."""
_FORBIDDEN: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
BREAKS: Final = "\r\n\x85\u2028\u2029"
LINE_BREAK: Final = re.compile(f"\r\n|[{BREAKS}]")


@dataclass(frozen=True, slots=True)
class Characters:
    text: str  # up to the error
    error: ParseError | None = None  # of what follows the text; None: the text is complete
    first_block: int = (
        2 * _BLOCK
    )  # characters in the decoder's first block; larger for a single one


def position_of(text: str, at: int) -> Position:
    line, start = 1, 0
    for match in LINE_BREAK.finditer(text, 0, at):
        line, start = line + 1, match.end()
    return Position(line, at - start + 1)


def characters(data: bytes) -> Characters:
    """Decode the characters of a file, up to the first forbidden one."""
    encoding, marker = "utf-8", 0
    for mark, name in _MARKS:
        if data.startswith(mark):
            encoding, marker = name, len(mark)
            break
    reason, length, is_cut_off = "", 0, False
    first = 2 * _BLOCK
    if len(data) > _BLOCK:
        first = len(data[marker:_BLOCK].decode(encoding, errors="ignore"))
    try:
        text = data[marker:].decode(encoding)
    except UnicodeDecodeError as error:
        text = data[marker : marker + error.start].decode(encoding)
        shown = " ".join(f"0x{byte:02x}" for byte in error.object[error.start : error.end])
        name = encoding.removesuffix("-le").removesuffix("-be").upper()
        reason = f"{shown} is not {name}; save the file as UTF-8"
        length = len(text)
        rest = data[marker + error.start :]
        is_cut_off = _width(rest, encoding) > len(rest)
    if match := _FORBIDDEN.search(text):
        reason = f"YAML does not allow the control character U+{ord(match[0]):04X}; remove it"
        if match[0] == "\0" and text.count("\0") > len(text) // 4:
            reason = "this is UTF-16 without its byte order mark, or UTF-32; save the file as UTF-8"
        length, is_cut_off = match.start(), False
    if not reason:
        return Characters(text, None, first)
    if is_cut_off:
        return Characters(text, ParseError(position_of(text, length), reason), first)
    before = marker + len(text[:length].encode(encoding))
    block = before - before % _BLOCK
    # A character that crosses the end of a block belongs to the next one.
    readable = data[marker : max(block, marker)].decode(encoding, errors="ignore")
    return Characters(readable, ParseError(position_of(text, length), reason), first)


def _width(data: bytes, encoding: str) -> int:
    """Return the length of the character that begins here, by its first unit; 0 if invalid."""
    first = data[0]
    if encoding == "utf-8":
        return next((width for mask, lead, width in _WIDTHS if first & mask == lead), 0)
    high = data[1:2] if encoding == "utf-16-le" else data[:1]
    return 4 if len(data) > 1 and high[0] & 0xFC == 0xD8 else 2
