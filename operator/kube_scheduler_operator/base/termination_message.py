"""The error with which a scheduler ended, from its container log or its termination message.

The kubelet writes log files in the CRI format: a time, a stream, P (part of a line) or F (its end),
and text. A termination message is the end of such a log, without these prefixes. The relevant part
of the text is klog's `"command failed" err="…"`.
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
"""Characters of an error; a termination message has up to 4096 bytes."""

_HARMLESS: Final = ("The manifest file is empty, ignoring.",)
"""Logged by kube-scheduler 1.36 as an error at every start."""

_TAIL: Final = 64 * 1024  # bytes

_CRI: Final = re.compile(r"^\S+ (?:stdout|stderr) ([PF])(?::\S+)? ?(.*)$")
_KLOG: Final = re.compile(r"^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [^\]]+\] ?(.*)$")
_ERR: Final = re.compile(r'\b(?:err|error)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')
_QUOTED: Final = re.compile(r'^"((?:[^"\\]|\\.)*)"')
_PLAIN: Final = re.compile(r"^(?:panic|fatal error|[Ee]rror): .*")
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "; ", "t": " ", "r": " "}
_FLAG: Final = re.compile(r'(?:\]|"msg":") ?FLAG: --')
"""A flag and its value: kube-scheduler first logs all of them."""


@dataclass(frozen=True, slots=True)
class Log:
    """The log of one run of a container: the kubelet starts a new file at every (re)start."""

    path: Path
    modified: float


def logs(pod_log_dir: Path, prefix: str, container: str) -> list[Log]:
    """Find the logs of `container` in directories that start with `prefix`, oldest first."""
    files = []
    for directory in directories(pod_log_dir, prefix):
        try:
            entries = list(os.scandir(directory / container))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            if not entry.name.endswith(".log"):
                continue
            try:
                # With cri-dockerd the entry is a symbolic link; its target is what changes.
                files.append(Log(Path(entry.path), entry.stat().st_mtime))
            except FileNotFoundError:
                continue
    return sorted(files, key=lambda log: (log.modified, log.path.name))


def directories(pod_log_dir: Path, prefix: str) -> list[Path]:
    """Find the log directories of pods, past and present, whose name starts with `prefix`."""
    try:
        return [path for path in pod_log_dir.iterdir() if path.name.startswith(prefix)]
    except FileNotFoundError:
        return []


def read_tail(path: Path) -> tuple[str, ...]:
    """Read the lines at the end of a log file; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))  # words: allow tell - method
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(_joined(text))


def last_error(lines: Sequence[str]) -> str:
    """Find the last error in the last lines of a log; empty if they contain none.

    Errors and fatal errors of klog, panics, and errors of flags count; warnings do not.
    """
    for line in reversed(lines):
        if message := _error(line.strip()):
            return foreign(message, LENGTH)
    # A termination message begins anywhere, so its first line may be the end of an error.
    first = lines[0].strip() if lines else ""
    return "" if _begins(first) else foreign(_err(first), LENGTH)


def _begins(line: str) -> bool:
    """Whether a line has the beginning of a record of klog."""
    return _KLOG.match(line) is not None or line.startswith("{")


def last_line(lines: Sequence[str]) -> str:
    """Find the last line of a log that does not show a flag; empty if every line does."""
    stripped = [line.strip() for line in lines]
    # A termination message begins anywhere: what comes before a flag is the end of another one.
    if len(stripped) > 1 and _FLAG.search(stripped[1]) and not _begins(stripped[0]):
        del stripped[0]
    last = next((line for line in reversed(stripped) if line and not _FLAG.search(line)), "")
    return foreign(last, LENGTH)


def message_error(message: str) -> str:
    """Find the last error in a termination message or else its last line; both may be empty."""
    lines = message.splitlines()
    return last_error(lines) or last_line(lines)


def _error(line: str) -> str:
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
    """Read an error in klog's JSON format; only lines of other severities have a verbosity `v`."""
    try:
        document = mapping(parse_json(line))
    except ValueError:
        return ""
    if "v" in document or document.get("msg") in _HARMLESS:
        return ""
    return " ".join(str(document.get("err") or document.get("msg") or "").split())


def _err(text: str) -> str:
    """Read the value of the key `err` in a structured message; empty without that key."""
    match = _ERR.search(text)
    if match is None:
        return ""
    return _unquoted(match[1]) if match[1] is not None else match[2]


def _joined(text: str) -> Iterator[str]:
    """Restore the lines that the program wrote: without CRI prefixes, parts joined."""
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
    """Remove Go's escapes and line breaks."""
    plain = _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)
    return " ".join(plain.split())
