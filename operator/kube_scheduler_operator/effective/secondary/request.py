"""A SecondaryScheduler's spec with defaults, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...base import names
from ...base.objects import Object, mapping
from ...extenders.agent import ManagedAgent, sidecar

DEFAULT_REPLICAS: Final = 2
DEFAULT_RESOURCES: Final[Mapping[str, Any]] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
"""kubeadm's CPU request, and a scheduler's memory in a small cluster."""

PRIORITY_CLASS: Final = "system-cluster-critical"


@dataclass(frozen=True, slots=True)
class SchedulerRequest:
    """A SecondaryScheduler with defaults; values can have any type."""

    name: str  # the name of the object, its Lease and everything created for it
    uid: str  # the object's uid
    namespace: str  # the namespace of its pods
    image: str = ""  # kube-scheduler's image; empty for the control plane's
    command: tuple[str, ...] = ()  # the image's command; empty for the control plane's
    replicas: int = DEFAULT_REPLICAS  # the number of pods, one of which is active
    log_level: str = "Normal"  # the log level, with the values of KubeScheduler
    config: Mapping[str, Any] = field(default_factory=dict)  # `spec.config`
    profiles: Sequence[Any] = ()  # the profiles, as in KubeSchedulerConfiguration
    feature_gates: Mapping[str, Any] = field(default_factory=dict)  # feature gates by name
    # flag without dashes -> value or values
    extra_arguments: Mapping[str, Any] = field(default_factory=dict)
    node_selector: Mapping[str, Any] = field(default_factory=dict)  # nodeSelector of the pods
    # tolerations of the pods; None for those of control-plane nodes
    tolerations: Sequence[Any] | None = None
    # affinity of the pods; empty for different zones, unless `spread` is set
    affinity: Mapping[str, Any] = field(default_factory=dict)
    # topologySpreadConstraints; None for different nodes, as far as possible
    spread: Sequence[Any] | None = None
    # resources of kube-scheduler's container
    resources: Mapping[str, Any] = field(default_factory=lambda: DEFAULT_RESOURCES)
    priority_class: str = PRIORITY_CLASS  # priorityClassName of the pods
    pull_secrets: tuple[str, ...] | None = None  # imagePullSecrets; None for the operator's own
    sidecars: Sequence[Mapping[str, Any]] = ()  # additional containers
    volumes: Sequence[Mapping[str, Any]] = ()  # volumes for them
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
        """The agents in its pods."""
        return tuple(sidecar(each["name"], each["spec"], each["port"]) for each in self.agents)

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
        """The Deployment's immutable selector."""
        return {names.SECONDARY_LABEL: self.name}


def read(obj: Object) -> SchedulerRequest:
    """Read a SecondaryScheduler."""
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
        pull_secrets=None if secrets is None else tuple(str(one["name"]) for one in secrets),
        sidecars=tuple(map(mapping, spec.get("sidecars") or ())),
        volumes=tuple(map(mapping, spec.get("volumes") or ())),
        reason=str(spec.get("forceRedeploymentReason") or ""),
    )
