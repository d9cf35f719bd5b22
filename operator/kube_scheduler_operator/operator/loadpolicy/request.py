"""The spec of a LoadPolicy, parsed and defaulted into one immutable value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from ...base.findings import Problem
from ...base.objects import Object, mapping
from ...base.spec_limits import limit_problems
from ...base.templates import canonical_json
from ...config.effective.permitted_load_policies import refused_settings
from ...scheduling.load.policy import LoadPolicy, LoadPolicyError
from ...scheduling.load.policy_files import read_spec
from ..model.workloads import CONTROL_PLANE_TOLERATIONS

REPLICAS: Final = 2
"""One leads, the other is on standby: losing a node interrupts annotation for seconds."""

ANNOTATOR_RESOURCES: Final[Mapping[str, Any]] = {
    "requests": {"cpu": "20m", "memory": "80Mi"},
    "limits": {"memory": "768Mi"},
}
"""Seven times its use for 5,000 nodes: a response of a source of metrics has up to 32 MiB."""

METRICS_RESOURCES: Final[Mapping[str, Any]] = {
    "requests": {"cpu": "2m", "memory": "24Mi"},
    "limits": {"memory": "64Mi"},
}

EVERYWHERE: Final[Sequence[Mapping[str, Any]]] = ({"operator": "Exists"},)
"""Load is measured on all nodes, whatever their taints."""


@dataclass(frozen=True, slots=True)
class Workload:
    replicas: int = REPLICAS  # unused for a DaemonSet
    log_level: str = "Normal"  # a logLevel of KubeScheduler
    resources: Mapping[str, Any] = field(default_factory=dict)
    node_selector: Mapping[str, Any] = field(default_factory=dict)
    tolerations: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Exporter(Workload):
    arguments: tuple[str, ...] = ()  # in addition to the operator's
    mount_host: bool = False  # whether the node's /proc and /sys are mounted below /host


@dataclass(frozen=True, slots=True)
class LoadPolicyRequest:
    policy: LoadPolicy  # rules and source of load
    annotator: Workload
    exporter: Exporter
    # volume sources with the bearer token for Prometheus and its CA certificate
    credentials: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    request: LoadPolicyRequest | None  # None if the spec is invalid
    problems: tuple[Problem, ...] = ()  # errors with their path in the object


def read(spec: Mapping[str, Any] | None) -> ParsedSpec:
    """Parse the spec of a LoadPolicy; every reconcile needs it, so results are cached."""
    problems = limit_problems(spec or {})
    if problems:
        return ParsedSpec(None, problems)
    return _read(canonical_json(spec or {}))


@lru_cache(maxsize=8)
def _read(text: str) -> ParsedSpec:
    spec: dict[str, Any] = json.loads(text)
    try:
        policy = read_spec(spec).policy
    except LoadPolicyError as error:
        return ParsedSpec(None, error.problems)
    source = mapping(spec.get("source"))
    return ParsedSpec(
        LoadPolicyRequest(
            policy,
            _annotator(mapping(spec.get("annotator"))),
            _exporter(mapping(source.get("nodeMetrics"))),
            tuple(_credentials(mapping(source.get("prometheus")))),
        )
    )


def _annotator(fields: Mapping[str, Any]) -> Workload:
    return Workload(
        replicas=int(fields.get("replicas", REPLICAS)),
        log_level=str(fields.get("logLevel") or "Normal"),
        resources=mapping(fields.get("resources") or ANNOTATOR_RESOURCES),
        node_selector=mapping(fields.get("nodeSelector")),
        tolerations=tuple(fields.get("tolerations", CONTROL_PLANE_TOLERATIONS)),
    )


def _exporter(fields: Mapping[str, Any]) -> Exporter:
    return Exporter(
        resources=mapping(fields.get("resources") or METRICS_RESOURCES),
        node_selector=mapping(fields.get("nodeSelector")),
        tolerations=tuple(fields.get("tolerations", EVERYWHERE)),
        arguments=tuple(map(str, fields.get("args") or ())),
        mount_host=bool(fields.get("mountHost", False)),
    )


def _credentials(prometheus: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for kind, field_name, path in (
        ("secret", "tokenSecret", "token"),
        ("configMap", "caConfigMap", "ca.crt"),
    ):
        reference = mapping(prometheus.get(field_name))
        if name := reference.get("name"):
            item = {"key": str(reference.get("key") or path), "path": path}
            yield {kind: {"name": str(name), "items": [item]}}


@dataclass(frozen=True, slots=True)
class EffectiveRequest:
    request: LoadPolicyRequest | None  # None if no version is valid
    spec: Mapping[str, Any]  # the spec of that version
    problems: Sequence[Problem] = ()  # errors of the current spec
    uses_last_accepted: bool = False  # instead of the current spec
    is_held: bool = False  # whether the current spec is valid, and waits


def effective_request(
    obj: Object, secrets: Mapping[str, Object], namespace: str, *, held: bool = False
) -> EffectiveRequest:
    """Choose the current spec if it is valid and permitted, else the last accepted version.

    `secrets` has the Secrets of `namespace` that permit the use of their token; with `held`, the
    current spec is not used although it is valid.
    """
    spec = mapping(obj.get("spec"))
    accepted = mapping(obj.get("status")).get("accepted")
    if held:
        earlier = read(accepted).request if isinstance(accepted, Mapping) else None
        return EffectiveRequest(earlier, mapping(accepted), is_held=True)
    current = read(spec)
    if current.request is not None:
        refused = tuple(refused_settings(spec, secrets, namespace))
        if not refused:
            return EffectiveRequest(current.request, spec)
        current = ParsedSpec(None, refused)
    if isinstance(accepted, Mapping):  # an empty spec is valid as well
        earlier = read(accepted).request
        if earlier is not None:
            return EffectiveRequest(earlier, accepted, current.problems, uses_last_accepted=True)
    return EffectiveRequest(None, spec, current.problems)
