"""The fields of KubeSchedulerConfiguration v1: types, versions, and JSON encoding.

The tables restate the Go structs of k8s.io/kube-scheduler/config/v1 and their embedded structs, for
decode.py; the tests also encode with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER: Final = "default-scheduler"
"""The schedulerName of a single profile without one, and of Pods without one."""

Scalar = Literal["string", "bool", "int32", "int64", "float", "duration", "bytes", "any"]
STRING: Final = "string"
BOOL: Final = "bool"
INT32: Final = "int32"
INT64: Final = "int64"
DURATION: Final = "duration"


@dataclass(frozen=True, slots=True)
class List:
    item: Type


@dataclass(frozen=True, slots=True)
class Map:
    item: Type  # of the values; keys are strings


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    fields: Mapping[str, Type]
    since: Mapping[str, int] | None = None  # field -> minor of 1.x that added it
    always: frozenset[str] = frozenset()  # written even if unset (no `omitempty` in Go)
    # that distinguish unset from zero (pointers in Go): zero is written, null means unset
    optional: frozenset[str] = frozenset()

    def known(self, minor: int) -> tuple[str, ...]:
        """Return the fields of 1.`minor`."""
        return _known(self, minor)


@cache
def _known(struct: Struct, minor: int) -> tuple[str, ...]:
    since = struct.since or {}
    return tuple(name for name in struct.fields if since.get(name, 0) <= minor)


Type = Scalar | List | Map | Struct


def _struct(
    fields: Mapping[str, Type],
    always: str = "",
    optional: str = "",
    since: Mapping[str, int] | None = None,
) -> Struct:
    return Struct(fields, since, frozenset(always.split()), frozenset(optional.split()))


POINTS: Final = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve",
    "permit", "preBind", "bind", "postBind", "placementGenerate", "placementScore",
    "podGroupPostFilter",
)  # fmt: skip
"""Extension points at which a plugin can be listed, in the order of a scheduling cycle."""
POINTS_SINCE: Final = {"placementGenerate": 36, "placementScore": 36, "podGroupPostFilter": 37}

_PLUGIN: Final = _struct({"name": STRING, "weight": INT32}, "name", "weight")
PLUGIN_SET: Final = Struct({"enabled": List(_PLUGIN), "disabled": List(_PLUGIN)})
_PLUGINS: Final = Struct(dict.fromkeys((*POINTS, "multiPoint"), PLUGIN_SET), since=POINTS_SINCE)
PROFILE: Final = _struct({
    "schedulerName": STRING,
    "percentageOfNodesToScore": INT32,
    "plugins": _PLUGINS,
    # The type of args depends on the plugin: ARGS below.
    "pluginConfig": List(_struct({"name": STRING, "args": "any"}, "name")),
}, optional="schedulerName percentageOfNodesToScore plugins")  # fmt: skip
_EXTENDER: Final = _struct({
    "urlPrefix": STRING,
    "filterVerb": STRING,
    "preemptVerb": STRING,
    "prioritizeVerb": STRING,
    "weight": INT64,
    "bindVerb": STRING,
    "enableHTTPS": BOOL,
    "tlsConfig": Struct({
        "insecure": BOOL, "serverName": STRING,
        "certFile": STRING, "keyFile": STRING, "caFile": STRING,
        "certData": "bytes", "keyData": "bytes", "caData": "bytes",
    }),
    "httpTimeout": DURATION,
    "nodeCacheCapable": BOOL,
    "managedResources": List(_struct({"name": STRING, "ignoredByScheduler": BOOL}, "name")),
    "ignorable": BOOL,
}, always="urlPrefix httpTimeout", optional="tlsConfig")  # fmt: skip
CONFIGURATION: Final = _struct({
    "apiVersion": STRING,
    "kind": STRING,
    "parallelism": INT32,
    "leaderElection": _struct({
        "leaderElect": BOOL,
        "leaseDuration": DURATION, "renewDeadline": DURATION, "retryPeriod": DURATION,
        "resourceLock": STRING, "resourceName": STRING, "resourceNamespace": STRING,
    }, always="leaseDuration renewDeadline retryPeriod resourceLock resourceName resourceNamespace",
       optional="leaderElect"),
    "clientConnection": _struct({
        "kubeconfig": STRING, "acceptContentTypes": STRING, "contentType": STRING,
        "qps": "float", "burst": INT32,
    }, always="kubeconfig acceptContentTypes contentType qps burst"),
    "enableProfiling": BOOL,
    "enableContentionProfiling": BOOL,
    "percentageOfNodesToScore": INT32,
    "podInitialBackoffSeconds": INT64,
    "podMaxBackoffSeconds": INT64,
    "profiles": List(PROFILE),
    "extenders": List(_EXTENDER),
    "delayCacheUntilActive": BOOL,
}, always="leaderElection clientConnection", optional="parallelism enableProfiling "
   "enableContentionProfiling percentageOfNodesToScore podInitialBackoffSeconds "
   "podMaxBackoffSeconds")  # fmt: skip

TIMINGS: Final = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
"""The timings of leaderElection, with their defaults."""

_REQUIREMENTS: Final = List(
    _struct({"key": STRING, "operator": STRING, "values": List(STRING)}, "key operator")
)
_NODE_SELECTOR_TERM: Final = Struct({
    "matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS,
})  # fmt: skip
_SHAPE: Final = List(_struct({"utilization": INT32, "score": INT32}, "utilization score"))
_RESOURCES: Final = List(_struct({"name": STRING, "weight": INT64}, "name"))
_TOPOLOGY_SPREAD_CONSTRAINT: Final = _struct({
    "maxSkew": INT32, "topologyKey": STRING, "whenUnsatisfiable": STRING,
    "labelSelector": Struct({"matchLabels": Map(STRING), "matchExpressions": _REQUIREMENTS}),
    "minDomains": INT32, "nodeAffinityPolicy": STRING, "nodeTaintsPolicy": STRING,
    "matchLabelKeys": List(STRING),
}, always="maxSkew topologyKey whenUnsatisfiable",
   optional="labelSelector minDomains nodeAffinityPolicy nodeTaintsPolicy")  # fmt: skip


def _args(
    fields: Mapping[str, Type],
    always: str = "",
    optional: str = "",
    since: Mapping[str, int] | None = None,
) -> Struct:
    return _struct({"apiVersion": STRING, "kind": STRING, **fields}, always, optional, since)


ARGS: Final[Mapping[str, Struct]] = {
    "DefaultPreemption": _args({
        "minCandidateNodesPercentage": INT32, "minCandidateNodesAbsolute": INT32,
    }, optional="minCandidateNodesPercentage minCandidateNodesAbsolute"),
    "DynamicResources": _args(
        {"filterTimeout": DURATION, "bindingTimeout": DURATION},
        "filterTimeout", "filterTimeout bindingTimeout", {"bindingTimeout": 35},
    ),
    "InterPodAffinity": _args({
        "hardPodAffinityWeight": INT32, "ignorePreferredTermsOfExistingPods": BOOL,
    }, "ignorePreferredTermsOfExistingPods", "hardPodAffinityWeight"),
    "NodeAffinity": _args({
        "addedAffinity": _struct({
            "requiredDuringSchedulingIgnoredDuringExecution": _struct(
                {"nodeSelectorTerms": List(_NODE_SELECTOR_TERM)}, "nodeSelectorTerms"
            ),
            "preferredDuringSchedulingIgnoredDuringExecution": List(_struct(
                {"weight": INT32, "preference": _NODE_SELECTOR_TERM}, "weight preference"
            )),
        }, optional="requiredDuringSchedulingIgnoredDuringExecution"),
    }, optional="addedAffinity"),
    "NodeResourcesBalancedAllocation": _args({"resources": _RESOURCES}),
    "NodeResourcesFit": _args({
        "ignoredResources": List(STRING),
        "ignoredResourceGroups": List(STRING),
        "scoringStrategy": _struct({
            "type": STRING,
            "resources": _RESOURCES,
            "requestedToCapacityRatio": Struct({"shape": _SHAPE}),
        }, optional="requestedToCapacityRatio"),
    }, optional="scoringStrategy"),
    "PodTopologySpread": _args({
        "defaultConstraints": List(_TOPOLOGY_SPREAD_CONSTRAINT), "defaultingType": STRING,
    }),
    "VolumeBinding": _args(
        {"bindTimeoutSeconds": INT64, "shape": _SHAPE}, optional="bindTimeoutSeconds"
    ),
}  # fmt: skip
"""The arguments that kube-scheduler decodes; it passes on those of other plugins unchanged."""
ARGS_SINCE: Final = {"DynamicResources": 34}


def args_struct(plugin: str, minor: int) -> Struct | None:
    """Return the type of a plugin's arguments in 1.`minor`; None if it does not decode them."""
    return ARGS.get(plugin) if minor >= ARGS_SINCE.get(plugin, 0) else None
