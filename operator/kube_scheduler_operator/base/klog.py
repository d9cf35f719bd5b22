"""Structured logging in the formats of Kubernetes components, without secrets.

The text format is klog's: `I1121 01:20:17.128676    8293 file.py:569] "msg" key="v"`; the JSON
format is that of `--logging-format=json`: one object per line with `ts`, `v`, `msg` and `caller`.
Pass values in `kv(...)` instead of in the message, to make them searchable:

    log.info("Installed revision", extra=kv(node=node, revision=5))

API objects are logged as kind/namespace/name, never with their content. kopf formats whole objects
into its debug messages, where they cannot be summarized, so its loggers are limited to INFO.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from datetime import datetime
from textwrap import indent
from typing import Any, Final, TextIO

from .foreign_text import json_text, visible

TRACE: Final = 6
TRACE_ALL: Final = 3

# spec.operatorLogLevel -> (klog verbosity, level of Python's logging)
LEVELS: Final[Mapping[str, tuple[int, int]]] = {
    "Normal": (2, logging.INFO),
    "Debug": (4, logging.DEBUG),
    "Trace": (6, TRACE),
    "TraceAll": (8, TRACE_ALL),
}

# LOG_LEVEL of kube-safe-scheduler's agents -> level of Python's logging
SEVERITIES: Final[Mapping[str, int]] = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "ALERT": logging.CRITICAL,
}

_TRACEBACK: Final = "    "
"""The indentation of a traceback, whose messages could otherwise forge lines of a log."""

_KV_ATTRIBUTE: Final = "klog_kv"

# The lowest level of each library's logger. kopf.objects logs every event of every watched object
# at INFO; aiohttp.access logs every scrape and probe.
_LOWEST_LEVELS: Final[Mapping[str, int]] = {
    "kopf": logging.INFO,
    "kopf.objects": logging.WARNING,
    "aiohttp": logging.INFO,
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
    "urllib3": logging.INFO,
}


def kv(**values: object) -> dict[str, Any]:
    return {_KV_ATTRIBUTE: values}


def configure(
    level: str = "Normal", *, json_format: bool = False, stream: TextIO | None = None
) -> None:
    """Log to `stream`, by default standard error, in klog's text or JSON format.

    `level` is a key of LEVELS; any other value means Normal.
    """
    logging.addLevelName(TRACE, "TRACE")
    logging.addLevelName(TRACE_ALL, "TRACEALL")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JSONFormatter() if json_format else TextFormatter())
    handler.addFilter(summarize_objects)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(level)


def set_level(level: str) -> bool:
    """Change the level at run time; return whether it is a key of LEVELS or empty.

    Empty and unknown levels mean Normal.
    """
    _, threshold = LEVELS.get(level or "Normal", LEVELS["Normal"])
    set_threshold(threshold)
    return not level or level in LEVELS


def set_threshold(threshold: int) -> None:
    """Set the minimum level to log, as in Python's logging."""
    logging.getLogger().setLevel(threshold)
    for name, lowest in _LOWEST_LEVELS.items():
        logging.getLogger(name).setLevel(max(lowest, threshold))


def plain(record: logging.LogRecord) -> str:
    """Format the message, its values and the error on one line, for another process to log."""
    parts = [record.getMessage()]
    parts += [f"{key}={_quote(value)}" for key, value in _values(record).items()]
    if record.exc_info and record.exc_info[1]:
        parts.append(f"error={_quote(repr(record.exc_info[1]))}")
    return " ".join(parts)


class TextFormatter(logging.Formatter):
    """klog's text format: severity, date, time, process id, file and line, message, values.

    The indented traceback of an exception follows.
    """

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created)
        parts = [
            f"{_severity(record.levelno)}{time:%m%d %H:%M:%S.%f} {record.process or 0:>7} "
            f"{record.filename}:{record.lineno}] {_quote(record.getMessage())}"
        ]
        parts += [f"{key}={_quote(value)}" for key, value in _values(record).items()]
        line = " ".join(parts)
        if record.exc_info and record.exc_info[0]:
            line += "\n" + indent(visible(self.formatException(record.exc_info)), _TRACEBACK)
        return line


class JSONFormatter(logging.Formatter):
    """JSON of Kubernetes components: `ts` (ms since 1970), `v`, `msg`, `caller`, values."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:  # errors have no verbosity in klog either
            line["v"] = _verbosity(record.levelno)
        if record.levelno >= logging.WARNING:
            line["severity"] = record.levelname.lower()
        line.update((key, value) for key, value in _values(record).items() if key not in line)
        if record.exc_info and record.exc_info[0]:
            line["stacktrace"] = self.formatException(record.exc_info)
        return json_text(line, default=str)


def summarize_objects(record: logging.LogRecord) -> bool:
    """Replace API objects in the arguments of a log call with their identity; a logging filter."""
    if isinstance(record.args, Mapping):  # logging unpacks a single mapping, for %(name)s
        if "%(" in str(record.msg):
            record.args = {key: _summary(value) for key, value in record.args.items()}
        else:
            record.args = (_summary(record.args),)
    elif record.args:
        record.args = tuple(_summary(value) for value in record.args)
    values = getattr(record, _KV_ATTRIBUTE, None)
    if values:
        setattr(record, _KV_ATTRIBUTE, {key: _summary(value) for key, value in values.items()})
    return True


def _summary(value: object) -> object:
    """Return a scalar as it is, and a summary of any other value."""
    if isinstance(value, Mapping):
        metadata = value.get("metadata")
        if isinstance(metadata, Mapping):
            identity = (value.get("kind"), metadata.get("namespace"), metadata.get("name"))
            return "/".join(str(part) for part in identity if part)
        return f"<{len(value)} keys>"
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, list | tuple | set | frozenset):
        return [_summary(item) for item in value]
    return value


def _values(record: logging.LogRecord) -> dict[str, object]:
    values: dict[str, object] = dict(getattr(record, _KV_ATTRIBUTE, None) or {})
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        values.setdefault("err", str(error) or type(error).__name__)
    return values


def _quote(value: object) -> str:
    if value is None or isinstance(value, bool | int | float):
        return json_text(value)
    return json_text(value if isinstance(value, str | list) else str(value), default=str)


def _severity(level: int) -> str:
    if level >= logging.CRITICAL:
        return "F"
    if level >= logging.ERROR:
        return "E"
    return "W" if level >= logging.WARNING else "I"


def _verbosity(level: int) -> int:
    if level >= logging.INFO:
        return 0
    return min(v for v, threshold in LEVELS.values() if threshold <= level)
