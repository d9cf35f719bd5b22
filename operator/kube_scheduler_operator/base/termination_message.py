"""The error for which a scheduler ended: in its container log, or in its termination message.

The kubelet writes the log files in the CRI format: a time, a stream, P (part of a line) or F (its
end), and text. A termination message has the end of such a log, without these prefixes. The
relevant part of the text is klog's `"command failed" err="…"`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .foreign_text import foreign
from .json_text import parse_json
from .objects import mapping

LENGTH: Final = 1000
"""Characters that are kept; the whole termination message of a container has 4096 bytes."""

_HARMLESS: Final = ("The manifest file is empty, ignoring.",)
"""Logged by kube-scheduler 1.36 as an error at every start."""

_TAIL: Final = 64 * 1024
"""Bytes that are read of a log."""

_CRI: Final = re.compile(r"^\S+ (?:stdout|stderr) ([PF])(?::\S+)? ?(.*)$")
_KLOG: Final = re.compile(r"^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [^\]]+\] ?(.*)$")
_ERR: Final = re.compile(r'\b(?:err|error)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')
_QUOTED: Final = re.compile(r'^"((?:[^"\\]|\\.)*)"')
_PLAIN: Final = re.compile(r"^(?:panic|fatal error|[Ee]rror): .*")
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "; ", "t": " ", "r": " "}
_FLAG: Final = re.compile(r'(?:\]|"msg":") ?FLAG: --')
"""A flag and its value: kube-scheduler logs all of them first, and they are not about an error."""


@dataclass(frozen=True, slots=True)
class Log:
    """The log of one run of a container: the kubelet starts a new file at every (re)start."""

    path: Path
    modified: float


def logs(pod_log_dir: Path, prefix: str, container: str) -> list[Log]:
    """The logs of `container` in directories that start with `prefix`, oldest first."""
    found = []
    for directory in directories(pod_log_dir, prefix):
        try:
            entries = list(os.scandir(directory / container))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            if not entry.name.endswith(".log"):
                continue
            try:
                found.append(Log(Path(entry.path), _modified(Path(entry.path))))
            except FileNotFoundError:
                continue
    return sorted(found, key=lambda log: (log.modified, log.path.name))


def directories(pod_log_dir: Path, prefix: str) -> list[Path]:
    """The log directories of pods, past and present, whose name starts with `prefix`."""
    try:
        return [path for path in pod_log_dir.iterdir() if path.name.startswith(prefix)]
    except FileNotFoundError:
        return []


def read_tail(path: Path) -> tuple[str, ...]:
    """The lines at the end of the log file `path`; empty if it is empty or cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))  # words: allow tell - method
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(_joined(text))


def last_error(lines: Sequence[str]) -> str:
    """The last error in the last lines of a log; empty if they have none.

    klog's errors and fatal errors count, panics, and errors of flags; warnings do not.
    """
    for line in reversed(lines):
        message = _error(line.strip())
        if message:
            return foreign(message, LENGTH)
    # A termination message begins anywhere, so its first line may be the end of an error.
    first = lines[0].strip() if lines else ""
    if _KLOG.match(first) or first.startswith("{"):
        return ""
    return foreign(_err(first), LENGTH)


def last_line(lines: Sequence[str]) -> str:
    """The last line of a log that is not about a flag; empty without one."""
    stripped = (line.strip() for line in reversed(lines))
    found = next((line for line in stripped if line and not _FLAG.search(line)), "")
    return foreign(found, LENGTH)


def message_error(message: str) -> str:
    """The last error in a termination message; without one, its last line. It may be empty."""
    lines = message.splitlines()
    return last_error(lines) or last_line(lines)


def _error(line: str) -> str:
    """The error in `line`; empty if it has none."""
    if _PLAIN.match(line):
        return line
    if line.startswith("{"):
        return _json_error(line)
    klog = _KLOG.match(line)
    if klog is None or klog[1] not in "EF" or klog[2] in _HARMLESS:
        return ""
    quoted = _QUOTED.match(klog[2])
    return _err(klog[2]) or (_unquoted(quoted[1]) if quoted else klog[2])


def _json_error(line: str) -> str:
    """The error in a line of klog's JSON format, in which only other lines have a verbosity `v`."""
    try:
        document = mapping(parse_json(line))
    except ValueError:
        return ""
    if "v" in document or document.get("msg") in _HARMLESS:
        return ""
    return " ".join(str(document.get("err") or document.get("msg") or "").split())


def _err(text: str) -> str:
    """The value of the key `err` in a structured message; empty without that key."""
    found = _ERR.search(text)
    if found is None:
        return ""
    return _unquoted(found[1]) if found[1] is not None else found[2]


def _joined(text: str) -> Iterator[str]:
    """Lines as the program wrote them: without CRI prefixes, parts joined."""
    part = ""
    for raw in text.splitlines():
        match = _CRI.match(raw)
        if match is None:
            continue  # the first line of a tail is usually incomplete
        part += match[2]
        if match[1] == "F":
            yield part
            part = ""
    if part:
        yield part


def _unquoted(text: str) -> str:
    """`text` without Go's escapes, on one line."""
    plain = _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), text)
    return " ".join(plain.split())


def _modified(path: Path) -> float:
    # With cri-dockerd the entry is a symbolic link; its target is what changes.
    return path.stat().st_mtime
