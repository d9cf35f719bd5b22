"""A SecondaryScheduler's spec with defaults, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ....base import names
from ....base.objects import Object, mapping
from ..extenders.agent import ManagedAgent, sidecar

DEFAULT_REPLICAS: Final = 2
DEFAULT_RESOURCES: Final[Mapping[str, Any]] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
"""kubeadm's CPU request, and a scheduler's memory in a small cluster."""

PRIORITY_CLASS: Final = "system-cluster-critical"


@dataclass(frozen=True, slots=True)
class SchedulerRequest:
    """A SecondaryScheduler with defaults; values can have any type."""

    name: str  # of the object, its Lease and everything created for it
    uid: str
    namespace: str  # of its pods
    image: str = ""  # empty for the control plane's
    command: tuple[str, ...] = ()  # empty for the control plane's
    replicas: int = DEFAULT_REPLICAS  # one of which is active
    log_level: str = "Normal"  # with the values of KubeScheduler
    config: Mapping[str, Any] = field(default_factory=dict)
    profiles: Sequence[Any] = ()  # as in KubeSchedulerConfiguration
    feature_gates: Mapping[str, Any] = field(default_factory=dict)
    # flag without dashes -> value or values
    extra_arguments: Mapping[str, Any] = field(default_factory=dict)
    node_selector: Mapping[str, Any] = field(default_factory=dict)
    tolerations: Sequence[Any] | None = None  # None for those of control-plane nodes
    # empty for different zones, unless `spread` is set
    affinity: Mapping[str, Any] = field(default_factory=dict)
    spread: Sequence[Any] | None = None  # None for different nodes, as far as possible
    # of kube-scheduler's container
    resources: Mapping[str, Any] = field(default_factory=lambda: DEFAULT_RESOURCES)
    priority_class: str = PRIORITY_CLASS
    pull_secrets: tuple[str, ...] | None = None  # None for the operator's own
    sidecars: Sequence[Mapping[str, Any]] = ()
    volumes: Sequence[Mapping[str, Any]] = ()  # of sidecars
    reason: str = ""  # `spec.forceRedeploymentReason`: a new text rolls out the same content again
    called: Sequence[Mapping[str, Any]] = ()  # entries of `extenders` from SchedulerExtenders
    # the agents among them, which run as sidecars: name, spec and port of each
    agents: Sequence[Mapping[str, Any]] = ()

    @property
    def extenders(self) -> Any:
        """All entries of `extenders`: those of SchedulerExtenders, then its own; None if none."""
        own = self.config.get("extenders")
        if not self.called or not isinstance(own, list | None):
            return own  # validation of the configuration reports the error
        return [*self.called, *(own or ())]

    @property
    def sidecar_agents(self) -> tuple[ManagedAgent, ...]:
        return tuple(sidecar(agent["name"], agent["spec"], agent["port"]) for agent in self.agents)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its pods; watches select by `app`, and in kube-system by `component`."""
        return {
            "app": names.SECONDARY,
            "component": names.SECONDARY,
            names.SECONDARY_LABEL: self.name,
            **names.OWN_LABELS,
        }

    @property
    def selector(self) -> dict[str, str]:
        """The Deployment's selector, which is immutable."""
        return {names.SECONDARY_LABEL: self.name}


def read(obj: Object) -> SchedulerRequest:
    metadata, spec = obj["metadata"], mapping(obj.get("spec"))
    secrets = spec.get("imagePullSecrets")
    return SchedulerRequest(
        name=metadata["name"],
        uid=str(metadata.get("uid") or ""),
        namespace=str(spec.get("namespace") or ""),
        image=str(spec.get("image") or ""),
        command=tuple(map(str, spec.get("command") or ())),
        replicas=int(spec.get("replicas", DEFAULT_REPLICAS)),
        log_level=str(spec.get("logLevel") or "Normal"),
        config=mapping(spec.get("config")),
        profiles=tuple(spec.get("profiles") or ()),
        feature_gates=mapping(spec.get("featureGates")),
        extra_arguments=mapping(spec.get("extraArguments")),
        node_selector=mapping(spec.get("nodeSelector")),
        tolerations=spec.get("tolerations"),
        affinity=mapping(spec.get("affinity")),
        spread=spec.get("topologySpreadConstraints"),
        resources=mapping(spec.get("resources") or DEFAULT_RESOURCES),
        priority_class=str(spec.get("priorityClassName") or PRIORITY_CLASS),
        pull_secrets=None if secrets is None else tuple(str(item["name"]) for item in secrets),
        sidecars=tuple(map(mapping, spec.get("sidecars") or ())),
        volumes=tuple(map(mapping, spec.get("volumes") or ())),
        reason=str(spec.get("forceRedeploymentReason") or ""),
    )
