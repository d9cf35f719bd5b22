"""Scalars as Go reads them: durations, booleans, qualified names, label values."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "m": 60,
    "h": 3600,
}
_TERM: Final = r"(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION: Final = re.compile(rf"[+-]?(?:0|(?:{_TERM})+)", re.ASCII)
_ONE_TERM: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?\d+", re.ASCII)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_DNS: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII
)


def seconds(text: str) -> float:
    """A Go duration in seconds: `1h30m`, `1.5s`, `300ms`, `0`.

    Raises:
        ValueError: it is none.
    """
    if _DURATION.fullmatch(text) is None:
        raise ValueError(f'"{text}" is not a duration such as 15s or 1m30s')
    total = sum(float(number) * _UNITS[unit] for number, unit in _ONE_TERM.findall(text))
    return -total if text.startswith("-") else total


def boolean(text: str) -> bool:
    """A boolean flag's value.

    Raises:
        ValueError: it is none.
    """
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f'"{text}" is neither true nor false')


def integer(text: str) -> int:
    """A decimal integer.

    Raises:
        ValueError: it is none.
    """
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f'"{text}" is not an integer')
    return int(text)


def is_label_value(text: str) -> bool:
    """True for what a label may have as its value."""
    return text == "" or (len(text) <= 63 and _LABEL.fullmatch(text) is not None)


def is_qualified_name(text: str) -> bool:
    """True for a label's key or a resource's name: a name, with or without `dns.prefix/`."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and _DNS.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _LABEL.fullmatch(name) is not None


def is_extended_resource(text: str) -> bool:
    """True for a resource that Kubernetes itself does not know, such as `example.com/gpu`."""
    native = "/" not in text or "kubernetes.io/" in text
    if native or text.startswith("requests."):
        return False
    # Such a name must still be one when a quota puts its own prefix before it.
    return is_qualified_name(text) and is_qualified_name(f"requests.{text}")
