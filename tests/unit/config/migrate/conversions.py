"""Old configurations, and the plugins that kube-scheduler of their time ran with them.

What ran is written down by hand, under today's names, from Kubernetes' own sources: the defaults
from pkg/scheduler/algorithmprovider/registry.go (v1.18) and from default_plugins.go in
pkg/scheduler/apis/config/v1beta1, v1beta2 and v1beta3; what a Policy meant from
pkg/scheduler/framework/plugins/legacy_registry.go (v1.22).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GROUP = "kubescheduler.config.k8s.io"
FILTERS = (
    "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
    "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread "
    "InterPodAffinity"
)
MANDATORY = "NodeUnschedulable TaintToleration"
ALPHA_SCORES = (
    "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=1 NodeResourcesFit=1 "
    "NodeAffinity=1 TaintToleration=1 PodTopologySpread=1"
)
BETA_SCORES = (
    "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=1 NodeResourcesFit=1 "
    "NodeAffinity=1 TaintToleration=1 PodTopologySpread=2"
)
V1_SCORES = (
    "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=2 NodeResourcesFit=1 "
    "NodeAffinity=2 TaintToleration=3 PodTopologySpread=2"
)
LATER = frozenset(("SchedulingGates", "DynamicResources", "NodeDeclaredFeatures"))
"""Plugins that are enabled by default today and that none of these versions had."""


@dataclass(frozen=True)
class Ran:
    """What one profile ran: names, for scores with their weights."""

    filters: str = FILTERS  # plugins at filter
    scores: str = BETA_SCORES  # plugins at score, `name=weight`
    post_filters: str = "DefaultPreemption"  # plugins at postFilter
    volumes: str = "VolumeBinding"  # plugins at reserve and at preBind
    binders: str = "DefaultBinder"  # plugins at bind, in order
    later: bool = True  # False if plugins that came later must not run either
    # arguments that are not the defaults, by plugin
    config: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A document and its profiles."""

    document: dict[str, Any]  # the old document
    ran: tuple[Ran, ...]  # one per profile
    policy: dict[str, Any] | None = None  # the Policy that it names
    own: bool = True  # False if it needs an image with plugins of its own


def component(version: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", **fields}


def named(*names: str) -> list[dict[str, Any]]:
    """Plugins of a list, `name` or `name=weight`."""
    found = []
    for text in names:
        name, _, weight = text.partition("=")
        found.append({"name": name, **({"weight": int(weight)} if weight else {})})
    return found


def sets(enabled: str = "", disabled: str = "") -> dict[str, Any]:
    lists = {"enabled": named(*enabled.split()), "disabled": named(*disabled.split())}
    return {key: value for key, value in lists.items() if value}


def profile(version: str, *, name: str = "", config: Any = None, **points: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"plugins": points} if points else {}
    if name:
        fields["schedulerName"] = name
    if config:
        fields["pluginConfig"] = [{"name": key, "args": args} for key, args in config.items()]
    return component(version, profiles=[fields])


def policy(**fields: Any) -> dict[str, Any]:
    return {"kind": "Policy", "apiVersion": "v1", **fields}


def predicates(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def priorities(**weights: int) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def strategy(kind: str, resources: Any = None, shape: Any = None) -> dict[str, Any]:
    """Arguments of NodeResourcesFit."""
    fields: dict[str, Any] = {"type": kind}
    if resources:
        fields["resources"] = resources
    if shape:
        fields["requestedToCapacityRatio"] = {"shape": shape}
    return {"scoringStrategy": fields}


CPU = [{"name": "cpu", "weight": 3}]
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
MOST = "NodeResourcesMostAllocated"
LEAST = "NodeResourcesLeastAllocated"
RATIO = "RequestedToCapacityRatio"
ALL_OFF = sets(disabled="*")

DEMO = profile(
    "v1beta2",
    queueSort=sets("PrioritySort", "*"),
    preFilter=ALL_OFF,
    filter=sets("TaintToleration", "*"),
    postFilter=ALL_OFF,
    preScore=ALL_OFF,
    score=sets("ImageLocality=10", "*"),
    reserve=ALL_OFF,
    permit=ALL_OFF,
    preBind=ALL_OFF,
    bind=sets("DefaultBinder", "*"),
    postBind=ALL_OFF,
) | {"clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"}}
"""Image locality as the only score."""

SECOND = component(
    "v1beta2",
    profiles=[{"schedulerName": "my-scheduler"}],
    leaderElection={"leaderElect": True},
)
"""A second scheduler beside the first one."""

THREE = component(
    "v1beta2",
    profiles=[
        {
            "schedulerName": "my-scheduler",
            "plugins": {"score": sets("MyCustomPluginA MyCustomPluginB", "TaintToleration")},
        },
        {"schedulerName": "my-scheduler2", "plugins": {"preScore": ALL_OFF}},
        {"schedulerName": "my-scheduler3"},
    ],
    leaderElection={"leaderElect": True},
)
"""Three profiles in one process, one of them with plugins that no stock image has."""

LOAD = profile(
    "v1beta2",
    name="default-scheduler",
    config={"Dynamic": {"policyConfigPath": "/etc/kubernetes/policy.yaml"}},
    filter=sets("Dynamic"),
    score=sets("Dynamic=3"),
)
"""A plugin for the load of nodes in an image of its own."""

AGENT = {
    "urlPrefix": "http://127.0.0.1:5401",
    "filterVerb": "safe/filter",
    "prioritizeVerb": "safe/prioritize",
    "weight": 2,
    "enableHttps": False,
    "nodeCacheCapable": False,
}
AGENTS = policy(
    extenders=[AGENT, {**AGENT, "urlPrefix": "http://127.0.0.1:5402", "filterVerb": ""}]
)
AGENT_SCHEDULER = component(
    "v1alpha1",
    schedulerName="my-scheduler",
    algorithmSource={
        "policy": {"configMap": {"namespace": "kube-system", "name": "my-scheduler-policy"}}
    },
    leaderElection={
        "leaderElect": True,
        "lockObjectName": "my-scheduler",
        "lockObjectNamespace": "kube-system",
    },
)
"""A scheduler of Kubernetes 1.13 with two extenders in its pod, which a Policy names."""

CLASSIC = policy(
    predicates=predicates(
        "PodFitsHostPorts", "PodFitsResources", "NoDiskConflict", "NoVolumeZoneConflict",
        "MatchNodeSelector", "HostName",
    ),
    priorities=priorities(
        LeastRequestedPriority=1, BalancedResourceAllocation=1, ServiceSpreadingPriority=1,
        EqualPriority=1,
    ),
    hardPodAffinitySymmetricWeight=10,
    alwaysCheckAllPredicates=False,
)  # fmt: skip
"""The example that came with Kubernetes for years."""
