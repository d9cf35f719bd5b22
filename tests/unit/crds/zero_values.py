"""Objects in which one optional field has the zero value of its type, for each field of a kind.

Programs in Go write fields without omitempty as "", 0, false, [], {} or null if they are
unset. Parents of a field get the values that they require, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kube_scheduler_operator.base import names

REQUIRED: Mapping[str, Any] = {
    "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"],
    "conditions[].lastTransitionTime": "2026-01-01T00:00:00Z",
    "conditions[].status": "True",
    "conditions[].type": "Degraded",
    "count": 1,
    "assignment.pods": {},
    "hash": "abc",
    "image": "quay.example/sidecar:1",
    "key": "team",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "managedResources[].name": "example.com/gpu",
    "maxLimit": "65%",
    "minTLSVersion": "VersionTLS12",
    "name": "cpu_usage_avg_5m",
    "operator": "Exists",
    "outcome": "installed",
    "period": "3m",
    "policies": [{"name": "safe-overload"}],
    "policies[].name": "safe-overload",
    "priorities[].weight": 1,
    "running[].configHash": "abc",
    "running[].readyReplicas": 1,
    "schedulerName": "team-a",
    "sidecars[].name": "side",
    "spec.namespace": "team-a",
    "status": "True",
    "timeRange": "5m",
    "tlsSecurityProfile.type": "Custom",
    "type": "Degraded",
    "path": "/etc/ssl/certs",
    "url": "http://prometheus:9090",
    "volumes[].name": "data",
}
"""Values of required fields, by the longest end of their path that is here."""

_ZEROS: Mapping[str, Any] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {},
}  # fmt: skip

Object = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One optional field at its zero value."""

    path: str  # the field, such as `spec.agent.policies[].weight`
    zero: Any  # its value
    value: Object  # `spec` and `status` of the object
    schema: Mapping[str, Any]  # the field's schema

    @property
    def id(self) -> str:
        """The name of the test case."""
        return f"{self.path}={self.zero!r}"


def cases(root: Mapping[str, Any]) -> Iterator[Case]:
    """Every optional field below `spec` and `status` of a kind with the schema `root`."""
    for path, schema in _optional(root, ()):
        for zero in _zeros(schema):
            value = _with(root, path, zero, ())
            yield Case(_text(path), zero, value, schema)


def _zeros(schema: Mapping[str, Any]) -> list[Any]:
    if schema.get("format") == "date-time":  # metav1.Time writes null
        return [None]
    if schema.get("x-kubernetes-int-or-string"):
        return [0, None]
    return [_ZEROS[schema.get("type", "object")], None]


def _optional(
    schema: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    for name, child in schema.get("properties", {}).items():
        if not path and name not in ("spec", "status"):
            continue
        at = (*path, name)
        if name not in schema.get("required", ()) and at != ("status",):
            yield at, child
        yield from _optional(child, at)
    if "items" in schema:
        yield from _optional(schema["items"], (*path, "[]"))
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        yield from _optional(values, (*path, "{}"))


def _with(
    schema: Mapping[str, Any], path: tuple[str, ...], zero: Any, done: tuple[str, ...]
) -> Any:
    """A value for `schema` whose field at `path` is `zero`; `done` is the path so far."""
    if not path:
        return zero
    step, *rest = path
    below = (*done, step)
    if step == "[]":
        return [_with(schema["items"], tuple(rest), zero, below)]
    if step == "{}":
        return {"x": _with(schema["additionalProperties"], tuple(rest), zero, below)}
    value = {
        name: _sample((*done, name))
        for name in schema.get("required", ())
        if name != step and done != ()
    }
    value[step] = _with(schema["properties"][step], tuple(rest), zero, below)
    return value


def _sample(path: tuple[str, ...]) -> Any:
    whole = _text(path)
    ends = [end for end in REQUIRED if whole == end or whole.endswith(f".{end}")]
    if not ends:
        raise KeyError(f"zero_values.REQUIRED has no value for {whole}")
    return REQUIRED[max(ends, key=len)]


def _text(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[]", "[]").replace(".{}", "{}")


def adjust(name: str, value: Object, path: str = "") -> Object:
    """Add to `spec` what the rules of the kind ask for; without a path, return a minimal spec."""
    spec: Object = dict(value.get("spec") or {})
    if name == names.SECONDARYSCHEDULERS:
        spec.setdefault("namespace", "kube-scheduler-operator")
    if name == names.SCHEDULEREXTENDERS and not spec.get("agent"):
        spec["url"] = "https://10.0.0.7/scheduler"
        spec["verbs"] = {"prioritize": "p", "filter": "f"} | (spec.get("verbs") or {})
    if name == names.LOADPOLICIES:
        for section, kind in (("prometheus", "Prometheus"), ("kubeletSummary", "KubeletSummary")):
            if (spec.get("source") or {}).get(section) is not None:
                spec["source"] = {"type": kind, **spec["source"]}
    return {**value, "spec": spec} if path else spec


REFUSED: Mapping[str, frozenset[str]] = {
    names.LOADPOLICIES: frozenset({"spec.annotator.replicas"}),
    names.OPERATORSETTINGS: frozenset(),
    names.SCHEDULEREXTENDERS: frozenset(),
    names.SCHEDULERPROFILES: frozenset(),
    names.SECONDARYSCHEDULERS: frozenset({"spec.replicas"}),
}
"""Optional fields whose zero value the API server refuses; their descriptions say why.

An object that has required fields is refused without them; that is not listed.
"""
