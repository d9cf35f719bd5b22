"""What a LoadPolicy asks for, with its defaults, as one immutable value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from ..base.findings import Problem
from ..base.objects import mapping
from ..load.policy import LoadPolicy, LoadPolicyError
from ..load.policy_files import read_spec
from ..manifests.pods import canonical_json

REPLICAS: Final = 2
"""One works, the other waits for its Lease: the loss of a node costs seconds."""

ANNOTATOR_RESOURCES: Final[Mapping[str, Any]] = {"requests": {"cpu": "20m", "memory": "80Mi"}}
METRICS_RESOURCES: Final[Mapping[str, Any]] = {
    "requests": {"cpu": "2m", "memory": "24Mi"},
    "limits": {"memory": "64Mi"},
}

EVERYWHERE: Final[Sequence[Mapping[str, Any]]] = ({"operator": "Exists"},)
"""Load is measured on all nodes, whatever keeps pods away from them."""

CONTROL_PLANE: Final[Sequence[Mapping[str, Any]]] = tuple(
    {"key": f"node-role.kubernetes.io/{role}", "operator": "Exists", "effect": "NoSchedule"}
    for role in ("control-plane", "master")
)


@dataclass(frozen=True, slots=True)
class Workload:
    """How pods are run.

    Attributes:
        replicas: how many; of no meaning for a DaemonSet.
        log_level: as KubeScheduler has it.
        resources: of the container.
        node_selector: of the pods, and so the next.
        tolerations: of the pods.
    """

    replicas: int = REPLICAS
    log_level: str = "Normal"
    resources: Mapping[str, Any] = field(default_factory=dict)
    node_selector: Mapping[str, Any] = field(default_factory=dict)
    tolerations: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Exporter(Workload):
    """How node-metrics is run.

    Attributes:
        arguments: further ones.
        mount_host: the node's /proc and /sys are below /host.
    """

    arguments: tuple[str, ...] = ()
    mount_host: bool = False


@dataclass(frozen=True, slots=True)
class Credential:
    """What the annotator shows, or whom it trusts.

    Attributes:
        name: of the Secret or ConfigMap.
        key: in it.
    """

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Request:
    """A LoadPolicy as read.

    Attributes:
        policy: what it says of load.
        annotator: how that is run.
        exporter: how that is run.
        token: Prometheus: what to show.
        ca: Prometheus: whom to trust.
    """

    policy: LoadPolicy
    annotator: Workload
    exporter: Exporter
    token: Credential | None = None
    ca: Credential | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """What reading came to: a request, or problems, and notes in either case.

    Attributes:
        request: None if something is wrong.
        problems: what, with its path from the object's top.
    """

    request: Request | None
    problems: tuple[Problem, ...] = ()


def read(spec: Mapping[str, Any] | None) -> Read:
    """Read the spec of a LoadPolicy; it is asked for in every pass, and read once."""
    return _read(canonical_json(spec or {}))


@lru_cache(maxsize=8)
def _read(text: str) -> Read:
    spec: dict[str, Any] = json.loads(text)
    try:
        policy = read_spec(spec).policy
    except LoadPolicyError as error:
        return Read(None, error.problems)
    source = mapping(spec.get("source"))
    prometheus = mapping(source.get("prometheus"))
    return Read(
        Request(
            policy,
            _annotator(mapping(spec.get("annotator"))),
            _exporter(mapping(source.get("nodeMetrics"))),
            _credential(prometheus.get("tokenSecret"), "token"),
            _credential(prometheus.get("caConfigMap"), "ca.crt"),
        )
    )


def _annotator(said: Mapping[str, Any]) -> Workload:
    return Workload(
        replicas=int(said.get("replicas", REPLICAS)),
        log_level=str(said.get("logLevel") or "Normal"),
        resources=mapping(said.get("resources", ANNOTATOR_RESOURCES)),
        node_selector=mapping(said.get("nodeSelector")),
        tolerations=tuple(said.get("tolerations", CONTROL_PLANE)),
    )


def _exporter(said: Mapping[str, Any]) -> Exporter:
    return Exporter(
        resources=mapping(said.get("resources", METRICS_RESOURCES)),
        node_selector=mapping(said.get("nodeSelector")),
        tolerations=tuple(said.get("tolerations", EVERYWHERE)),
        arguments=tuple(map(str, said.get("args") or ())),
        mount_host=bool(said.get("mountHost", False)),
    )


def _credential(said: Any, key: str) -> Credential | None:
    name = mapping(said).get("name")
    return Credential(str(name), str(mapping(said).get("key") or key)) if name else None
