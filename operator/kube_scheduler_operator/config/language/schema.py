"""The fields of KubeSchedulerConfiguration v1: their types and versions.

The tables restate the Go structs of k8s.io/kube-scheduler/config/v1 and their embedded structs, for
decode.py.
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
    # durations that distinguish unset from zero (pointers in Go): null means unset
    optional: frozenset[str] = frozenset()

    def known(self, minor: int) -> tuple[str, ...]:
        """Return the fields of 1.`minor`."""
        return _known(self, minor)


@cache
def _known(struct: Struct, minor: int) -> tuple[str, ...]:
    since = struct.since or {}
    return tuple(name for name in struct.fields if since.get(name, 0) <= minor)


Type = Scalar | List | Map | Struct


POINTS: Final = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve",
    "permit", "preBind", "bind", "postBind", "placementGenerate",
    "placementFeasible", "placementScore", "podGroupPostFilter",
)  # fmt: skip
"""Extension points at which a plugin can be listed, in the order of a scheduling cycle."""
POINTS_SINCE: Final = {
    "placementGenerate": 36, "placementScore": 36, "podGroupPostFilter": 37,
    "placementFeasible": 38,
}  # fmt: skip
_PLACEMENTS: Final = {"percentageOfPlacementsToScore": 38}

_PLUGIN: Final = Struct({"name": STRING, "weight": INT32})
PLUGIN_SET: Final = Struct({"enabled": List(_PLUGIN), "disabled": List(_PLUGIN)})
_PLUGINS: Final = Struct(dict.fromkeys((*POINTS, "multiPoint"), PLUGIN_SET), since=POINTS_SINCE)
PROFILE: Final = Struct({
    "schedulerName": STRING,
    "percentageOfNodesToScore": INT32,
    "percentageOfPlacementsToScore": INT32,
    "plugins": _PLUGINS,
    # The type of args depends on the plugin: ARGS below.
    "pluginConfig": List(Struct({"name": STRING, "args": "any"})),
}, _PLACEMENTS)  # fmt: skip
_EXTENDER: Final = Struct({
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
    "managedResources": List(Struct({"name": STRING, "ignoredByScheduler": BOOL})),
    "ignorable": BOOL,
})  # fmt: skip
CONFIGURATION: Final = Struct({
    "apiVersion": STRING,
    "kind": STRING,
    "parallelism": INT32,
    "leaderElection": Struct({
        "leaderElect": BOOL,
        "leaseDuration": DURATION, "renewDeadline": DURATION, "retryPeriod": DURATION,
        "resourceLock": STRING, "resourceName": STRING, "resourceNamespace": STRING,
    }),
    "clientConnection": Struct({
        "kubeconfig": STRING, "acceptContentTypes": STRING, "contentType": STRING,
        "qps": "float", "burst": INT32,
    }),
    "enableProfiling": BOOL,
    "enableContentionProfiling": BOOL,
    "percentageOfNodesToScore": INT32,
    "percentageOfPlacementsToScore": INT32,
    "podInitialBackoffSeconds": INT64,
    "podMaxBackoffSeconds": INT64,
    "profiles": List(PROFILE),
    "extenders": List(_EXTENDER),
    "delayCacheUntilActive": BOOL,
}, _PLACEMENTS)  # fmt: skip

TIMINGS: Final = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
"""The timings of leaderElection, with their defaults."""

_REQUIREMENTS: Final = List(Struct({"key": STRING, "operator": STRING, "values": List(STRING)}))
_NODE_SELECTOR_TERM: Final = Struct({
    "matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS,
})  # fmt: skip
_SHAPE: Final = List(Struct({"utilization": INT32, "score": INT32}))
_RESOURCES: Final = List(Struct({"name": STRING, "weight": INT64}))
_TOPOLOGY_SPREAD_CONSTRAINT: Final = Struct({
    "maxSkew": INT32, "topologyKey": STRING, "whenUnsatisfiable": STRING,
    "labelSelector": Struct({"matchLabels": Map(STRING), "matchExpressions": _REQUIREMENTS}),
    "minDomains": INT32, "nodeAffinityPolicy": STRING, "nodeTaintsPolicy": STRING,
    "matchLabelKeys": List(STRING),
})  # fmt: skip


def arguments_struct(
    fields: Mapping[str, Type],
    since: Mapping[str, int] | None = None,
    optional: frozenset[str] = frozenset(),
) -> Struct:
    return Struct({"apiVersion": STRING, "kind": STRING, **fields}, since, optional)


ARGS: Final[Mapping[str, Struct]] = {
    "DefaultPreemption": arguments_struct({
        "minCandidateNodesPercentage": INT32, "minCandidateNodesAbsolute": INT32,
    }),
    "DynamicResources": arguments_struct(
        {"filterTimeout": DURATION, "bindingTimeout": DURATION},
        {"bindingTimeout": 35}, frozenset({"filterTimeout", "bindingTimeout"}),
    ),
    "InterPodAffinity": arguments_struct({
        "hardPodAffinityWeight": INT32, "ignorePreferredTermsOfExistingPods": BOOL,
    }),
    "NodeAffinity": arguments_struct({
        "addedAffinity": Struct({
            "requiredDuringSchedulingIgnoredDuringExecution": Struct(
                {"nodeSelectorTerms": List(_NODE_SELECTOR_TERM)}
            ),
            "preferredDuringSchedulingIgnoredDuringExecution": List(
                Struct({"weight": INT32, "preference": _NODE_SELECTOR_TERM})
            ),
        }),
    }),
    "NodeResourcesBalancedAllocation": arguments_struct({"resources": _RESOURCES}),
    "NodeResourcesFit": arguments_struct({
        "ignoredResources": List(STRING),
        "ignoredResourceGroups": List(STRING),
        "scoringStrategy": Struct({
            "type": STRING,
            "resources": _RESOURCES,
            "requestedToCapacityRatio": Struct({"shape": _SHAPE}),
        }),
    }),
    "PodTopologySpread": arguments_struct({
        "defaultConstraints": List(_TOPOLOGY_SPREAD_CONSTRAINT), "defaultingType": STRING,
    }),
    "VolumeBinding": arguments_struct({"bindTimeoutSeconds": INT64, "shape": _SHAPE}),
}  # fmt: skip
"""The arguments that kube-scheduler decodes; it passes on those of other plugins unchanged."""
ARGS_SINCE: Final = {"DynamicResources": 34}


def args_struct(plugin: str, minor: int) -> Struct | None:
    """Return the type of a plugin's arguments in 1.`minor`; None if it does not decode them."""
    return ARGS.get(plugin) if minor >= ARGS_SINCE.get(plugin, 0) else None
