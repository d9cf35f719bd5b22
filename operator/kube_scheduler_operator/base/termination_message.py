"""The termination message of a scheduler: the last error in its container log.

The kubelet writes the log files in the CRI format: a time, a stream, P (part of a line) or F (its
end), and text. The relevant part of the text is klog's `"command failed" err="…"`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .json_text import parse_json

LENGTH: Final = 1000
"""Characters that are kept; the whole termination message of a container has 4096 bytes."""

_HARMLESS: Final = ("The manifest file is empty, ignoring.",)
"""Logged by kube-scheduler 1.36 as an error at every start."""

_TAIL: Final = 64 * 1024
_CRI: Final = re.compile(r"^\S+ (?:stdout|stderr) ([PF])(?::\S+)? ?(.*)$")
_KLOG: Final = re.compile(r"^[EF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [^\]]+\] ?(.*)$")
_ERR: Final = re.compile(r'\b(?:err|error)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')
_QUOTED: Final = re.compile(r'^"((?:[^"\\]|\\.)*)"')
_PLAIN: Final = re.compile(r"^(?:panic|fatal error|[Ee]rror): .*")


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


def read_termination_message(path: Path) -> str:
    """The last error in the log file `path`; empty if the file is empty or cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))  # words: allow tell - method
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return last_error(text)


def last_error(text: str) -> str:
    """The last error in `text`, the tail of a CRI log; without one, its last line."""
    lines = [line for line in map(str.strip, _joined(text)) if line]
    for line in reversed(lines):
        message = _error(line)
        if message:
            return message[:LENGTH]
    return lines[-1][:LENGTH] if lines else ""


def _error(line: str) -> str:
    """The error in `line`; empty if it has none."""
    if _PLAIN.match(line):
        return line
    if line.startswith("{"):
        try:
            document = parse_json(line)
        except ValueError:
            return ""
        return str(document.get("err") or document.get("error") or "")
    klog = _KLOG.match(line)
    if klog is None or klog[1] in _HARMLESS:
        return ""
    rest = klog[1]
    err = _ERR.search(rest)
    if err is not None:
        return _unquoted(err[1]) if err[1] is not None else err[2]
    quoted = _QUOTED.match(rest)
    return _unquoted(quoted[1]) if quoted else rest


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
    replaced = re.sub(r"\\(.)", lambda m: {"n": " ", "t": " ", "r": " "}.get(m[1], m[1]), text)
    return " ".join(replaced.split())


def _modified(path: Path) -> float:
    # With cri-dockerd the entry is a symbolic link; its target is what changes.
    return path.stat().st_mtime
