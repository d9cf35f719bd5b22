"""ResourceQuotas: how many new pods they admit, as the API server counts them.

Source: pkg/quota/v1/evaluator/core/pods.go in Kubernetes, and the admission plugin of apiserver.
Unlike the API server, which stops at the first quota, all quotas and resources are named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..base.objects import mapping
from ..base.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, amount, amounts
from .constraint import containers, quantity_text
from .kinds import PODS, QUOTAS, Object
from .node_rules import PREFERRED, REQUIRED
from .pod_amounts import pod_amounts
from .world import Key, World

_LIMITED: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""Resources whose limits count as well."""
_DEMANDED: Final = (CPU, MEMORY)
"""Resources that every container has to request, or limit, if a quota has them."""
_REQUESTS, _LIMITS = "requests.", "limits."
_REFUSAL: Final = re.compile(r"exceeded quota: \S+, requested: (\S+), used: (\S+), limited: (\S+)")
"""The API server's message, as `_exceeded` writes it."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """How many of some equal pods all quotas admit."""

    count: int
    reasons: tuple[str, ...]  # why not more; in the words of the API server


@dataclass(frozen=True, slots=True)
class UsedUp:
    """An entry of a quota of which nothing is left, whatever a pod requests."""

    quota: str  # its name
    entry: str
    used: str
    hard: str


def used_up(world: World, namespace: str) -> list[UsedUp]:
    """Return what is used up of quotas of a namespace, except of those with scopes."""
    found = []
    for (where, name), stored in sorted(world.objects[QUOTAS].items()):
        quota = stored.object()
        spec, used = mapping(quota.get("spec")), mapping(mapping(quota.get("status")).get("used"))
        if where != namespace or spec.get("scopes") or spec.get("scopeSelector"):
            continue
        for entry, hard in sorted(_hard(quota).items()):
            if entry in used and _amount(entry, str(used[entry])) >= _amount(entry, hard):
                found.append(UsedUp(name, entry, str(used[entry]), hard))
    return found


def makes_room(spec: Mapping[str, Any], refusal: str) -> bool:
    """Return whether the quota that a refusal names admits the pod once one with `spec` ended."""
    match = _REFUSAL.search(refusal)
    if match is None:
        return False
    requested, used, limited = (
        dict(part.split("=", 1) for part in text.split(",") if "=" in part)
        for text in match.groups()
    )
    freed = _usage(spec)
    try:
        return all(
            _amount(entry, used[entry]) - freed.get(entry, 0.0) + _amount(entry, value)
            <= _amount(entry, limited[entry])
            for entry, value in requested.items()
        )
    except (KeyError, ValueError):  # the message may be that of anything
        return False


class Quotas:
    """The quotas of a world, which admitted pods use up."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._used: dict[Key, dict[str, float]] = {}

    def admit(self, pod: Object, count: int) -> Admitted:
        """Admit as many of `count` equal pods as all quotas of their namespace allow."""
        spec, usage = pod["spec"], _usage(pod["spec"])
        matching = [
            (key, hard, self._used_of(key, quota, hard))
            for key, quota in self._of(pod["metadata"]["namespace"])
            if (hard := _hard(quota)) and _in_scope(quota, spec)
        ]
        reasons = [
            f"failed quota: {name}: must specify {missing}"
            for (_, name), hard, _ in matching
            if (missing := _missing(hard, spec))
        ]
        admitted = 0 if reasons else count
        for (_, name), hard, used in matching:
            fitting = min((_fitting(key, hard, used, usage) for key in _counted(hard, usage)),
                          default=count)  # fmt: skip
            if fitting < count:
                reasons.append(_exceeded(name, hard, used, usage, fitting))
                admitted = min(admitted, fitting)
        for _, hard, used in matching:
            for key in _counted(hard, usage):
                used[key] = used.get(key, 0.0) + admitted * usage[key]
        return Admitted(admitted, tuple(reasons))

    def _of(self, namespace: str) -> Iterator[tuple[Key, Object]]:
        for key, entry in sorted(self._world.objects[QUOTAS].items()):
            if key[0] == namespace:
                yield key, entry.object()

    def _used_of(self, key: Key, quota: Object, hard: Mapping[str, str]) -> dict[str, float]:
        """Return what is used of a quota; without a status, what the pods of the world use."""
        if key not in self._used:
            status = mapping(quota.get("status"))
            if status.get("used"):
                used = mapping(status["used"])
                self._used[key] = {name: _amount(name, str(value)) for name, value in used.items()}
            else:
                self._used[key] = self._counted(quota, hard)
        return self._used[key]

    def _counted(self, quota: Object, hard: Mapping[str, str]) -> dict[str, float]:
        total = dict.fromkeys(hard, 0.0)
        for (namespace, _), entry in self._world.objects[PODS].items():
            if namespace != quota["metadata"]["namespace"]:
                continue
            spec = entry.object()["spec"]
            if _in_scope(quota, spec):
                for key, value in _usage(spec).items():
                    if key in total:
                        total[key] += value
        return total


def _hard(quota: Mapping[str, Any]) -> dict[str, str]:
    """Return the entries of a quota that are about pods."""
    hard = mapping(mapping(quota.get("status")).get("hard")) or mapping(
        mapping(quota.get("spec")).get("hard")
    )
    return {str(name): str(value) for name, value in hard.items() if _is_of_pods(str(name))}


def _is_of_pods(key: str) -> bool:
    resource = _resource(key)
    if key in ("pods", "count/pods") or resource in _LIMITED:
        return True
    return resource.startswith("hugepages-") or (key.startswith(_REQUESTS) and "/" in resource)


def _resource(key: str) -> str:
    """Return the resource that an entry of a quota counts."""
    return key.removeprefix(_REQUESTS).removeprefix(_LIMITS)


def _amount(key: str, value: str) -> float:
    return amount(_resource(key), value)


def _usage(spec: Mapping[str, Any]) -> dict[str, float]:
    """Return what one pod uses of each entry that a quota may have."""
    usage = {"pods": 1.0, "count/pods": 1.0}
    for name, value in pod_amounts(spec, "requests", overhead=True).items():
        if name in _LIMITED or name.startswith("hugepages-"):
            usage |= {name: value, f"{_REQUESTS}{name}": value}
        elif "/" in name:
            usage[f"{_REQUESTS}{name}"] = value
    for name, value in pod_amounts(spec, "limits", overhead=True).items():
        if name in _LIMITED:
            usage[f"{_LIMITS}{name}"] = value
    return usage


def _missing(hard: Mapping[str, str], spec: Mapping[str, Any]) -> str:
    """Return what containers have to specify: `limits.cpu for: a,b; memory for: a`."""
    if any(mapping(mapping(spec.get("resources")).get(key)) for key in ("requests", "limits")):
        return ""
    lacking = []
    for key in sorted(hard):
        if _resource(key) not in _DEMANDED:
            continue
        field = "limits" if key.startswith(_LIMITS) else "requests"
        names = [
            str(container.get("name"))
            for container in containers(spec)
            if _resource(key) not in mapping(mapping(container.get("resources")).get(field))
        ]
        if names:
            lacking.append(f"{key} for: {','.join(sorted(names))}")
    return "; ".join(lacking)


def _counted(hard: Mapping[str, str], usage: Mapping[str, float]) -> list[str]:
    return sorted(key for key in hard if usage.get(key))


def _fitting(
    key: str, hard: Mapping[str, str], used: Mapping[str, float], usage: Mapping[str, float]
) -> int:
    left = _amount(key, hard[key]) - used.get(key, 0.0)
    return max(math.floor(left / usage[key]), 0)


def _exceeded(
    name: str,
    hard: Mapping[str, str],
    used: Mapping[str, float],
    usage: Mapping[str, float],
    fitting: int,
) -> str:
    """Describe the first pod that a quota refuses, after `fitting` others."""
    keys = [
        key for key in _counted(hard, usage) if _fitting(key, hard, used, usage) <= fitting
    ]  # fmt: skip
    shown = {key: quantity_text(_resource(key), usage[key]) for key in keys}
    before = {
        key: quantity_text(_resource(key), used.get(key, 0.0) + fitting * usage[key])
        for key in keys
    }
    return (
        f"exceeded quota: {name}, requested: {_pairs(keys, shown)}, used: {_pairs(keys, before)}, "
        f"limited: {_pairs(keys, hard)}"
    )


def _pairs(keys: Sequence[str], values: Mapping[str, str]) -> str:
    return ",".join(f"{key}={values[key]}" for key in keys)


# --- scopes ---------------------------------------------------------------------------------------


def _in_scope(quota: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    own = mapping(quota.get("spec"))
    selectors = [{"scopeName": scope, "operator": "Exists"} for scope in own.get("scopes") or ()]
    selectors += mapping(own.get("scopeSelector")).get("matchExpressions") or ()
    return all(_matches(selector, spec) for selector in selectors)


def _matches(selector: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    scope = selector.get("scopeName")
    if scope == "PriorityClass":
        return _has_class(selector, str(spec.get("priorityClassName") or ""))
    if scope in ("Terminating", "NotTerminating"):
        return (spec.get("activeDeadlineSeconds") is not None) is (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return _is_best_effort(spec) is (scope == "BestEffort")
    return scope == "CrossNamespacePodAffinity" and any(_cross_namespace_terms(spec))


def _has_class(selector: Mapping[str, Any], name: str) -> bool:
    values = [str(value) for value in selector.get("values") or ()]
    return {
        "Exists": bool(name),
        "DoesNotExist": not name,
        "In": bool(name) and name in values,
        "NotIn": name not in values,
    }.get(str(selector.get("operator")), False)


def _is_best_effort(spec: Mapping[str, Any]) -> bool:
    return not any(
        amounts(mapping(holder.get("resources")).get(field)).get(name)
        for holder in (*containers(spec), spec)
        for field in ("requests", "limits")
        for name in _DEMANDED
    )


def _cross_namespace_terms(spec: Mapping[str, Any]) -> Iterator[bool]:
    affinity = mapping(spec.get("affinity"))
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = mapping(affinity.get(kind))
        terms = list(rules.get(REQUIRED) or ())
        preferred = rules.get(PREFERRED) or ()
        terms += [mapping(weighted.get("podAffinityTerm")) for weighted in preferred]
        for term in terms:
            yield bool(term.get("namespaces")) or term.get("namespaceSelector") is not None
