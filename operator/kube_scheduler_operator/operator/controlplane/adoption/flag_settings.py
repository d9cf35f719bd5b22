"""Flags of an adopted scheduler that the operator sets in another way, or cannot keep.

All other flags are kept as they are (config/effective/control_plane/observe.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ....base.go_values import boolean
from ....base.platform import Platform
from ....config.language.flags import ELECTION_FLAGS
from .inventory import NotKept

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "contention-profiling": ("enableContentionProfiling",),
    "kube-api-burst": ("clientConnection", "burst"),
    "kube-api-content-type": ("clientConnection", "contentType"),
    "kube-api-qps": ("clientConnection", "qps"),
    "profiling": ("enableProfiling",),
}
"""Flags without an effect beside `--config` -> the field with the same effect."""

_TIMINGS: Final[Mapping[str, tuple[str, ...]]] = {
    flag: ("leaderElection", key) for key, flag in ELECTION_FLAGS.items()
}
"""Flags that win over the file -> the field."""

_KUBECONFIGS: Final = ("authentication-kubeconfig", "authorization-kubeconfig", "kubeconfig")

_NUMBERS: Final[Mapping[str, type[int] | type[float]]] = {
    "kube-api-burst": int,
    "kube-api-qps": float,
}
_DEFAULTS: Final[Mapping[str, Any]] = {
    "contention-profiling": False,
    "kube-api-burst": 100,
    "kube-api-content-type": "application/vnd.kubernetes.protobuf",
    "kube-api-qps": 50,
    "profiling": False,
}
"""Values of the operator's configuration: kube-scheduler's defaults, and its own for profiling."""


def configuration_of(flags: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The fields of KubeSchedulerConfiguration that have the effect of such flags."""
    configuration: dict[str, Any] = {}
    for name, path in _fields(flags).items():
        if not flags.get(name):
            continue
        value = _value(name, flags[name][-1])
        if value is None or value == _DEFAULTS.get(name):
            continue
        target = configuration
        for key in path[:-1]:
            target = target.setdefault(key, {})
        target[path[-1]] = value
    return configuration


def field_of(name: str, flags: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return _fields(flags).get(name, ())


def _fields(flags: Mapping[str, Sequence[str]]) -> Mapping[str, tuple[str, ...]]:
    return _TIMINGS if "config" in flags else {**_FIELDS, **_TIMINGS}


def flags_not_kept(flags: Mapping[str, Sequence[str]], platform: Platform) -> tuple[NotKept, ...]:
    lost = []
    for name in _KUBECONFIGS:
        if any(value != platform.scheduler_kubeconfig for value in flags.get(name, ())):
            message = (
                f"the operator's scheduler reads {platform.scheduler_kubeconfig}; move the "
                "kubeconfig there and change the flag"
            )
            lost.append(NotKept(f"flags.{name}", message))
    leases = (
        ("leader-elect-resource-lock", "leases"),
        ("leader-elect-resource-name", platform.operand_lease_name),
        ("leader-elect-resource-namespace", platform.operand_lease_namespace),
    )
    for name, own in leases:
        if any(value != own for value in flags.get(name, ())):
            message = (
                f"schedulers of the operator elect their leader with {own}, as those of other "
                "nodes do; remove the flag"
            )
            lost.append(NotKept(f"flags.{name}", message))
    return tuple(lost)


def _value(name: str, text: str) -> Any:
    """The flag's value as the field has it; None for one that kube-scheduler refuses."""
    with suppress(ValueError):
        if name in _NUMBERS:
            return _NUMBERS[name](text)
        if name in ("profiling", "contention-profiling"):
            return boolean(text)
        return text
    return None
