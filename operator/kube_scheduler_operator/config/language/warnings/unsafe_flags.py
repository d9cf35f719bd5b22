"""Flags that decide, instead of the cluster, whom a scheduler trusts and who sees its state.

kube-scheduler accepts them on its command line. In an object of the API they would give its author
the credentials or the endpoints of a scheduler, so they are rejected there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ....base.findings import Problem, listing
from ....base.go_values import boolean

UNSAFE_ARGUMENT: Final = "UnsafeArgument"

PUBLIC_PATHS: Final = ("/healthz", "/livez", "/metrics", "/metrics/resources", "/readyz")
"""Paths that may be served without authorization; others expose configuration, memory and code."""

ALWAYS_ALLOWED: Final = "authorization-always-allow-paths"

TRUSTING: Final[Mapping[str, str]] = dict.fromkeys(
    (
        "authentication-skip-lookup", "client-ca-file", "requestheader-allowed-names",
        "requestheader-client-ca-file", "requestheader-extra-headers-prefix",
        "requestheader-group-headers", "requestheader-uid-headers",
        "requestheader-username-headers",
    ),
    "the cluster decides whom the scheduler trusts",
)  # fmt: skip
"""Flag that objects must not set -> the reason."""

KUBECONFIGS: Final = ("authentication-kubeconfig", "authorization-kubeconfig")

MASTER: Final = "master"
_LOCAL: Final = re.compile(r"https://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?/?")
"""The node's own API server."""

_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")


def unsafe_flags(flags: Mapping[str, Sequence[str]], kubeconfig: str = "") -> Iterator[Problem]:
    """Yield the problems of users' flags (name without dashes -> values); a path is the name.

    `kubeconfig` is the only file that the flags in KUBECONFIGS may name; if it is empty, they are
    reported elsewhere.
    """
    for name, values in flags.items():
        if name in TRUSTING and any(not _is_off(name, value) for value in values):
            yield _problem(name, f"this flag cannot be set here: {TRUSTING[name]}; remove it")
        for value in values if name == MASTER else ():
            if not _LOCAL.fullmatch(value):
                message = "the scheduler would send its credentials to this address; remove it, or "
                yield _problem(name, f"{message}use https://localhost:PORT")
        if kubeconfig and name in KUBECONFIGS and any(value != kubeconfig for value in values):
            yield _problem(name, f"this must stay {kubeconfig}: the Pod has no other; remove it")
        for path in _paths(values) if name == ALWAYS_ALLOWED else ():
            if path not in PUBLIC_PATHS:
                message = (
                    f'"{path}" would be served without authorization; use {listing(PUBLIC_PATHS)}'
                )
                yield _problem(name, message)
        if any(_CONTROL.search(value) for value in values):
            yield _problem(name, "the value has a line break or control character; remove it")


def _paths(values: Sequence[str]) -> Iterator[str]:
    for value in values:
        yield from filter(None, value.split(","))


def _is_off(name: str, value: str) -> bool:
    if name != "authentication-skip-lookup":
        return False
    try:
        return not boolean(value)
    except ValueError:
        return True  # reported elsewhere


def _problem(name: str, message: str) -> Problem:
    return Problem(UNSAFE_ARGUMENT, (name,), message)
