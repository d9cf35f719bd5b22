"""Go's and Kubernetes' syntax of values: durations, booleans, names, labels, null."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM: Final = r"(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION: Final = re.compile(rf"[+-]?(?:0|(?:{_TERM})+)", re.ASCII)
_ONE_TERM: Final = re.compile(r"(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_LONGEST: Final = 2**63
"""Nanoseconds: Go's longest duration, about 292 years."""
_MOST_DIGITS: Final = 19  # of a 64-bit integer
_INTEGER: Final = re.compile(r"[+-]?\d+", re.ASCII)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_DNS: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII
)


def nanoseconds(text: str) -> int:
    """Parse a Go duration in nanoseconds, with the rounding of Go's time.ParseDuration.

    Raises:
        ValueError: not a duration, or longer than Go's maximum.
    """
    if _DURATION.fullmatch(text) is None:
        raise ValueError(f'"{text}" is not a duration such as 15s or 1m30s')
    total = 0
    for whole, fraction, unit in _ONE_TERM.findall(text):
        if len(whole.lstrip("0")) > _MOST_DIGITS:
            raise ValueError(f'"{text}" is longer than 292 years')
        size = _UNITS[unit]
        total += int(whole.lstrip("0") or "0") * size
        digits, scale = 0, 1.0
        for digit in fraction:
            if digits * 10 + int(digit) > _LONGEST:
                break  # Go keeps the digits that fit into 63 bits
            digits, scale = digits * 10 + int(digit), scale * 10
        total += int(float(digits) * (float(size) / scale))
    negative = text.startswith("-")
    if total >= _LONGEST + negative:
        raise ValueError(f'"{text}" is longer than 292 years')
    return -total if negative else total


def seconds(text: str) -> float:
    """Parse a Go duration in seconds: `1h30m`, `1.5s`, `300ms`, `0`.

    Raises:
        ValueError: not a duration, or longer than Go's maximum.
    """
    return nanoseconds(text) / 1e9


def duration_text(duration: int) -> str:
    """Format nanoseconds as Go prints a duration: `10m0s`, `1.5s`, `300ms`, `0s`."""
    rest, sign = abs(duration), "-" if duration < 0 else ""
    if rest == 0:
        return "0s"
    for unit in ("ns", "µs", "ms"):
        if rest < _UNITS[unit] * 1000:
            return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    hours, rest = divmod(rest, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    before = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{before}{_decimal(rest, _UNITS['s'])}s"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0") if rest else str(whole)


def boolean(text: str) -> bool:
    """Parse a boolean flag's value.

    Raises:
        ValueError: neither true nor false.
    """
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f'"{text}" is neither true nor false')


def integer(text: str) -> int:
    """Parse a decimal integer.

    Raises:
        ValueError: not an integer, or longer than one of 64 bits.
    """
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f'"{text}" is not an integer')
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f'"{text}" is out of range')
    return -int(digits) if text.startswith("-") else int(digits)


def is_label_value(text: str) -> bool:
    return text == "" or (len(text) <= 63 and _LABEL.fullmatch(text) is not None)


def is_qualified_name(text: str) -> bool:
    """Return whether the text is a valid label key or resource name: `[dns.prefix/]name`."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and _DNS.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _LABEL.fullmatch(name) is not None


def is_extended_resource(text: str) -> bool:
    """Return whether the text names an extended resource, such as `example.com/gpu`."""
    native = "/" not in text or "kubernetes.io/" in text
    if native or text.startswith("requests."):
        return False
    # The name must stay valid with the prefix of a ResourceQuota.
    return is_qualified_name(text) and is_qualified_name(f"requests.{text}")


OBJECT_LISTS: Final = frozenset(
    {
        "defaultConstraints", "disabled", "enabled", "extenders", "managedResources",
        "matchExpressions", "matchFields", "nodeSelectorTerms", "pluginConfig",
        "preferredDuringSchedulingIgnoredDuringExecution", "profiles", "resources", "shape",
    }
)  # fmt: skip
"""The lists of a KubeSchedulerConfiguration whose entries are objects."""


def without_nulls(value: Any, key: str = "") -> Any:
    """Copy a value without nulls at any depth, because Go and merges ignore them.

    `key` is the field of the value. As in Go, a null in a list of objects becomes an empty object.
    """
    if isinstance(value, Mapping):
        return {name: without_nulls(item, name) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        empty = key in OBJECT_LISTS
        return [{} if item is None and empty else without_nulls(item) for item in value]
    return value
