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
    """A SecondaryScheduler with defaults; values can have any type.

    Attributes:
        name: the name of the object, its Lease and everything created for it.
        uid: the object's uid.
        namespace: the namespace of its pods.
        image: kube-scheduler's image; empty for the control plane's.
        command: the image's command; empty for the control plane's.
        replicas: the number of pods, one of which is active.
        log_level: the log level, with the values of KubeScheduler.
        config: `spec.config`.
        profiles: the profiles, as in KubeSchedulerConfiguration.
        feature_gates: feature gates by name.
        extra_arguments: flag without dashes -> value or values.
        node_selector: nodeSelector of the pods.
        tolerations: tolerations of the pods; None for those of control-plane nodes.
        affinity: affinity of the pods; empty for different zones, unless `spread` is set.
        spread: topologySpreadConstraints; None for different nodes, as far as possible.
        resources: resources of kube-scheduler's container.
        priority_class: priorityClassName of the pods.
        pull_secrets: imagePullSecrets; None for the operator's own.
        sidecars: additional containers.
        volumes: volumes for them.
        reason: `spec.forceRedeploymentReason`: a new text rolls out the same content again.
        called: entries of `extenders` from SchedulerExtenders.
        agents: the agents among them, which run as sidecars: name, spec and port of each.
    """

    name: str
    uid: str
    namespace: str
    image: str = ""
    command: tuple[str, ...] = ()
    replicas: int = DEFAULT_REPLICAS
    log_level: str = "Normal"
    config: Mapping[str, Any] = field(default_factory=dict)
    profiles: Sequence[Any] = ()
    feature_gates: Mapping[str, Any] = field(default_factory=dict)
    extra_arguments: Mapping[str, Any] = field(default_factory=dict)
    node_selector: Mapping[str, Any] = field(default_factory=dict)
    tolerations: Sequence[Any] | None = None
    affinity: Mapping[str, Any] = field(default_factory=dict)
    spread: Sequence[Any] | None = None
    resources: Mapping[str, Any] = field(default_factory=lambda: DEFAULT_RESOURCES)
    priority_class: str = PRIORITY_CLASS
    pull_secrets: tuple[str, ...] | None = None
    sidecars: Sequence[Mapping[str, Any]] = ()
    volumes: Sequence[Mapping[str, Any]] = ()
    reason: str = ""
    called: Sequence[Mapping[str, Any]] = ()
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
