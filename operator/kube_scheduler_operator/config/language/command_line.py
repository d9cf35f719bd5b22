"""The scheduler's command line: composing, rendering and parsing its flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ...base.go_values import integer
from ...base.platform import Platform
from .flags import BOOLEANS

CONFIG_PATH: Final = "/etc/kubernetes/static-pod-resources/configmaps/config/config.yaml"
"""In the static Pod and in the preflight, on every platform."""

DEFAULT_PORT: Final = 10259

BIND_ADDRESS: Final = "bind-address"
LOG_LEVEL: Final = "v"

FLAG_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
"""A flag's name without dashes. A value cannot be part of it."""

LOG_LEVELS: Final[Mapping[str, int]] = {"Normal": 2, "Debug": 4, "Trace": 6, "TraceAll": 10}
"""TraceAll is 10, at which the scheduler logs its plugins' scores per node."""

Flags = Mapping[str, Sequence[str]]
"""Flag name without dashes -> its values, one per occurrence on the command line."""

_ANY_ADDRESS: Final = frozenset({"", "0.0.0.0", "::"})
_FILES: Final = ("cert-dir",)
_LAST: Final = ("feature-gates", "v", "tls-cipher-suites", "tls-min-version")


def compose_arguments(
    platform: Platform,
    *,
    log_level: int,
    observed: Flags,
    bind_address: str = "",
    serving: Flags,
    overrides: Flags,
) -> dict[str, list[str]]:
    """Compose all flags of the scheduler, in the order of its command line.

    First the files, then the platform's defaults overridden by the observed flags and the bind
    address, feature gates, verbosity, TLS settings; last the overrides, by name. Each flag has one
    position: an override replaces it, and an override without values removes it.
    """
    kubeconfig = platform.scheduler_kubeconfig
    defaults = {name: [value] for name, value in platform.default_arguments}
    flags: dict[str, list[str]] = {
        "config": [CONFIG_PATH],
        **{name: values for name, values in defaults.items() if name in _FILES},
        "authentication-kubeconfig": [kubeconfig],
        "authorization-kubeconfig": [kubeconfig],
    }
    flags |= defaults
    flags |= {name: list(observed[name]) for name in sorted(observed) if name not in _LAST}
    if bind_address:
        flags[BIND_ADDRESS] = [bind_address]
    if any(observed.get("feature-gates", ())):
        flags["feature-gates"] = [",".join(observed["feature-gates"])]
    flags[LOG_LEVEL] = list(observed.get(LOG_LEVEL) or [str(log_level)])
    for name in ("tls-cert-file", "tls-private-key-file", "tls-cipher-suites", "tls-min-version"):
        values = serving.get(name) or observed.get(name)
        if values:
            flags[name] = list(values)
    for name in sorted(overrides):
        flags.pop(name, None)
        if overrides[name]:
            flags[name] = list(overrides[name])
    return flags


def render(flags: Flags) -> tuple[str, ...]:
    """Render flags as arguments: `--name=value`, `-v=2`; a flag is repeated for each value."""
    return tuple(
        f"{'-' if len(name) == 1 else '--'}{name}={value}"
        for name, values in flags.items()
        for value in values
    )


def parse(arguments: Iterable[str]) -> dict[str, list[str]]:
    """Parse a command line: `--name=value`, `--name value`, and `--name` for booleans.

    Other arguments, such as the program's name, are ignored.
    """
    flags: dict[str, list[str]] = {}
    pending: str | None = None
    for word in arguments:
        if pending is not None:
            flags.setdefault(pending, []).append(word)
            pending = None
        elif word.startswith("-") and word.strip("-"):
            name, equals, value = word.lstrip("-").partition("=")
            name = normalized_name(name)
            if equals:
                flags.setdefault(name, []).append(value)
            elif name in BOOLEANS:
                flags.setdefault(name, []).append("true")
            else:
                pending = name
    return flags


def normalized_name(name: str) -> str:
    """Return a flag's name as kube-scheduler compares it: `_` equals `-`."""
    return name.replace("_", "-")


def flag_text(value: Any) -> str | None:
    """Format a string, number or boolean of JSON as a flag's value; None for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value)
    return None


def probe_target(arguments: Sequence[str], platform: Platform) -> tuple[str, int]:
    """Return the host and port at which the kubelet can probe a scheduler with these arguments.

    A scheduler that listens on all addresses is probed at the platform's probe host. An invalid
    port counts as the default; the validation of flags reports it.
    """
    flags = parse(arguments)
    host = (flags.get(BIND_ADDRESS) or [""])[-1].strip()
    try:
        port = integer((flags.get("secure-port") or [str(DEFAULT_PORT)])[-1])
    except ValueError:
        port = DEFAULT_PORT
    return (platform.probe_host if host in _ANY_ADDRESS else host), port or DEFAULT_PORT
