"""What a SecondaryScheduler asks for, with its defaults, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..base import names
from ..base.objects import Object, mapping
from ..extenders.agent import Agent, sidecar

DEFAULT_REPLICAS: Final = 2
DEFAULT_RESOURCES: Final[Mapping[str, Any]] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
"""What kubeadm requests for a scheduler, and the memory that one has in a small cluster."""

PRIORITY_CLASS: Final = "system-cluster-critical"

TOLERATIONS: Final[Sequence[Mapping[str, Any]]] = (
    {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"},
)
"""It may be on control-plane nodes, for it is a part of that; small clusters have no others."""


@dataclass(frozen=True, slots=True)
class Request:
    """A SecondaryScheduler as read, with its defaults; nobody promises that values have types.

    Attributes:
        name: of the object, and of everything that is made for it; its Lease included.
        uid: the owner of all that.
        namespace: where it runs.
        image: kube-scheduler's image; empty: the control plane's.
        command: how the image is started; empty: as the control plane's is.
        replicas: how many; one of them is active.
        log_level: as KubeScheduler has it.
        config: the part of KubeSchedulerConfiguration that may be set.
        profiles: as in KubeSchedulerConfiguration.
        feature_gates: by name.
        extra_arguments: flag without dashes -> value or values.
        node_selector: of the pods, and so the next.
        tolerations: None: TOLERATIONS.
        affinity: empty: in several zones, if there are any and `spread` is not said.
        spread: topologySpreadConstraints; None: over nodes, as far as possible.
        resources: of kube-scheduler's container.
        priority_class: of the pods.
        pull_secrets: names of Secrets in the namespace; None: the operator's own, if it has some.
        sidecars: further containers.
        volumes: for those.
        reason: any new text rolls out the same content again.
        called: extenders of SchedulerExtenders, as KubeSchedulerConfiguration has them.
        agents: the agents among them, which are sidecars: name, spec and port of each.
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
        """All that it calls: those of SchedulerExtenders, then its own; None: none."""
        own = self.config.get("extenders")
        if not self.called or not isinstance(own, list | None):
            return own  # the check of the configuration says what is wrong
        return [*self.called, *(own or ())]

    @property
    def sidecar_agents(self) -> tuple[Agent, ...]:
        """The agents that run in its pods."""
        return tuple(sidecar(each["name"], each["spec"], each["port"]) for each in self.agents)

    @property
    def labels(self) -> dict[str, str]:
        """On its pods; the watches select by `app`, and in kube-system by `component`."""
        return {
            "app": names.SECONDARY,
            "component": names.SECONDARY,
            names.SECONDARY_LABEL: self.name,
            **names.OWN_LABELS,
        }

    @property
    def selector(self) -> dict[str, str]:
        """What a Deployment's selector can never change again."""
        return {names.SECONDARY_LABEL: self.name}


def read(obj: Object) -> Request:
    """Read a SecondaryScheduler."""
    metadata, spec = obj["metadata"], mapping(obj.get("spec"))
    secrets = spec.get("imagePullSecrets")
    return Request(
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
        resources=mapping(spec.get("resources", DEFAULT_RESOURCES)),
        priority_class=str(spec.get("priorityClassName") or PRIORITY_CLASS),
        pull_secrets=None if secrets is None else tuple(str(one["name"]) for one in secrets),
        sidecars=tuple(map(mapping, spec.get("sidecars") or ())),
        volumes=tuple(map(mapping, spec.get("volumes") or ())),
        reason=str(spec.get("forceRedeploymentReason") or ""),
    )
